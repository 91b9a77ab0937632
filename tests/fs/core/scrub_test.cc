// Scrubbing as seen by a user of the file system.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fs/interface/snapshots.h"
#include "fs/interface/store_maintenance.h"
#include "store/base/checksum.h"
#include "store/segment/block_codec.h"
#include "store/segment/segment_files.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/damaged_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

ScrubReport Scrub(DamagedStore& store) {
  auto report = store.fs().maintenance().Scrub(ScrubMode::kFull);
  REQUIRE_OK(report);
  return *report;
}

void Fill(DamagedStore& store) {
  for (uint64_t i = 0; i < 9; ++i) store.WriteRandom(i, 60'000);
  store.WaitUntilSealed();
}

bool HasFinding(DamagedStore& store, std::string_view part) {
  const auto findings = store.TakeFindings();
  return std::any_of(findings.begin(), findings.end(), [&](const std::string& finding) {
    return finding.find(part) != std::string::npos;
  });
}

// Replaces a block by one with correct checksums, but with a different byte in one chunk.
void Falsify(DamagedStore& store, const StoredBlock& block) {
  const auto state = ReadSuperblock(store.env(), store.path());
  REQUIRE_OK(state);
  REQUIRE(block.head.codec == BlockCodecId::kNone);
  Bytes payload;
  for (const Bytes& chunk : block.chunks) payload.insert(payload.end(), chunk.begin(), chunk.end());
  payload[10] ^= 1;
  BlockHead head = block.head;
  head.payload_checksum = Checksum(payload);
  const std::string bytes = EncodeBlockHead(head, {state->superblock.uuid, block.segment});
  ChangeSegment(store.env(), store.path(), block.segment, [&](std::string& content) {
    content.replace(block.offset, bytes.size(), bytes);
    content.replace(block.offset + bytes.size(), payload.size(), AsText(payload));
  });
}

}  // namespace

TEST_CASE("a scrub of a store without damage reads all of it, and finds nothing") {
  DamagedStore store;
  store.Open();
  Fill(store);
  const ScrubReport report = Scrub(store);
  CHECK(report.complete);
  CHECK_FALSE(report.resumed);
  CHECK(report.segments >= 4);
  CHECK(report.blocks >= report.segments);
  // No chunk was written twice. So the scrub verifies all chunks, also those in open segments.
  CHECK(report.chunks >= store.Stats().chunks_unique);
  CHECK(report.bytes >= store.Stats().stored_bytes * 9 / 10);
  CHECK_FALSE(report.found_damage());
  CHECK(store.TakeFindings().empty());
  // The next scrub does not resume the first, which was complete.
  const ScrubReport again = Scrub(store);
  CHECK_FALSE(again.resumed);
  CHECK(again.segments == report.segments);
  CHECK(again.chunks == report.chunks);
  store.RequireFiles();
}

TEST_CASE("the end of the last complete scrub is kept across mounts") {
  DamagedStore store;
  store.Open();
  Fill(store);
  CHECK_FALSE(store.Stats().last_scrub);
  store.fs().maintenance().StopScrubbing();
  CHECK_FALSE(Scrub(store).complete);
  CHECK_FALSE(store.Stats().last_scrub);
  store.Close();
  store.Open();
  const int64_t before = store.env().NowNanoseconds();
  CHECK(Scrub(store).complete);
  const auto last = store.Stats().last_scrub;
  REQUIRE(last);
  CHECK(last->ended_ns >= before);
  CHECK(last->ended_ns <= store.env().NowNanoseconds());
  CHECK(last->damaged_blocks == 0);
  store.Close();
  store.Damage(store.BlockOf("random 2"), Rot::kPayload);
  store.Open();
  REQUIRE(store.Stats().last_scrub);
  CHECK(store.Stats().last_scrub->ended_ns == last->ended_ns);
  const ScrubReport report = Scrub(store);
  REQUIRE(store.Stats().last_scrub);
  CHECK(store.Stats().last_scrub->ended_ns >= last->ended_ns);
  CHECK(store.Stats().last_scrub->damaged_blocks == report.damaged_blocks);
  CHECK(store.Stats().last_scrub->damaged_chunks == report.damaged_chunks);
  CHECK(report.damaged_blocks == 1);
  store.Close();
}

TEST_CASE("the statistics name the size of the disk, and when the store was made") {
  DamagedStore store;
  store.Open();
  const FileSystemStats stats = store.Stats();
  CHECK(stats.created_ns > 0);
  CHECK(stats.disk_bytes > 0);
  CHECK(stats.disk_available_bytes > 0);
  CHECK(stats.disk_available_bytes <= stats.disk_bytes);
  store.Close();
}

TEST_CASE("a scrub names a damaged file that only a snapshot shows") {
  DamagedStore store;
  store.Open();
  store.WriteRandom(1, 60'000);
  const InodeNumber inode = store.WriteRandom(2, 60'000);
  for (uint64_t i = 3; i < 9; ++i) store.WriteRandom(i, 60'000);
  store.WaitUntilSealed();
  store.Close();
  const StoredBlock block = store.BlockOf("random 2");
  store.Open();
  REQUIRE_OK(store.fs().snapshots().Create("monday"));
  store.Delete("random 2");
  REQUIRE_OK(store.fs().SyncAll());
  store.Close();
  store.Damage(block, Rot::kPayload);
  store.Open();
  const ScrubReport report = Scrub(store);
  CHECK(report.damaged_blocks == 1);
  CHECK(report.damaged_files >= 1);
  CHECK(HasFinding(store, fmt::format("/.snapshots/monday/random 2 (inode {} as of the snapshot "
                                      "\"monday\"): ",
                                      inode)));
  store.Close();
}

TEST_CASE("a scrub finds a damaged block, names its files, and detects that they are healed") {
  const Rot rot = GENERATE(Rot::kPayload, Rot::kHead);
  DamagedStore store;
  store.Open();
  Fill(store);
  store.Close();
  const StoredBlock block = store.BlockOf("random 2");
  store.Damage(block, rot);
  store.Open();
  const ScrubReport report = Scrub(store);
  CHECK(report.complete);
  CHECK(report.damaged_blocks == 1);
  CHECK(report.damaged_chunks == block.chunks.size());
  CHECK(report.damaged_footers == 0);
  CHECK(report.damaged_files >= 1);
  CHECK(store.Stats().damaged_blocks == 1);
  CHECK(store.Stats().damaged_chunks == block.chunks.size());
  const auto findings = store.TakeFindings();
  const auto told = [&](const std::string& part) {
    return std::any_of(findings.begin(), findings.end(), [&](const std::string& finding) {
      return finding.find(part) != std::string::npos;
    });
  };
  CHECK(told(block.path));
  CHECK(told(fmt::format("offset {}", block.offset)));
  CHECK(told(fmt::format("/random 2 (inode {}): ", *Resolve(store.fs(), "random 2"))));

  // Damage is healed even if no read met it.
  for (const auto& [name, content] : std::map(store.files()))
    WriteLargeFile(store.fs(), "backup of " + name, content);
  store.RequireFiles();
  const ScrubReport healed = Scrub(store);
  CHECK(healed.damaged_blocks == 1);
  CHECK(healed.damaged_files == 0);
  store.Crash();
  store.Open();
  CHECK(store.Stats().damaged_blocks == 1);
}

TEST_CASE("a scrub finds bytes under a false name, and reads no longer return them") {
  DamagedStore store;
  store.Open();
  Fill(store);
  store.Close();
  const StoredBlock block = store.BlockOf("random 2");
  Falsify(store, block);
  store.Open();
  const ScrubReport report = Scrub(store);
  CHECK(report.damaged_blocks == 1);
  CHECK(report.damaged_chunks == 1);
  CHECK(report.damaged_files == 1);
  int unreadable = 0;
  std::string spoilt;
  for (const auto& [name, content] : store.files()) {
    const auto read = store.Read(name);
    if (read.ok()) {
      CHECK((*read == content));
    } else {
      ++unreadable;
      spoilt = name;
    }
  }
  CHECK(unreadable == 1);
  // GC does not copy the false chunk either.
  for (uint64_t i = 0; i < 5; ++i) {
    const std::string name = fmt::format("random {}", i);
    if (name != spoilt) store.Delete(name);
  }
  const auto collected = store.fs().maintenance().CollectGarbage(false);
  REQUIRE_OK(collected);
  CHECK(collected->segments_left == 1);
  CHECK(Scrub(store).damaged_chunks == 1);
  for (const auto& [name, content] : std::map(store.files()))
    WriteLargeFile(store.fs(), "backup of " + name, content);
  store.RequireFiles();
  REQUIRE_OK(store.fs().maintenance().Recompress());
  REQUIRE_OK(store.fs().maintenance().CollectGarbage(false));
  CHECK(store.Stats().damaged_blocks == 0);
  store.Reopen();
  store.RequireFiles();
}

TEST_CASE("a scrub finds a damaged footer, which costs no chunk") {
  DamagedStore store;
  store.Open();
  Fill(store);
  store.Close();
  const StoredBlock block = store.BlockOf("random 2");
  const size_t size = SegmentContent(store.env(), store.path(), block.segment).size();
  store.FlipByte(block.path, size - 70);
  store.Open();
  const ScrubReport report = Scrub(store);
  CHECK(report.damaged_footers == 1);
  CHECK(report.damaged_chunks == 0);
  CHECK(report.damaged_files == 0);
  CHECK(report.found_damage());
  CHECK(HasFinding(store, block.path));
  store.RequireFiles();
}

TEST_CASE("a scrub finds that a segment is missing") {
  DamagedStore store;
  store.Open();
  Fill(store);
  store.Close();
  const StoredBlock block = store.BlockOf("random 2");
  store.Open();
  LoseSegment(store.env(), store.path(), block.segment);
  const ScrubReport report = Scrub(store);
  CHECK(report.complete);
  CHECK(report.damaged_chunks >= block.chunks.size());
  CHECK(HasFinding(store, fmt::format("segment {} ", block.segment)));
}

TEST_CASE("a block found intact again is removed from the damage list") {
  DamagedStore store;
  store.Open();
  Fill(store);
  store.Close();
  const StoredBlock block = store.BlockOf("random 2");
  store.Damage(block, Rot::kPayload);
  store.Open();
  CHECK(Scrub(store).damaged_blocks == 1);
  store.Close();
  store.Damage(block, Rot::kPayload);  // changes the same bit back
  store.Open();
  CHECK(store.Stats().damaged_blocks == 1);
  CHECK_FALSE(Scrub(store).found_damage());
  CHECK(store.Stats().damaged_blocks == 0);
  store.Crash();
  store.Open();
  CHECK(store.Stats().damaged_blocks == 0);
  store.RequireFiles();
}

TEST_CASE("a place that the device cannot read is damage, a missing device is a failure") {
  DamagedStore store;
  store.Open();
  Fill(store);
  store.Close();
  const StoredBlock block = store.BlockOf("random 2");
  store.Open();
  SECTION("for a while") {
    // All reads of the segment fail, also those of its trailer and its tables.
    store.watched().Fail(FaultEnv::Call::kRead, block.path, StatusCode::kIoError);
    const auto report = store.fs().maintenance().Scrub(ScrubMode::kFull);
    store.watched().Heal();
    CHECK((!report.ok() || report->damaged_chunks + report->damaged_footers > 0));
    // A chunk that could not be read for a while is not lost.
    store.RequireFiles();
    CHECK(Scrub(store).complete);
    CHECK_FALSE(Scrub(store).found_damage());
  }
  SECTION("permanently") {
    store.watched().Fail(FaultEnv::Call::kRead, ".seg", StatusCode::kIoError);
    REQUIRE_CODE(store.fs().maintenance().Scrub(ScrubMode::kFull), kIoError);
    store.watched().Heal();
    CHECK_FALSE(Scrub(store).found_damage());
  }
}

TEST_CASE("an interrupted scrub continues where it stopped, in this mount and the next", "[race]") {
  DamagedStore store;
  store.Open();
  Fill(store);
  store.Close();
  const auto blocks = store.SealedBlocks();
  // Damages a block in the first segment and one in the last. Different parts of the scrub find
  // them.
  store.Damage(blocks.front(), Rot::kPayload);
  store.Damage(blocks.back(), Rot::kPayload);
  REQUIRE(blocks.front().segment != blocks.back().segment);
  const SegmentId middle = blocks[blocks.size() / 2].segment;
  REQUIRE(middle != blocks.front().segment);
  REQUIRE(middle != blocks.back().segment);
  store.Open();
  const std::string path = SegmentPath(store.path(), middle);
  store.watched().Watch([&](const std::string& read) {
    if (read == path) store.fs().maintenance().InterruptScrub();
  });
  const ScrubReport first = Scrub(store);
  store.watched().Watch({});
  CHECK_FALSE(first.complete);
  CHECK(first.segments > 0);
  CHECK(first.damaged_blocks == 1);

  SECTION("in this mount") {}
  SECTION("in the next") { store.Reopen(); }
  SECTION("after a power cut") {
    store.Crash();
    store.Open();
    CHECK(store.Stats().damaged_blocks == 1);
  }
  REQUIRE(HasFinding(store, blocks.front().path));
  store.fs().maintenance().InterruptScrub();  // no scrub is under way; the next is not affected
  const ScrubReport rest = Scrub(store);
  CHECK(rest.complete);
  CHECK(rest.resumed);
  CHECK(rest.segments > first.segments);
  CHECK(rest.damaged_blocks == 2);
  CHECK(rest.damaged_files >= 2);
  const auto findings = store.TakeFindings();
  const auto told = [&](const std::string& part) {
    return std::any_of(findings.begin(), findings.end(), [&](const std::string& finding) {
      return finding.find(part) != std::string::npos;
    });
  };
  CHECK(told(blocks.back().path));
  CHECK_FALSE(told(blocks.front().path));  // its segment was not read again
  const ScrubReport whole = Scrub(store);
  CHECK_FALSE(whole.resumed);
  CHECK(whole.segments == rest.segments);
  CHECK(whole.chunks == rest.chunks);
  CHECK(whole.damaged_blocks == 2);
}

TEST_CASE("a scrub may be interrupted before it has begun to read") {
  DamagedStore store;
  store.Open();
  Fill(store);
  bool asked = false;
  store.watched().WatchSyncs([&](const std::string&) {
    if (!std::exchange(asked, true)) store.fs().maintenance().InterruptScrub();
  });
  const ScrubReport report = Scrub(store);
  store.watched().WatchSyncs({});
  REQUIRE(asked);
  CHECK_FALSE(report.complete);
  CHECK(report.segments == 0);
  CHECK(Scrub(store).complete);
}

TEST_CASE("a scrub ends if the replacement of a segment that it reads fails with unknown result",
          "[race]") {
  DamagedStore store;
  store.Open();
  for (uint64_t seed = 1; seed <= 4; ++seed)
    store.Write(fmt::format("file {}", seed), RepetitiveBytes(seed, 60'000));
  store.WaitUntilSealed();
  constexpr int kMostReads = 10'000;
  const auto here = std::this_thread::get_id();
  int reads = 0;
  Status recompressed;
  store.watched().Watch([&](const std::string& path) {
    if (std::this_thread::get_id() != here || !path.ends_with(".seg")) return;
    if (++reads == kMostReads) store.fs().maintenance().InterruptScrub();
    if (reads > 1) return;
    FailReplacement(store.env());
    std::thread([&] { recompressed = store.fs().maintenance().Recompress().status(); }).join();
  });
  const auto report = store.fs().maintenance().Scrub(ScrubMode::kFull);
  store.watched().Watch({});
  REQUIRE_CODE(recompressed, kReadOnly);
  REQUIRE_CODE(report, kReadOnly);
  CHECK(reads < kMostReads);
}

TEST_CASE("a scrub ends soon when the store is to be closed", "[race]") {
  DamagedStore store;
  store.Open();
  Fill(store);
  store.fs().maintenance().StopScrubbing();
  const ScrubReport report = Scrub(store);
  CHECK_FALSE(report.complete);
  CHECK(report.segments == 0);
  store.Reopen();
  store.RequireFiles();
}

TEST_CASE("a scrub during all other operations finds the damage, and nothing else", "[race]") {
  DamagedStore store;
  store.Open();
  Fill(store);
  store.Close();
  const StoredBlock block = store.BlockOf("random 2");
  store.Damage(block, Rot::kPayload);
  store.Open();
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    uint64_t seed = 100;
    while (!done) {
      const std::string name = fmt::format("passing {}", seed % 3);
      WriteLargeFile(store.fs(), name, RandomBytes(seed++, 50'000));
    }
  });
  threads.emplace_back([&] {
    while (!done) {
      if (!store.fs().maintenance().CollectGarbage(false).ok() ||
          !store.fs().maintenance().Recompress().ok())
        break;
    }
  });
  threads.emplace_back([&] {
    const auto inode = Resolve(store.fs(), "random 2");
    while (!done) {
      const auto read = ReadFile(store.fs(), *inode);
      if (read.ok() && *read != store.files().at("random 2")) std::abort();
    }
  });
  int found = 0;  // checked after the threads have ended: only one thread at a time may check
  constexpr int kScrubs = 5;
  for (int i = 0; i < kScrubs; ++i) {
    const auto report =
        store.fs().maintenance().Scrub(i % 2 == 0 ? ScrubMode::kFull : ScrubMode::kGentle);
    if (report.ok() && report->complete && report->damaged_blocks == 1 &&
        report->damaged_chunks == block.chunks.size() && report->damaged_footers == 0) {
      ++found;
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(found == kScrubs);
  CHECK(store.Stats().damaged_blocks == 1);
  for (const auto& [name, content] : std::map(store.files()))
    WriteLargeFile(store.fs(), "backup of " + name, content);
  store.RequireFiles();
  store.Reopen();
  store.RequireFiles();
}

}  // namespace siltfs::testing
