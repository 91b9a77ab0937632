#include "chunker/chunker.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "tests/chunker/cut_in_pieces.h"
#include "tests/chunker/reference.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using Tables = std::shared_ptr<const ChunkerTables>;

Tables MakeTables(uint32_t min = 2048, uint32_t avg = 8192, uint32_t max = 65536) {
  auto tables = ChunkerTables::Create(TestParameters(min, avg, max));
  REQUIRE_OK(tables);
  return *tables;
}

// Text-like data: few different bytes, many repetitions, runs of zeros and of spaces.
Bytes StructuredBytes(uint64_t seed, size_t size) {
  Random random(seed);
  Bytes bytes;
  while (bytes.size() < size) {
    switch (random.Below(8)) {
      case 0:
        bytes.insert(bytes.end(), random.Below(6000), 0);
        break;
      case 1:
        bytes.insert(bytes.end(), random.Below(200), ' ');
        break;
      case 2:
        if (bytes.size() > 1000) {
          const Bytes copy(bytes.end() - 1000,
                           bytes.end() - static_cast<ptrdiff_t>(random.Below(900)));
          bytes.insert(bytes.end(), copy.begin(), copy.end());
        }
        break;
      default:
        for (uint64_t n = random.Below(2000); n > 0; --n)
          bytes.push_back(static_cast<uint8_t>('a' + random.Below(8)));
    }
  }
  bytes.resize(size);
  return bytes;
}

std::multiset<std::string> ChunksOf(const ChunkerTables& tables, ByteView data) {
  std::multiset<std::string> chunks;
  for (uint32_t length : tables.CutAll(data)) {
    chunks.emplace(AsText(data.first(length)));
    data = data.subspan(length);
  }
  return chunks;
}

size_t CountNotIn(const std::multiset<std::string>& chunks,
                  const std::multiset<std::string>& others) {
  return static_cast<size_t>(
      std::count_if(chunks.begin(), chunks.end(),
                    [&](const std::string& chunk) { return !others.contains(chunk); }));
}

}  // namespace

TEST_CASE("cut points agree with the bitwise definition") {
  struct {
    uint32_t min, avg, max;
  } const sizes[] = {
      {64, 128, 256}, {64, 300, 4096}, {256, 1024, 8192}, {2048, 8192, 65536}, {1000, 3001, 7777}};
  const Bytes inputs[] = {RandomBytes(11, 96 << 10), StructuredBytes(12, 96 << 10)};
  for (const auto& [min, avg, max] : sizes) {
    const Tables tables = MakeTables(min, avg, max);
    for (const Bytes& data : inputs) {
      CAPTURE(min, avg, max);
      REQUIRE(tables->CutAll(data) == ReferenceCuts(tables->parameters(), data));
    }
  }
}

TEST_CASE("cut points do not depend on the pieces of the stream") {
  struct {
    uint32_t min, avg, max;
  } const sizes[] = {{64, 128, 256}, {256, 1024, 8192}, {2048, 8192, 65536}};
  Random random(21);
  for (const auto& [min, avg, max] : sizes) {
    const Tables tables = MakeTables(min, avg, max);
    Chunker chunker(tables);
    for (int round = 0; round < 24; ++round) {
      const size_t size = (64 << 10) + random.Below(64 << 10);
      const Bytes data =
          round % 2 == 0 ? RandomBytes(random.Next(), size) : StructuredBytes(random.Next(), size);
      const std::vector<uint32_t> whole = tables->CutAll(data);
      const uint64_t largest =
          std::array<uint64_t, 6>{3, 64, 66, 130, 5000, 100'000}[static_cast<size_t>(round) % 6];
      CAPTURE(min, round, largest);
      chunker.Reset();
      REQUIRE(CutInPieces(chunker, data, [&] { return 1 + random.Below(largest); }) == whole);
    }
  }
}

TEST_CASE("every fixed piece size around the window gives the same cut points") {
  const Tables tables = MakeTables(64, 200, 1000);
  const Bytes data = RandomBytes(22, 16 << 10);
  const std::vector<uint32_t> whole = tables->CutAll(data);
  for (size_t piece = 1; piece <= 130; ++piece) {
    CAPTURE(piece);
    Chunker chunker(tables);
    REQUIRE(CutInPieces(chunker, data, [&] { return piece; }) == whole);
  }
}

TEST_CASE("empty pieces change nothing") {
  const Tables tables = MakeTables();
  const Bytes data = RandomBytes(23, 100'000);
  Chunker chunker(tables);
  CHECK_FALSE(chunker.Next({}).has_value());
  CHECK(chunker.pending() == 0);
  CHECK_FALSE(chunker.Next(ByteView(data).first(1000)).has_value());
  CHECK_FALSE(chunker.Next({}).has_value());
  CHECK(chunker.pending() == 1000);
  const size_t first = tables->FirstCut(data);
  CHECK(chunker.Next(ByteView(data).subspan(1000)) == first - 1000);
}

TEST_CASE("a reset chunker forgets the old stream") {
  const Tables tables = MakeTables();
  const Bytes data = RandomBytes(24, 200'000);
  Chunker chunker(tables);
  static_cast<void>(chunker.Next(ByteView(data).last(1500)));
  chunker.Reset();
  CHECK(chunker.pending() == 0);
  CHECK(CutInPieces(chunker, data, [] { return size_t{4096}; }) == tables->CutAll(data));
}

TEST_CASE("one set of tables serves several streams at once") {
  const Tables tables = MakeTables();
  const Bytes a = RandomBytes(25, 100'000);
  const Bytes b = RandomBytes(26, 100'000);
  Chunker of_a(tables);
  Chunker of_b(tables);
  static_cast<void>(of_a.Next(ByteView(a).first(1900)));
  static_cast<void>(of_b.Next(ByteView(b).first(100)));
  CHECK(of_a.Next(ByteView(a).subspan(1900)) == tables->FirstCut(a) - 1900);
  CHECK(of_b.Next(ByteView(b).subspan(100)) == tables->FirstCut(b) - 100);
}

TEST_CASE("every chunk except the last has min to max bytes, and all chunks cover the data") {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Tables tables = MakeTables(1024, 4096, 8192);
    const Bytes data =
        seed % 2 == 0 ? RandomBytes(seed, 1'000'003) : StructuredBytes(seed, 1'000'003);
    const std::vector<uint32_t> lengths = tables->CutAll(data);
    CHECK(std::accumulate(lengths.begin(), lengths.end(), size_t{0}) == data.size());
    CHECK(std::all_of(lengths.begin(), lengths.end() - 1,
                      [](uint32_t n) { return n >= 1024 && n <= 8192; }));
    CHECK(lengths.back() > 0);
    CHECK(lengths.back() <= 8192);
    CHECK(std::count(lengths.begin(), lengths.end(), 8192U) > 0);
  }
}

TEST_CASE("an empty file has no chunks, a short file has one") {
  const Tables tables = MakeTables();
  CHECK(tables->CutAll({}).empty());
  CHECK(tables->FirstCut({}) == 0);
  CHECK_FALSE(tables->FindCut({}).has_value());
  CHECK(tables->CutAll(RandomBytes(1, 1)) == std::vector<uint32_t>{1});
  CHECK(tables->CutAll(RandomBytes(1, 2047)) == std::vector<uint32_t>{2047});
}

TEST_CASE("a cut is found if the data end at the cut, but not if they end a byte earlier") {
  const Tables tables = MakeTables();
  const Bytes data = RandomBytes(31, 1 << 20);
  ByteView rest = data;
  for (int i = 0; i < 50; ++i) {
    const size_t cut = tables->FirstCut(rest);
    CHECK(tables->FindCut(rest.first(cut)) == cut);
    CHECK_FALSE(tables->FindCut(rest.first(cut - 1)).has_value());
    CHECK(tables->FirstCut(rest.first(cut - 1)) == cut - 1);
    rest = rest.subspan(cut);
  }
}

TEST_CASE("cutting can resume at any cut point") {
  const Tables tables = MakeTables();
  const Bytes data = RandomBytes(32, 512 << 10);
  const std::vector<uint32_t> lengths = tables->CutAll(data);
  size_t start = 0;
  for (size_t i = 0; i < lengths.size(); i += 7) {
    CHECK(tables->CutAll(ByteView(data).subspan(start)) ==
          std::vector<uint32_t>(lengths.begin() + static_cast<ptrdiff_t>(i), lengths.end()));
    for (size_t k = i; k < std::min(i + 7, lengths.size()); ++k) start += lengths[k];
  }
}

TEST_CASE("the bytes of a chunk before min - window do not influence its end") {
  const Tables tables = MakeTables();
  Bytes data = RandomBytes(33, 100'000);
  const size_t cut = tables->FirstCut(data);
  Random(34).Fill(MutableByteView(data).first(2048 - 64));
  CHECK(tables->FirstCut(data) == cut);
}

TEST_CASE("the mean chunk of random data is about avg") {
  const auto [avg, min, max] = GENERATE(table<uint32_t, uint32_t, uint32_t>(
      {{4096, 1024, 32768}, {8192, 2048, 65536}, {16384, 2048, 65536}, {65536, 16384, 524288}}));
  const Tables tables = MakeTables(min, avg, max);
  const Bytes data = RandomBytes(41, 24 << 20);
  const double mean =
      static_cast<double>(data.size()) / static_cast<double>(tables->CutAll(data).size());
  CAPTURE(avg, mean);
  CHECK(mean > 0.9 * avg);
  CHECK(mean < 1.1 * avg);
}

TEST_CASE("the mean is about avg for any polynomial") {
  const Bytes data = RandomBytes(42, 8 << 20);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    auto drawn = RabinPolynomial::FromRandom(RandomBytes(seed, RabinPolynomial::kRandomBytes));
    REQUIRE_OK(drawn);
    auto tables = ChunkerTables::Create({.polynomial = *drawn});
    REQUIRE_OK(tables);
    const double mean =
        static_cast<double>(data.size()) / static_cast<double>((*tables)->CutAll(data).size());
    CHECK(mean == Approx(8192).epsilon(0.1));
  }
}

TEST_CASE("different polynomials cut the same data differently") {
  const Bytes data = RandomBytes(43, 1 << 20);
  auto drawn = RabinPolynomial::FromRandom(RandomBytes(1, RabinPolynomial::kRandomBytes));
  REQUIRE_OK(drawn);
  auto other = ChunkerTables::Create({.polynomial = *drawn});
  REQUIRE_OK(other);
  const Tables tables = MakeTables();
  const auto chunks = ChunksOf(*tables, data);
  CHECK(CountNotIn(chunks, ChunksOf(**other, data)) == chunks.size());
}

TEST_CASE("a run of zeros is cut only at max") {
  const Tables tables = MakeTables();
  const Bytes zeros(1 << 20, 0);
  CHECK(tables->CutAll(zeros) == std::vector<uint32_t>(16, 65536));
  Chunker chunker(tables);
  CHECK(CutInPieces(chunker, zeros, [] { return size_t{10'000}; }) ==
        std::vector<uint32_t>(16, 65536));
}

TEST_CASE("zeros have no cut points even under the loosest valid condition") {
  const Tables tables = MakeTables(64, 128, 256);
  CHECK(tables->CutAll(Bytes(4096, 0)) == std::vector<uint32_t>(16, 256));
}

TEST_CASE("a change in the middle of a file changes only the chunks around it") {
  const Tables tables = MakeTables();
  const Bytes original = RandomBytes(51, 4 << 20);
  const auto chunks = ChunksOf(*tables, original);
  REQUIRE(chunks.size() > 400);
  Random random(52);
  size_t changed_in_total = 0;
  constexpr int kRounds = 30;
  for (int round = 0; round < kRounds; ++round) {
    const auto position = static_cast<ptrdiff_t>((1 << 20) + random.Below(2 << 20));
    const Bytes news = RandomBytes(random.Next(), 1 + random.Below(200));
    const auto size = static_cast<ptrdiff_t>(news.size());
    Bytes changed = original;
    switch (round % 3) {
      case 0:
        changed.insert(changed.begin() + position, news.begin(), news.end());
        break;
      case 1:
        changed.erase(changed.begin() + position, changed.begin() + position + size);
        break;
      default:
        std::copy(news.begin(), news.end(), changed.begin() + position);
    }
    const size_t fresh = CountNotIn(ChunksOf(*tables, changed), chunks);
    CAPTURE(round, position, size);
    CHECK(fresh >= 1);
    CHECK(fresh <= 12);
    changed_in_total += fresh;
  }
  CHECK(changed_in_total <= 3 * kRounds);
}

TEST_CASE("equal ranges of different streams are cut alike") {
  const Tables tables = MakeTables();
  const Bytes common = RandomBytes(53, 1 << 20);
  Bytes first = RandomBytes(54, 12'345);
  Bytes second = RandomBytes(55, 543);
  first.insert(first.end(), common.begin(), common.end());
  second.insert(second.end(), common.begin(), common.end());
  CHECK(CountNotIn(ChunksOf(*tables, first), ChunksOf(*tables, second)) <= 8);
}

}  // namespace siltfs::testing
