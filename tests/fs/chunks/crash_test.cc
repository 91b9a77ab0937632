// Power cuts at any call: every chunk put before the last completed commit is readable afterwards,
// and no id or sequence is used twice. Recovery itself may be cut at any call and begun again.
// Metadata is not cut: it holds the writes of the last completed commit (store_under_test.h).
#include <algorithm>
#include <set>

#include "store/segment/block_codec.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_writer.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

StoreSettings SmallSegments(TestIndex index) {
  StoreSettings settings;
  settings.index = index;
  settings.segment_bytes = 16u << 10;
  settings.worker_threads = 1;
  return settings;
}

struct Script {
  PutChunks committed;
  std::vector<std::pair<ChunkName, Bytes>> committed_nodes;
};

// Commits, with an unmount and a mount in the middle; ends early when the power goes.
void Run(StoreUnderTest& store, Script& script) {
  PutChunks pending;
  std::vector<std::pair<ChunkName, Bytes>> pending_nodes;
  auto committed = [&] {
    script.committed.Append(pending);
    pending = {};
    for (auto& node : pending_nodes) script.committed_nodes.push_back(std::move(node));
    pending_nodes.clear();
  };
  for (uint64_t round = 0; round < 5; ++round) {
    if (!store.is_open() && !store.TryOpen().ok()) return;
    for (uint64_t part = 0; part < 2; ++part) {
      PutChunks batch;
      for (uint64_t i = 0; i < 9; ++i) {
        // Some chunks of earlier rounds are put again.
        batch.chunks.push_back(
            RandomChunk(i < 3 ? 1000 * (round / 2) + i : 1000 * round + 50 * part + i));
      }
      if (!TryPut(store.chunks(), batch).ok()) return;
      pending.Append(batch);
    }
    if (round % 2 == 0) {
      Bytes bytes = DullChunk(7000 + round, 3000);
      auto node = store.chunks().PutNode(bytes);
      if (!node.ok()) return;
      pending_nodes.emplace_back(*node, std::move(bytes));
    }
    if (round == 2) {
      const uint64_t commit = store.committed().last_commit;
      const bool closed = store.TryClose().ok();
      if (store.committed().last_commit > commit) committed();
      if (!closed) return;
    } else if (round != 3) {
      if (!store.TryCommit().ok()) return;
      committed();
    }
  }
  PutChunks tail;
  for (uint64_t i = 0; i < 12; ++i) tail.chunks.push_back(RandomChunk(9000 + i));
  TryPut(store.chunks(), tail).IgnoreError("never committed");
}

void RequireCommitted(StoreUnderTest& store, const Script& script) {
  RequireAll(store.chunks(), script.committed);
  for (const auto& [name, bytes] : script.committed_nodes) {
    auto node = store.chunks().GetNode(name, static_cast<uint32_t>(bytes.size()));
    REQUIRE_OK(node);
    REQUIRE(**node == bytes);
  }
}

// Requires that no id or sequence is in use that the store may still assign.
void RequireNothingReused(StoreUnderTest& store) {
  std::set<uint64_t> sequences;
  for (const FoundBlock& block : AllBlocks(store)) {
    REQUIRE(block.segment < store.first_segment());
    REQUIRE(block.head.sequence < store.first_sequence());
    REQUIRE(sequences.insert(block.head.sequence).second);
    REQUIRE(block.head.last_commit <= store.committed().last_commit);
  }
  REQUIRE(store.index().durable_sequence() < store.first_sequence());
}

CrashPolicy PolicyOf(uint64_t number) {
  return {.unsynced = static_cast<CrashPolicy::Unsynced>(number % 4), .seed = number};
}

// After the crash all committed chunks are there, and the store keeps working.
void RequireAlive(StoreUnderTest& store, const Script& script) {
  store.Open();
  RequireNothingReused(store);
  RequireCommitted(store, script);
  PutChunks again = script.committed;
  const uint64_t chunks = store.chunks().totals().chunks;
  REQUIRE_OK(TryPut(store.chunks(), again));
  REQUIRE(again.names == script.committed.names);
  store.Commit();
  REQUIRE(store.chunks().totals().chunks == chunks);
  const PutChunks more = PutMany(store.chunks(), 20000, 20);
  store.Reopen();
  RequireAll(store.chunks(), more);
  RequireCommitted(store, script);
  REQUIRE(store.findings().empty());
}

}  // namespace

// The calls that create, move, remove or cut files. A repeated recovery makes none of them; it
// writes an existing footer once more, unchanged.
constexpr SimCall kReshaping =
    SimCall::kCreate | SimCall::kRename | SimCall::kRemove | SimCall::kTruncate;

TEST_CASE("a power cut at any call loses nothing that was committed") {
  const auto index = GENERATE(TestIndex::kMap, TestIndex::kSilt);
  const auto policy = GENERATE(0, 1, 2, 3);
  uint64_t cut = 1;
  for (;; ++cut) {
    INFO("cut at call " << cut << ", policy " << policy << ", index " << static_cast<int>(index));
    StoreUnderTest store(SmallSegments(index));
    store.env().CutAtCall(cut);
    Script script;
    Run(store, script);
    const bool struck = !store.env().PowerIsOn();
    store.Kill();
    store.env().Reboot({.unsynced = static_cast<CrashPolicy::Unsynced>(policy), .seed = cut});
    RequireAlive(store, script);
    if (!struck) break;
  }
  CHECK(cut > 50);
}

TEST_CASE("recovery that is cut at any call and begun again loses nothing") {
  const auto index = GENERATE(TestIndex::kMap, TestIndex::kSilt);
  for (uint64_t cut = 9; cut < 80; cut += 14) {
    bool struck = true;
    for (uint64_t second = 1; struck; ++second) {
      INFO("cut at call " << cut << ", then at call " << second << " of the mount");
      StoreUnderTest store(SmallSegments(index));
      store.env().CutAtCall(cut);
      Script script;
      Run(store, script);
      store.Kill();
      store.env().Reboot(PolicyOf(cut + second));
      store.env().CutAtCall(second);
      const Status opened = store.TryOpen();
      // The thread that seals the resumed segment may meet the cut after the mount has succeeded.
      if (opened.ok()) store.chunks().WaitUntilSealed();
      struck = !store.env().PowerIsOn();
      REQUIRE((opened.ok() || struck));
      store.Kill();
      store.env().Reboot(PolicyOf(second / 4));
      RequireAlive(store, script);
    }
  }
}

TEST_CASE("a commit that metadata could not write is prepared again with all it needs") {
  StoreUnderTest store(SmallSegments(TestIndex::kMap));
  store.Open();
  const PutChunks first = PutMany(store.chunks(), 0, 40);
  std::vector<Mutation> lost;
  REQUIRE_OK(store.chunks().PrepareCommit(1, lost));
  PutChunks all = PutMany(store.chunks(), 100, 10);
  store.Commit();
  all.Append(first);
  store.Crash();
  RequireAlive(store, {all, {}});
}

TEST_CASE("recovery that has been done changes nothing when it is done again") {
  StoreUnderTest store(SmallSegments(TestIndex::kMap));
  store.Open();
  PutMany(store.chunks(), 0, 40);
  store.Commit();
  PutMany(store.chunks(), 100, 40);
  store.Crash({.unsynced = CrashPolicy::Unsynced::kPrefix, .seed = 3});
  SegmentRecords records(store.committed().segments.begin(), store.committed().segments.end());
  std::vector<Mutation> changes;
  const ReportFinding report = [](const std::string& finding) { FAIL(finding); };
  REQUIRE_OK(
      RecoverSegments(store.env(), store.segments(), store.identity(), records, changes, report));
  REQUIRE_FALSE(changes.empty());
  const uint64_t calls = store.env().Calls(kReshaping);
  // Recover again: with the new records, and with the old ones, as if the new ones had not reached
  // metadata.
  for (SegmentRecords again : {records, SegmentRecords(store.committed().segments.begin(),
                                                       store.committed().segments.end())}) {
    std::vector<Mutation> more;
    REQUIRE_OK(
        RecoverSegments(store.env(), store.segments(), store.identity(), again, more, report));
    REQUIRE(again == records);
  }
  REQUIRE(store.env().Calls(kReshaping) == calls);
}

TEST_CASE("a segment that recovery removed stays gone, even if a directory sync failed at first") {
  StoreUnderTest store(SmallSegments(TestIndex::kMap));
  store.Open();
  const SegmentId unborn = store.first_segment();
  const SegmentIdentity identity{store.identity().uuid, unborn};
  auto writer =
      SegmentWriter::Create(store.env(), store.path(), identity, SegmentKind::kData, 0, {});
  REQUIRE_OK(writer);
  REQUIRE_OK((*writer)->Sync());  // the file exists, but has no block yet
  writer->reset();
  store.Crash();
  const std::string path = SegmentPath(store.path(), unborn);
  REQUIRE_OK(store.env().GetFileInfo(path));

  SegmentRecords records(store.committed().segments.begin(), store.committed().segments.end());
  std::vector<Mutation> changes;
  const ReportFinding report = [](const std::string& finding) { FAIL(finding); };
  for (uint64_t nth = 1; store.env().GetFileInfo(path).ok(); ++nth) {
    store.env().FailCall({.calls = SimCall::kSyncDirectory, .nth = nth});
    REQUIRE_CODE(
        RecoverSegments(store.env(), store.segments(), store.identity(), records, changes, report),
        kIoError);
    changes.clear();
  }
  REQUIRE_OK(
      RecoverSegments(store.env(), store.segments(), store.identity(), records, changes, report));
  store.env().PowerCut();
  REQUIRE_CODE(store.env().GetFileInfo(path), kNotFound);
}

TEST_CASE("metadata that is older than the segments is refused, and nothing is changed") {
  StoreUnderTest store(SmallSegments(TestIndex::kMap));
  store.Open();
  std::vector<CommittedState> states;
  for (uint64_t round = 0; round < 4; ++round) {
    PutMany(store.chunks(), 1000 * round, 20);
    store.Commit();
    states.push_back(store.committed());
  }
  // No block has the last commit's number yet.
  const CommittedState newest = store.committed();
  PutMany(store.chunks(), 8000, 20);
  std::vector<Mutation> extra;
  REQUIRE_OK(store.chunks().PrepareCommit(newest.last_commit + 1, extra));
  store.Crash();
  for (const CommittedState& old : states) {
    if (old.last_commit == newest.last_commit) continue;
    store.committed() = old;
    const uint64_t calls = store.env().Calls(kReshaping);
    const Status opened = store.TryOpen();
    REQUIRE_CODE(opened, kCorruption);
    REQUIRE(opened.cause().find("metadata was lost") != std::string_view::npos);
    REQUIRE(store.env().Calls(kReshaping) == calls);
  }
  // Metadata that is newer than all blocks is accepted, because every commit leaves this state.
  store.committed() = newest;
  store.Open();
  store.Crash();
  store.committed().last_commit += 5;
  store.Open();
}

TEST_CASE("a damaged block below the committed length is reported, one above is a torn tail") {
  StoreUnderTest store(SmallSegments(TestIndex::kMap));
  store.Open();
  const PutChunks first = PutMany(store.chunks(), 0, 7);
  store.Commit();
  PutMany(store.chunks(), 100, 7);  // in the same segment
  std::vector<Mutation> extra;
  REQUIRE_OK(store.chunks().PrepareCommit(2, extra));
  store.Crash();
  const std::vector<FoundBlock> blocks = AllBlocks(store);
  REQUIRE(blocks.size() == 2);
  const bool committed = GENERATE(true, false);
  const FoundBlock& hit = blocks[committed ? 0 : 1];
  FlipByte(store, SegmentPath(store.path(), hit.segment), hit.offset + hit.head.total_bytes() - 5);
  store.Open();
  REQUIRE(store.findings().size() == (committed ? 1 : 0));
  size_t readable = 0;
  for (const ChunkName& name : first.names) readable += store.chunks().Get(name, 2000).ok() ? 1 : 0;
  REQUIRE(readable == (committed ? 0 : first.names.size()));
  REQUIRE(CountCopies(store, blocks[1].head.records[0].name) == (committed ? 1 : 0));
}

TEST_CASE("a node segment keeps its kind when its header has to be written again") {
  StoreUnderTest store(SmallSegments(TestIndex::kMap));
  store.Open();
  const Bytes node = DullChunk(1, 3000);
  auto name = store.chunks().PutNode(node);
  REQUIRE_OK(name);
  store.Commit();
  store.Crash();
  const SegmentId id = AllBlocks(store).at(0).segment;
  FlipByte(store, SegmentPath(store.path(), id), 3);
  store.Open();
  REQUIRE(store.findings().size() == 1);
  REQUIRE(AllBlocks(store).at(0).kind == SegmentKind::kRecipeNodes);
  REQUIRE(store.chunks().totals().chunks == 0);
  REQUIRE(ComesBack(store.chunks(), *name, node));
}

TEST_CASE("a segment with nothing left is reported, and does not keep the store from opening") {
  StoreUnderTest store(SmallSegments(TestIndex::kMap));
  store.Open();
  const PutChunks first = PutMany(store.chunks(), 0, 5);
  store.Commit();
  store.Crash();
  const FoundBlock block = AllBlocks(store).at(0);
  const std::string path = SegmentPath(store.path(), block.segment);
  SECTION("all is zero") {
    auto file = store.env().OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(0, Bytes(block.offset + block.head.total_bytes())));
    REQUIRE_OK((*file)->Sync());
  }
  SECTION("its blocks are zero") {
    auto file = store.env().OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(block.offset, Bytes(block.head.total_bytes())));
    REQUIRE_OK((*file)->Sync());
  }
  SECTION("it is empty") {
    auto file = store.env().OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Truncate(0));
    REQUIRE_OK((*file)->Sync());
  }
  SECTION("it is gone") { REQUIRE_OK(RemoveSegment(store.env(), store.path(), block.segment)); }
  for (int mount = 0; mount < 2; ++mount) {
    store.Open();
    REQUIRE_FALSE(store.findings().empty());
    REQUIRE_CODE(store.chunks().Get(first.names[0], 2000), kCorruption);
    const PutChunks more = PutMany(store.chunks(), 100 + mount, 20);
    store.Commit();
    store.Crash();
    store.Open();
    RequireAll(store.chunks(), more);
    store.Close();
  }
}

}  // namespace siltfs::testing
