// Damage as seen by a user of the file system: contained, reported, healed, and removed.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fs/interface/store_maintenance.h"
#include "fs/open/rebuild_index.h"
#include "fs/open/store_layout.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_format.h"
#include "store/segment/segment_scan.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/damaged_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/hex.h"
#include "tests/support/memory_segments.h"
#include "tests/support/sha1_collisions.h"

namespace siltfs::testing {
namespace {

using Range = std::pair<size_t, size_t>;

// Returns the ranges of the content that lie in the block's chunks.
std::vector<Range> RangesOf(const StoredBlock& block, const Bytes& content) {
  std::vector<Range> ranges;
  for (const Bytes& chunk : block.chunks) {
    const auto at = std::search(content.begin(), content.end(), chunk.begin(), chunk.end());
    if (at == content.end()) continue;
    const auto begin = static_cast<size_t>(at - content.begin());
    ranges.emplace_back(begin, begin + chunk.size());
  }
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

bool Overlaps(const std::vector<Range>& ranges, size_t begin, size_t end) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return begin < range.second && end > range.first; });
}

// Requires that a read of the file fails if it touches one of the ranges, and that every other read
// returns the bytes written.
void RequireDamaged(DamagedStore& store, const std::string& name,
                    const std::vector<Range>& ranges) {
  INFO(name);
  const Bytes& content = store.files().at(name);
  const auto inode = Resolve(store.fs(), name);
  REQUIRE_OK(inode);
  const auto read = [&](size_t begin, size_t end) {
    Bytes got(end - begin);
    const auto count = store.fs().Read(*inode, begin, got);
    if (Overlaps(ranges, begin, end)) {
      REQUIRE_CODE(count, kCorruption);
    } else {
      REQUIRE_OK(count);
      REQUIRE(*count == end - begin);
      REQUIRE(std::equal(got.begin(), got.end(), content.begin() + static_cast<ptrdiff_t>(begin)));
    }
  };
  for (size_t at = 0; at < content.size(); at += 1000)
    read(at, std::min(at + 1000, content.size()));
  for (const auto& [begin, end] : ranges) {
    if (begin > 0) read(begin - 1, begin);
    read(begin, begin + 1);
    read(end - 1, end);
    if (end < content.size()) read(end, end + 1);
  }
}

Bytes Joined(const Bytes& a, const Bytes& b) {
  Bytes joined = a;
  joined.insert(joined.end(), b.begin(), b.end());
  return joined;
}

// The offsets of the first and of the last block in the first segment.
uint64_t FirstBlock() { return kSegmentHeaderSize; }
uint64_t LastBlock(DamagedStore& store) {
  const auto state = ReadSuperblock(store.env(), store.path());
  REQUIRE_OK(state);
  const auto file = SegmentsOf(store.env(), store.path())->Open(1);
  REQUIRE_OK(file);
  std::vector<uint64_t> offsets;
  REQUIRE_OK(ScanBlocks(**file, {state->superblock.uuid, 1}, {},
                        [&offsets](const BlockHead&, uint32_t offset) {
                          offsets.push_back(offset);
                          return Status::Ok();
                        }));
  REQUIRE(offsets.size() > 1);
  return offsets.back();
}

// Writes two files that share their first part, and other files. Returns the block with the
// beginning of the shared part.
StoredBlock BeginShared(DamagedStore& store) {
  store.Open();
  store.WriteRandom(5, 20'000);
  REQUIRE_OK(store.fs().SyncAll());  // ends the block
  const Bytes shared = RandomBytes(1, 150'000);
  store.Write("one", Joined(shared, RandomBytes(2, 50'000)));
  store.Write("two", Joined(shared, RandomBytes(3, 70'000)));
  store.WriteRandom(4, 100'000);
  store.WaitUntilSealed();
  store.Close();
  return store.BlockOf("one");
}

}  // namespace

TEST_CASE("damage costs the chunks of its block, in all files that share them, and no other byte") {
  const Rot rot = GENERATE(Rot::kPayload, Rot::kHead);
  DamagedStore store;
  const StoredBlock block = BeginShared(store);
  REQUIRE(block.chunks.size() > 1);
  store.Damage(block, rot);
  store.Open();
  const auto in_one = RangesOf(block, store.files()["one"]);
  REQUIRE(in_one.size() == block.chunks.size());
  REQUIRE(RangesOf(block, store.files()["two"]).size() == in_one.size());
  RequireDamaged(store, "one", in_one);
  RequireDamaged(store, "two", RangesOf(block, store.files()["two"]));
  RequireDamaged(store, "random 4", {});
  RequireDamaged(store, "random 5", {});

  // One line is reported, however often reads met the damage. It names the file, the segment, and
  // the offset in the segment.
  const auto findings = store.TakeFindings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].find(fmt::format("inode {}", *Resolve(store.fs(), "one"))) == 0);
  CHECK(findings[0].find(block.path) != std::string::npos);
  CHECK(findings[0].find(fmt::format("offset {}", block.offset)) != std::string::npos);

  CHECK(store.Stats().damaged_blocks == 1);
  CHECK(store.Stats().damaged_chunks == block.chunks.size());
  store.Reopen();
  CHECK(store.Stats().damaged_blocks == 1);
  CHECK(store.Stats().damaged_chunks == block.chunks.size());
  RequireDamaged(store, "one", in_one);
}

TEST_CASE("a missing segment is reported with one line for each file") {
  DamagedStore store;
  const StoredBlock block = BeginShared(store);
  LoseSegment(store.env(), store.path(), block.segment);
  store.Open();
  store.TakeFindings();
  for (int i = 0; i < 2; ++i) {
    for (const auto& [name, content] : store.files()) {
      const auto inode = Resolve(store.fs(), name);
      REQUIRE_OK(inode);
      Bytes some(1000);
      for (size_t at = 0; at < content.size(); at += some.size())
        store.fs().Read(*inode, at, some).status().IgnoreError("reported in the log");
    }
  }
  const auto findings = store.TakeFindings();
  CHECK(findings.size() > 1);
  CHECK(findings.size() <= store.files().size());
}

TEST_CASE("if all of a segment is damaged, it is searched for blocks once, not for every chunk") {
  DamagedStore store;
  const StoredBlock block = BeginShared(store);
  ChangeSegment(store.env(), store.path(), block.segment,
                [](std::string& content) { content.assign(content.size(), '\0'); });
  store.Open();
  std::atomic<int> reads{0};
  store.watched().Watch([&](const std::string& path) {
    if (path == block.path) ++reads;
  });
  int tried = 0;
  for (const auto& [name, content] : store.files()) {
    const auto inode = Resolve(store.fs(), name);
    REQUIRE_OK(inode);
    Bytes some(1000);
    for (size_t at = 0; at < content.size(); at += some.size(), ++tried)
      store.fs().Read(*inode, at, some).status().IgnoreError("some of it is lost");
  }
  store.watched().Watch({});
  CHECK(reads < tried);
}

TEST_CASE("a temporary read error of the device is no damage") {
  DamagedStore store;
  const StoredBlock block = BeginShared(store);
  store.Open();
  store.watched().Fail(FaultEnv::Call::kRead, block.path, StatusCode::kIoError);
  REQUIRE_CODE(store.Read("one"), kIoError);
  store.watched().Heal();
  CHECK(store.Stats().damaged_blocks == 0);
  store.RequireFiles();
}

TEST_CASE("the same content written again heals every file that shares it") {
  const Rot rot = GENERATE(Rot::kPayload, Rot::kHead);
  DamagedStore store;
  const StoredBlock block = BeginShared(store);
  store.Damage(block, rot);
  store.Open();
  REQUIRE_CODE(store.Read("one"), kCorruption);
  REQUIRE_CODE(store.Read("two"), kCorruption);
  const uint64_t stored = store.Stats().stored_bytes;

  store.Write("backup", store.files()["one"]);
  store.RequireFiles();
  REQUIRE_OK(store.fs().SyncAll());
  // Intact chunks were not stored again.
  CHECK(store.Stats().stored_bytes < stored + 40'000);

  SECTION("in the same mount") {}
  SECTION("in the next mount") { store.Reopen(); }
  SECTION("after a power cut") {
    store.Crash();
    store.Open();
  }
  SECTION("even if the copy written to heal it is deleted") {
    store.Delete("backup");
    store.Reopen();
  }
  store.RequireFiles();
  CHECK(store.Stats().damaged_blocks == 1);
}

TEST_CASE("a power cut before the healing copy is durable leaves the damage unchanged") {
  DamagedStore store;
  const StoredBlock block = BeginShared(store);
  store.Damage(block, Rot::kPayload);
  store.Open();
  REQUIRE_CODE(store.Read("one"), kCorruption);
  const auto ranges = RangesOf(block, store.files()["one"]);
  WriteLargeFile(store.fs(), "backup", store.files()["one"]);
  store.Crash();
  store.Open();
  RequireDamaged(store, "one", ranges);
  store.Write("backup", store.files()["one"]);
  store.RequireFiles();
}

TEST_CASE("a damaged recipe node is healed by writing the file again") {
  DamagedStore store;
  store.Open();
  store.WriteRandom(1, 900'000);  // large enough for recipe nodes
  store.WriteRandom(2, 900'000);
  for (uint64_t i = 10; i < 30; ++i) store.WriteRandom(i, 60'000);
  store.Close();
  const auto blocks = store.SealedBlocks();
  bool damaged = false;
  for (const StoredBlock& block : blocks) {
    if (block.kind != SegmentKind::kRecipeNodes) continue;
    store.Damage(block, Rot::kPayload);
    damaged = true;
  }
  if (!damaged) {
    // All nodes are in the segment that is still open; a crash seals it.
    store.Open();
    store.Crash();
    store.Open();
    store.Close();
    for (const StoredBlock& block : store.SealedBlocks()) {
      if (block.kind != SegmentKind::kRecipeNodes) continue;
      store.Damage(block, Rot::kPayload);
      damaged = true;
    }
  }
  REQUIRE(damaged);
  store.Open();
  REQUIRE_CODE(store.Read("random 1"), kCorruption);
  REQUIRE_CODE(store.Read("random 2"), kCorruption);
  store.Write("again 1", store.files()["random 1"]);
  store.Write("again 2", store.files()["random 2"]);
  store.RequireFiles();
  store.Reopen();
  store.RequireFiles();
}

TEST_CASE("a damaged segment is removed when intact copies of all its live chunks exist") {
  DamagedStore store;
  const StoredBlock block = BeginShared(store);
  store.Damage(block, GENERATE(Rot::kPayload, Rot::kHead));
  store.Open();
  REQUIRE_CODE(store.Read("one"), kCorruption);

  SECTION("not before") {
    store.Delete("random 5");
    const auto report = store.fs().maintenance().CollectGarbage(false);
    REQUIRE_OK(report);
    CHECK(report->segments_left == 1);
    CHECK(store.Stats().damaged_blocks == 1);
    CHECK(SegmentsOf(store.env(), store.path())->Open(block.segment).ok());
    RequireDamaged(store, "one", RangesOf(block, store.files()["one"]));
  }
  SECTION("healed, with other chunks alive beside them") {
    store.Write("backup", store.files()["one"]);
    REQUIRE_OK(store.fs().SyncAll());
    store.Delete("one");
    store.Delete("backup");
    const auto report = store.fs().maintenance().CollectGarbage(false);
    REQUIRE_OK(report);
    CHECK(report->segments_left == 0);
    CHECK(store.Stats().damaged_blocks == 0);
    CHECK_FALSE(SegmentsOf(store.env(), store.path())->Open(block.segment).ok());
  }
  SECTION("wholly dead") {
    store.Delete("one");
    store.Delete("two");
    REQUIRE_OK(store.fs().maintenance().CollectGarbage(false));
    CHECK(store.Stats().damaged_blocks == 0);
    CHECK_FALSE(SegmentsOf(store.env(), store.path())->Open(block.segment).ok());
  }
  if (store.Stats().damaged_blocks == 0) {
    store.RequireFiles();
    store.Crash();
    store.Open();
    store.RequireFiles();
    CHECK(store.Stats().damaged_blocks == 0);
  }
}

TEST_CASE("recompression skips a damaged segment, and no other") {
  DamagedStore store;
  const StoredBlock block = BeginShared(store);
  store.Damage(block, Rot::kPayload);
  store.Open();
  REQUIRE_CODE(store.Read("one"), kCorruption);
  REQUIRE(store.TakeFindings().size() == 1);
  const auto recompressed = store.fs().maintenance().Recompress();
  REQUIRE_OK(recompressed);
  CHECK(recompressed->segments_left == 1);
  CHECK(recompressed->segments_rewritten + recompressed->segments_kept > 2);
  CHECK(store.TakeFindings().empty());
  store.Write("backup", store.files()["one"]);
  store.RequireFiles();
  REQUIRE_OK(store.fs().maintenance().Recompress());
  store.RequireFiles();
  store.Reopen();
  store.RequireFiles();
}

TEST_CASE("both members of a SHA-1 collision survive GC, recompression, damage and healing") {
  const auto [first, second] =
      GENERATE(std::pair(kShattered1, kShattered2), std::pair(kShattered2, kShattered1),
               std::pair(kShambles1, kShambles2));
  DamagedStore store;
  store.Open();
  // The contents are too short to be cut: each is one chunk.
  store.Write("one", FromHex(first));
  const bool in_one_block = GENERATE(false, true);
  if (!in_one_block) store.WriteRandom(1, 50'000);
  store.Write("other", FromHex(second));
  if (in_one_block) store.WriteRandom(1, 50'000);
  for (uint64_t i = 2; i < 6; ++i) store.WriteRandom(i, 60'000);
  REQUIRE_OK(store.fs().SyncAll());
  REQUIRE(store.Stats().sha1_collisions == 1);
  store.WaitUntilSealed();

  SECTION("collected") {
    for (const char* name : {"random 1", "random 2", "random 4"}) store.Delete(name);
    const auto report = store.fs().maintenance().CollectGarbage(false);
    REQUIRE_OK(report);
    CHECK(report->segments_removed > 0);
    CHECK(report->bytes_copied > 0);
  }
  SECTION("recompressed") { REQUIRE_OK(store.fs().maintenance().Recompress()); }
  SECTION("one damaged, and healed only by its own bytes") {
    store.Close();
    const StoredBlock block = store.BlockOf("one");
    REQUIRE(block.Holds(store.files()["other"]) == in_one_block);
    store.Damage(block, GENERATE(Rot::kPayload, Rot::kHead));
    store.Open();
    REQUIRE_CODE(store.Read("one"), kCorruption);
    store.Write("the other again", FromHex(second));
    // The other chunk of the collision has the name of the damaged chunk, and must not be read in
    // its place.
    REQUIRE_CODE(store.Read("one"), kCorruption);
    CHECK((*store.Read("other") == FromHex(second)));
    store.Write("one again", FromHex(first));
    store.Write("random 1", store.files()["random 1"]);
  }
  store.RequireFiles();
  store.Reopen();
  store.RequireFiles();
  REQUIRE_OK(store.fs().maintenance().CollectGarbage(false));
  REQUIRE_OK(store.fs().maintenance().Recompress());
  store.RequireFiles();
  store.Reopen();
  store.RequireFiles();
}

// The damage lies in the head of the block with the chunk of "one", and also destroys the chunk's
// name. No read finds the damage before the colliding chunk, the content of "other", is written.
TEST_CASE("a colliding chunk does not get a damaged chunk's name, even if the block has lost it") {
  DamagedStore store;
  store.Open();
  const bool sealed = GENERATE(true, false);
  const bool last = !sealed && GENERATE(true, false);
  if (last) {
    store.WriteRandom(1, 30'000);
    REQUIRE_OK(store.fs().SyncAll());  // ends the block
  }
  store.Write("one", FromHex(kShambles1));
  REQUIRE_OK(store.fs().SyncAll());
  if (!last) store.WriteRandom(1, 30'000);
  if (sealed) {
    for (uint64_t i = 2; i < 6; ++i) store.WriteRandom(i, 60'000);
    store.WaitUntilSealed();
  }
  store.Close();
  if (sealed) {
    store.Damage(store.BlockOf("one"), Rot::kHead);
  } else {
    store.FlipByte(SegmentPath(store.path(), 1), (last ? LastBlock(store) : FirstBlock()) + 60);
  }
  SECTION("the index has the name") {}
  if (sealed) {
    SECTION("the index was rebuilt") {
      IndexRebuildOptions options;
      options.store = store.path();
      options.segments = SealedSegments(store.env());
      REQUIRE_OK(RebuildIndex(store.env(), options));
    }
    SECTION("the mount rebuilds the index") {
      auto names = store.env().ListDirectory(IndexPath(store.path()));
      REQUIRE_OK(names);
      for (const auto& entry : *names)
        REQUIRE_OK(store.env().RemoveFile(IndexPath(store.path()) + "/" + entry.name));
    }
  }
  store.Open();
  CAPTURE(sealed, last);
  WriteLargeFile(store.fs(), "other", FromHex(kShambles2));
  REQUIRE_CODE(store.Read("one"), kCorruption);
  CHECK((*store.Read("other") == FromHex(kShambles2)));
  // Only the chunks that were lost with this block count as damaged.
  const auto scrubbed = store.fs().maintenance().Scrub(ScrubMode::kFull);
  REQUIRE_OK(scrubbed);
  if (!last) CHECK(scrubbed->damaged_chunks == 1);
  store.Reopen();
  REQUIRE_CODE(store.Read("one"), kCorruption);
  WriteLargeFile(store.fs(), "one again", FromHex(kShambles1));
  CHECK((*store.Read("one again") == FromHex(kShambles1)));
  CHECK((*store.Read("other") == FromHex(kShambles2)));
  // The chunk of "one" heals only if its tag is known. The footer of a sealed segment has the tag.
  if (sealed) CHECK((*store.Read("one") == FromHex(kShambles1)));
  if (!sealed) REQUIRE_CODE(store.Read("one"), kCorruption);
}

}  // namespace siltfs::testing
