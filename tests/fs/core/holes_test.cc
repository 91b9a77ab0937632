// Where a file has data and where it has holes.
#include <algorithm>
#include <cstring>
#include <string>

#include "store/base/random.h"
#include "tests/fs/core/content_fixture.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kMiB = 1u << 20;

// A character for each byte of a file, so that memset and memchr do the work: this test code is
// compiled without optimisation.
constexpr char kHole = 'h';
constexpr char kData = 'd';

// Finds the holes byte by byte, not by the search that is tested.
std::string BytesOf(const TestFile& file) {
  std::string bytes(file.record().size, kHole);
  uint64_t at = 0;
  auto mark = [&bytes](uint64_t begin, uint64_t end, bool is_hole) {
    end = std::min<uint64_t>(end, bytes.size());
    if (begin < end) std::memset(bytes.data() + begin, is_hole ? kHole : kData, end - begin);
  };
  for (const RecipeEntry& entry : file.Entries()) {
    mark(at, std::min(at + entry.length, file.record().recipe_limit), entry.is_hole());
    at += entry.length;
  }
  file.overlay().Visit(0, file.record().size, [&](const OverlayPiece& piece) {
    if (piece.kind != OverlayPiece::Kind::kAbsent)
      mark(piece.offset, piece.offset + piece.length, piece.kind == OverlayPiece::Kind::kHole);
    return true;
  });
  return bytes;
}

uint64_t Next(const std::string& bytes, uint64_t offset, char wanted) {
  return std::min(bytes.find(wanted, offset), bytes.size());
}

}  // namespace

TEST_CASE("the search finds data and holes in the right places") {
  const uint64_t seed = GENERATE(range(1, 13));
  INFO("seed " << seed);
  Random random(seed);
  ChunkStoreFixture store;
  TestFile file(store);
  for (int step = 0; step < 25; ++step) {
    INFO("step " << step);
    const uint64_t offset = random.Below(700'000);
    const uint64_t length = 1 + random.Below(random.OneIn(2) ? 3'000 : 150'000);
    switch (random.Below(6)) {
      case 0:
        file.PunchHole(offset, length);
        break;
      case 1:
        file.Truncate(offset + length);
        break;
      case 2:
        file.Fold();
        break;
      case 3:
        file.Write(offset, Bytes(length, 0));
        break;
      default:
        file.Write(offset, RandomBytes(random.Next(), length));
    }
    const uint64_t size = file.record().size;
    if (size == 0) continue;
    const std::string bytes = BytesOf(file);
    for (int probe = 0; probe < 30; ++probe) {
      const uint64_t from = random.Below(size);
      REQUIRE(file.FindHole(from) == Next(bytes, from, kHole));
      REQUIRE(file.FindData(from) == Next(bytes, from, kData));
    }
    for (uint64_t from = 0; from < size;) {  // and at each border
      const bool is_hole = bytes[from] == kHole;
      const uint64_t next = is_hole ? file.FindData(from) : file.FindHole(from);
      REQUIRE(next == Next(bytes, from, is_hole ? kData : kHole));
      from = next;
    }
    file.RequireContent();
  }
}

TEST_CASE("a search skips parts without holes and does not read them") {
  ChunkStoreFixture store(0);
  TestFile file(store);
  file.Write(0, RandomBytes(1, 30 * kMiB));
  file.Write(40 * kMiB, RandomBytes(2, 10 * kMiB));
  file.FoldAndCheck();
  const uint64_t reads = store.Reads();
  const uint64_t begin = file.FindHole(0);
  CHECK(begin == 30 * kMiB);
  CHECK(file.FindData(begin) == 40 * kMiB);
  CHECK(file.FindHole(40 * kMiB) == 50 * kMiB);
  CHECK(store.Reads() - reads < 15);
}

TEST_CASE("a hole removes its chunks from the file, and never extends the file") {
  ChunkStoreFixture store;
  TestFile file(store);
  file.Write(0, RandomBytes(3, 2 * kMiB));
  file.FoldAndCheck();
  file.PunchHole(500'000, kMiB);
  file.RequireContent();
  file.FoldAndCheck();
  CHECK(FileContent::AllocatedBytes(file.record()) == kMiB);
  file.PunchHole(2 * kMiB - 10, kMiB);
  CHECK(file.record().size == 2 * kMiB);
  file.PunchHole(5 * kMiB, kMiB);
  file.RequireContent();
  file.FoldAndCheck();
  CHECK(FileContent::AllocatedBytes(file.record()) == kMiB - 10);
}

}  // namespace siltfs::testing
