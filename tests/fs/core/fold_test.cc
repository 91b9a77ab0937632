// A fold keeps the content and makes canonical recipes. It cuts, stores and reads back no more than
// the change requires.
#include "fs/content/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "store/base/random.h"
#include "tests/fs/core/content_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr size_t kMiB = 1u << 20;

Bytes RandomBytes(uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  return bytes;
}

ByteView Piece(const Bytes& content, uint64_t offset, size_t size) {
  return ByteView(content).subspan(offset, std::min<uint64_t>(size, content.size() - offset));
}

// The number of distinct chunks in the content when it is cut from its start.
uint64_t DistinctChunks(ChunkStoreFixture& store, const Bytes& content) {
  std::set<Bytes> distinct;
  size_t at = 0;
  for (uint32_t length : store.tables()->CutAll(content)) {
    distinct.emplace(content.begin() + static_cast<ptrdiff_t>(at),
                     content.begin() + static_cast<ptrdiff_t>(at + length));
    at += length;
  }
  return distinct.size();
}

Recipe WrittenAtOnce(ChunkStoreFixture& store, const Bytes& content) {
  TestFile file(store);
  file.Write(0, content);
  file.FoldAndCheck();
  return file.recipe();
}

// Returns the offsets of the kernel's writeback requests for one write of `size` bytes. Each
// request has `request` bytes. It may change places with one of the next `window` - 1 requests.
std::vector<uint64_t> ShuffledRequests(Random& random, size_t size, size_t request, size_t window) {
  std::vector<uint64_t> offsets;
  for (uint64_t at = 0; at < size; at += request) offsets.push_back(at);
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const size_t reach = std::min(window, offsets.size() - i);
    std::swap(offsets[i], offsets[i + random.Below(reach)]);
  }
  return offsets;
}

}  // namespace

TEST_CASE("a file reads as it was written, with any folds in between") {
  const uint64_t seed = GENERATE(range(1, 21));
  INFO("seed " << seed);
  Random random(seed);
  ChunkStoreFixture store;
  TestFile file(store);
  const Bytes pool = RandomBytes(seed + 1000, 400'000);
  for (int step = 0; step < 70; ++step) {
    INFO("step " << step);
    const uint64_t size = file.record().size;
    static constexpr uint64_t kSizes[] = {1, 200, 5000, 70'000, 300'000};
    const size_t length = 1 + random.Below(kSizes[random.Below(5)]);
    uint64_t offset = random.Below(900'000);
    if (random.OneIn(3)) offset = size;
    if (random.OneIn(4)) offset = offset / 4096 * 4096;
    switch (random.Below(12)) {
      case 10:
        file.FoldSome(FileContent::FoldMode::kAll);
        break;
      case 11:
        file.FoldSome();
        break;
      case 0:
        file.Truncate(random.OneIn(2) ? random.Below(size + 1) : random.Below(1'200'000));
        break;
      case 1:
        file.Write(offset, Bytes(length, 0));
        break;
      case 2: {  // bytes of the file itself, from the same place or another
        const size_t at = random.Below(pool.size() - length);
        file.Write(offset, ByteView(pool).subspan(at, length));
        break;
      }
      case 3:
      case 4:
        file.FoldAndCheck();
        break;
      case 5:
        file.FoldAndCheck(FileContent::FoldMode::kKeepTail);
        break;
      default:
        file.Write(offset, RandomBytes(random.Next(), length));
    }
    if (!file.expected().empty()) {
      const uint64_t from = random.Below(file.expected().size());
      const size_t count = 1 + random.Below(50'000);
      const ByteView expected = Piece(file.expected(), from, count);
      REQUIRE((file.Read(from, count) == Bytes(expected.begin(), expected.end())));
    }
    if (step % 10 == 0) file.RequireContent();
  }
  file.FoldAndCheck();
  // Folding a folded file changes nothing.
  const Recipe before = file.recipe();
  file.FoldAndCheck();
  REQUIRE((file.recipe() == before));
}

TEST_CASE("after a fold the allocated bytes are those outside holes") {
  ChunkStoreFixture store;
  TestFile file(store);
  file.Write(300'000, RandomBytes(1, 100'000));
  file.Write(900'000, RandomBytes(2, 100'000));
  file.Truncate(950'000);
  file.Truncate(2'000'000);
  file.FoldAndCheck();
  REQUIRE(FileContent::AllocatedBytes(file.record()) == 150'000);
  uint64_t chunks = 0;
  for (const RecipeEntry& entry : file.Entries()) chunks += entry.is_hole() ? 0 : 1;
  REQUIRE(FileContent::ChunkReferences(file.record()) == chunks);
}

TEST_CASE("zeros become holes, and an empty file has an empty recipe") {
  ChunkStoreFixture store;
  TestFile file(store);
  file.Write(0, Bytes(3 * kMiB, 0));
  file.FoldAndCheck();
  REQUIRE(file.Entries().size() == 1);
  REQUIRE(file.Entries()[0].is_hole());
  REQUIRE(store.StoredChunks() == 0);
  file.Truncate(0);
  file.FoldAndCheck();
  REQUIRE((file.recipe() == Recipe{}));
}

TEST_CASE("the recipe does not depend on the order of the writes") {
  const uint64_t seed = GENERATE(range(1, 4));
  INFO("seed " << seed);
  Random random(seed);
  ChunkStoreFixture store;
  const Bytes content = RandomBytes(seed, 5 * kMiB + 12'345);
  const Recipe expected = WrittenAtOnce(store, content);
  TestFile file(store);
  auto write = [&](uint64_t at, size_t size) { file.Write(at, Piece(content, at, size)); };

  SECTION("in small pieces") {
    for (uint64_t at = 0; at < content.size(); at += 4096) write(at, 4096);
  }
  SECTION("in pieces of odd sizes, folded now and then") {
    for (uint64_t at = 0; at < content.size();) {
      const size_t size = 1 + random.Below(200'000);
      write(at, size);
      at += size;
      if (random.OneIn(5)) file.FoldAndCheck();
      if (random.OneIn(5)) file.FoldAndCheck(FileContent::FoldMode::kKeepTail);
    }
  }
  SECTION("in large pieces") {
    for (uint64_t at = 0; at < content.size(); at += kMiB) write(at, kMiB);
  }
  SECTION("from its end") {
    for (uint64_t at = content.size() / 4096 * 4096;; at -= 4096) {
      write(at, 4096);
      if (at == 0) break;
    }
  }
  SECTION("from its end, folded now and then") {
    for (uint64_t at = content.size() / 65'536 * 65'536;; at -= 65'536) {
      write(at, 65'536);
      if (random.OneIn(8)) file.FoldAndCheck();
      if (at == 0) break;
    }
  }
  SECTION("in requests that overtake each other") {
    for (uint64_t at : ShuffledRequests(random, content.size(), 131'072, 8)) write(at, 131'072);
  }
  SECTION("in pages in any order") {
    for (uint64_t at : ShuffledRequests(random, content.size(), 4096, 100'000)) write(at, 4096);
  }
  SECTION("in pages in any order, folded now and then") {
    for (uint64_t at : ShuffledRequests(random, content.size(), 16'384, 100'000)) {
      write(at, 16'384);
      if (random.OneIn(40)) file.FoldAndCheck(FileContent::FoldMode::kKeepTail);
    }
  }
  SECTION("overwritten and then restored") {
    file.Write(0, content);
    file.FoldAndCheck();
    for (int i = 0; i < 12; ++i) {
      const uint64_t at = random.Below(content.size());
      const size_t size = 1 + random.Below(random.OneIn(3) ? 300'000 : 3'000);
      Bytes other(Piece(content, at, size).begin(), Piece(content, at, size).end());
      for (uint8_t& byte : other) byte = static_cast<uint8_t>(byte ^ 0x5a);
      file.Write(at, other);
      if (i % 2 == 0) file.FoldAndCheck();
      write(at, size);
      if (i % 3 == 0) file.FoldAndCheck();
    }
  }
  SECTION("grown beyond its size and cut back") {
    file.Write(0, content);
    file.Write(content.size(), RandomBytes(seed + 50, 500'000));
    file.FoldAndCheck();
    file.Truncate(content.size());
  }
  SECTION("truncated and written on, at random places") {
    file.Write(0, content);
    for (int i = 0; i < 6; ++i) {
      file.FoldAndCheck();
      const uint64_t at = random.Below(content.size());
      file.Truncate(at);
      if (i % 2 == 0) file.FoldAndCheck();
      write(at, content.size());
    }
  }
  SECTION("over a hole") {
    file.Truncate(content.size());
    file.FoldAndCheck();
    for (uint64_t at : ShuffledRequests(random, content.size(), 131'072, 100)) {
      write(at, 131'072);
      if (random.OneIn(10)) file.FoldAndCheck();
    }
  }
  file.FoldAndCheck();
  REQUIRE((file.expected() == content));
  REQUIRE((file.recipe() == expected));
}

TEST_CASE("a hole is a barrier: the data after it is cut independently") {
  ChunkStoreFixture store;
  const Bytes front = RandomBytes(1, 300'000);
  const Bytes back = RandomBytes(2, 2 * kMiB);
  // Both files have the same data after the same hole, with two different beginnings.
  TestFile one(store);
  one.Write(0, front);
  one.Write(1'000'000, back);
  one.FoldAndCheck();
  TestFile other(store);
  other.Write(12'345, ByteView(front).first(200'000));
  other.Write(1'000'000, back);
  other.FoldAndCheck();
  auto behind = [](const TestFile& file) {
    std::vector<RecipeEntry> entries = file.Entries();
    auto last_hole = std::find_if(entries.rbegin(), entries.rend(),
                                  [](const RecipeEntry& entry) { return entry.is_hole(); });
    return std::vector<RecipeEntry>(last_hole.base(), entries.end());
  };
  REQUIRE(behind(one).size() > 50);
  REQUIRE((behind(one) == behind(other)));
}

TEST_CASE("a stream is cut and stored once") {
  const size_t request = GENERATE(4096u, 131'072u, 1u << 20);
  INFO("requests of " << request);
  ChunkStoreFixture store;
  const Bytes content = RandomBytes(77, 6 * kMiB + 999);
  TestFile file(store);
  for (uint64_t at = 0; at < content.size(); at += request)
    file.Write(at, Piece(content, at, request));
  file.Fold();
  REQUIRE(store.StoredChunks() == DistinctChunks(store, content));
}

TEST_CASE("requests that overtake each other store no useless chunks") {
  Random random(5);
  ChunkStoreFixture store;
  const Bytes content = RandomBytes(78, 6 * kMiB + 999);
  TestFile file(store);
  for (uint64_t at : ShuffledRequests(random, content.size(), 131'072, 8))
    file.Write(at, Piece(content, at, 131'072));
  file.Fold();
  REQUIRE(store.StoredChunks() == DistinctChunks(store, content));
}

TEST_CASE("a small change of a large file stores and reads little") {
  ChunkStoreFixture store(0);
  const Bytes content = RandomBytes(9, 64 * kMiB);
  TestFile file(store);
  for (uint64_t at = 0; at < content.size(); at += kMiB) file.Write(at, Piece(content, at, kMiB));
  file.Fold();
  REQUIRE(store.StoredChunks() > 7000);

  {
    INFO("4 KiB overwritten");
    const uint64_t chunks = store.StoredChunks();
    const uint64_t reads = store.Reads();
    file.Write(30 * kMiB + 4096, RandomBytes(10, 4096));
    file.Fold();
    const uint64_t reads_of_fold = store.Reads() - reads;
    REQUIRE(store.StoredChunks() - chunks <= 8);
    REQUIRE(reads_of_fold < 300);
    REQUIRE((file.Read(30 * kMiB, 20'000) == Bytes(file.expected().begin() + 30 * kMiB,
                                                   file.expected().begin() + 30 * kMiB + 20'000)));
  }
  {
    INFO("4 KiB overwritten in two places");
    const uint64_t chunks = store.StoredChunks();
    const uint64_t reads = store.Reads();
    file.Write(3 * kMiB, RandomBytes(10, 4096));
    file.Write(60 * kMiB, RandomBytes(11, 4096));
    file.Fold();
    const uint64_t reads_of_fold = store.Reads() - reads;
    REQUIRE(store.StoredChunks() - chunks <= 16);
    REQUIRE(reads_of_fold < 600);
  }
  {
    INFO("appended to");
    const uint64_t chunks = store.StoredChunks();
    const std::vector<RecipeEntry> before = file.Entries();
    const uint64_t reads = store.Reads();
    file.Write(content.size(), RandomBytes(12, 100));
    file.Fold();
    const uint64_t reads_of_fold = store.Reads() - reads;
    REQUIRE(store.StoredChunks() - chunks <= 2);
    REQUIRE(reads_of_fold < 60);
    const std::vector<RecipeEntry> after = file.Entries();
    REQUIRE(after.size() >= before.size());
    REQUIRE(std::equal(before.begin(), before.end() - 1, after.begin()));
  }
  {
    INFO("truncated");
    const uint64_t chunks = store.StoredChunks();
    const uint64_t reads = store.Reads();
    file.Truncate(40 * kMiB + 1);
    file.Fold();
    const uint64_t reads_of_fold = store.Reads() - reads;
    REQUIRE(store.StoredChunks() - chunks <= 1);
    REQUIRE(reads_of_fold < 200);
  }
}

TEST_CASE("a copy shifted by a few bytes shares nearly all chunks") {
  ChunkStoreFixture store;
  const Bytes content = RandomBytes(13, 4 * kMiB);
  WrittenAtOnce(store, content);
  const uint64_t chunks = store.StoredChunks();
  TestFile shifted(store);
  shifted.Write(0, RandomBytes(14, 1234));
  shifted.Write(1234, content);
  shifted.FoldAndCheck();
  REQUIRE(store.StoredChunks() - chunks <= 12);
}

TEST_CASE("a write beyond the largest file is refused and changes nothing") {
  ChunkStoreFixture store;
  InodeRecord record;
  Overlay overlay;
  FileContent content(store.chunks(), store.tables());
  const Bytes byte(1, 'x');
  REQUIRE_CODE(content.Write(record, overlay, kMaxRecipeBytes, byte), kFileTooLarge);
  REQUIRE_CODE(content.Write(record, overlay, ~uint64_t{0}, byte), kFileTooLarge);
  REQUIRE_CODE(content.Truncate(record, overlay, kMaxRecipeBytes + 1), kFileTooLarge);
  REQUIRE(record.size == 0);
  REQUIRE(overlay.empty());
  REQUIRE_OK(content.Write(record, overlay, kMaxRecipeBytes - 1, byte));
  REQUIRE(record.size == kMaxRecipeBytes);
  REQUIRE_OK(content.Fold(record, overlay, FileContent::FoldMode::kAll));
  REQUIRE(record.recipe.size() == kMaxRecipeBytes);
  REQUIRE(FileContent::AllocatedBytes(record) == 1);
}

// Writes 4 KiB at `count` places all over a file, none of them next to another.
void WriteScattered(TestFile& file, Random& random, size_t count) {
  const uint64_t places = file.expected().size() / 8192;
  for (size_t i = 0; i < count; ++i)
    file.Write(random.Below(places) * 8192, RandomBytes(random.Next(), 4096));
}

TEST_CASE("folding a file part by part has the same result as folding it at once") {
  const uint64_t seed = GENERATE(range(1, 5));
  Random random(seed);
  ChunkStoreFixture store;
  TestFile parts(store);
  TestFile whole(store);
  const Bytes content = RandomBytes(seed, 12 * kMiB);
  for (TestFile* file : {&parts, &whole}) {
    file->Write(0, content);
    file->FoldAndCheck();
    Random same(seed + 50);
    WriteScattered(*file, same, 600);
    if (seed % 2 == 0) file->Write(12 * kMiB, RandomBytes(7, 500'000));
  }
  whole.FoldAndCheck();
  REQUIRE_FALSE(FileContent::FoldsAtOnce(parts.overlay()));
  int steps = 0;
  for (; !parts.overlay().empty(); ++steps) {
    REQUIRE(steps < 30);
    parts.FoldSome(FileContent::FoldMode::kAll);
    if (steps % 4 == 0) parts.RequireContent();
  }
  REQUIRE(steps >= 8);
  REQUIRE((parts.recipe() == whole.recipe()));
  parts.RequireContent();
}

TEST_CASE("a write into a file with many changes folds only a part of them") {
  ChunkStoreFixture store(0);  // each Get of a chunk reads it
  TestFile file(store);
  file.Write(0, RandomBytes(1, 40 * kMiB));
  file.FoldAndCheck();
  Random random(2);
  uint64_t most = 0;
  bool folded = false;
  for (int round = 0; round < 40; ++round) {
    const uint64_t plain = file.overlay().plain_bytes();
    for (int i = 0; i < 100; ++i) {
      const uint64_t reads = store.Reads();
      WriteScattered(file, random, 1);
      most = std::max(most, store.Reads() - reads);
    }
    folded = folded || file.overlay().plain_bytes() < plain;
  }
  REQUIRE(folded);
  // A step folds 64 places, and reads two or three chunks and one or two nodes for each.
  CHECK(most > 64);
  CHECK(most < 600);
  file.RequireContent();
}

TEST_CASE("many holes punched into a file are folded before there are too many") {
  ChunkStoreFixture store;
  TestFile file(store);
  file.Truncate(uint64_t{1} << 24);
  Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    file.PunchHole(random.Below(1u << 16) * 256, 100);
    if (FileContent::NeedsFold(file.overlay())) file.FoldSome();
    REQUIRE(file.overlay().extents() < 17'000);
  }
  file.FoldAndCheck();
}

}  // namespace siltfs::testing
