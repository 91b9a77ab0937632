#include "index/flash/bloom_filter.h"

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

std::vector<uint64_t> Hashes(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<uint64_t> hashes(count);
  for (uint64_t& hash : hashes) hash = random.Next() | 1;
  return hashes;
}

double PassRate(const BloomFilter& filter, uint64_t seed) {
  size_t passed = 0;
  constexpr size_t kTries = 100'000;
  for (const uint64_t hash : Hashes(seed, kTries)) passed += filter.MayHave(hash) ? 1 : 0;
  return static_cast<double>(passed) / kTries;
}

}  // namespace

TEST_CASE("a Bloom filter has all its hashes, and few others") {
  for (const double bits : {8.0, 10.0, 16.0}) {
    CAPTURE(bits);
    const auto hashes = Hashes(1, 20'000);
    BloomFilter filter(BloomShape::Flat(hashes.size(), bits));
    for (const uint64_t hash : hashes) filter.Add(hash);
    for (const uint64_t hash : hashes) REQUIRE(filter.MayHave(hash));
    // 0.6185^bits is the rate of an ideal filter.
    const double ideal = std::pow(0.6185, bits);
    CHECK(PassRate(filter, 2) < 1.3 * ideal + 0.0003);
    CHECK(PassRate(filter, 2) > 0.5 * ideal);
    CHECK(filter.memory_bytes() <= static_cast<uint64_t>(20'000 * bits / 8) + 8);
  }
}

TEST_CASE("hashes that share their leading bits spread over a filter like others") {
  auto hashes = Hashes(3, 20'000);
  BloomFilter filter(BloomShape::Flat(hashes.size(), 10));
  for (const uint64_t hash : hashes) filter.Add(hash >> 24 | uint64_t{0xabcdef} << 40);
  size_t passed = 0;
  for (const uint64_t hash : Hashes(4, 100'000)) {
    passed += filter.MayHave(hash >> 24 | uint64_t{0xabcdef} << 40) ? 1 : 0;
  }
  CHECK(passed < 1300);
}

TEST_CASE("a filter of fewer bytes rules nothing out that it does not know") {
  const BloomShape shape = BloomShape::Flat(1000, 10);
  BloomFilter filter(shape);
  const auto hashes = Hashes(5, 1000);
  for (const uint64_t hash : hashes) filter.Add(hash);
  const Bytes bytes = filter.bytes();
  const BloomFilter whole(shape, bytes);
  const BloomFilter half(shape, ByteView(bytes).first(bytes.size() / 2));
  for (const uint64_t hash : hashes) {
    REQUIRE(whole.MayHave(hash));
    REQUIRE(half.MayHave(hash));
  }
  for (const uint64_t hash : Hashes(6, 1000)) REQUIRE(whole.MayHave(hash) == filter.MayHave(hash));
}

TEST_CASE("a bit-sliced filter gives the answers of its columns") {
  const BloomShape shape{.blocks = 3, .block_bits = 215, .probes = 4};
  constexpr size_t kColumns = 128;
  std::vector<Bytes> blocks(shape.blocks, Bytes(shape.block_bits * kSlicedRowBytes));
  std::vector<BloomFilter> filters;
  for (size_t column = 0; column < kColumns; ++column) {
    filters.emplace_back(shape);
    for (const uint64_t hash : Hashes(100 + column, 60)) filters.back().Add(hash);
    for (uint32_t block = 0; block < shape.blocks; ++block) {
      SetSlicedColumn(blocks[block], block, column, filters.back());
    }
  }
  for (const uint64_t hash : Hashes(105, 60)) {
    REQUIRE((MatchSliced(shape, blocks[shape.BlockOf(hash)], hash).words[0] >> 5 & 1) == 1);
  }
  for (const uint64_t hash : Hashes(7, 2000)) {
    ColumnSet match = MatchSliced(shape, blocks[shape.BlockOf(hash)], hash);
    for (size_t column = kColumns; column-- > 0;) {
      if (!filters[column].MayHave(hash)) continue;
      REQUIRE_FALSE(match.empty());
      REQUIRE(match.Last() == column);  // the newest first
      match.Remove(column);
    }
    REQUIRE(match.empty());
  }
}

TEST_CASE("the first columns are a set") {
  CHECK(ColumnSet::FirstColumns(0).empty());
  for (const size_t count : {1U, 63U, 64U, 65U, 127U, 128U}) {
    ColumnSet set = ColumnSet::FirstColumns(count);
    for (size_t column = count; column-- > 0;) {
      REQUIRE(set.Last() == column);
      set.Remove(column);
    }
    REQUIRE(set.empty());
  }
}

}  // namespace siltfs::testing
