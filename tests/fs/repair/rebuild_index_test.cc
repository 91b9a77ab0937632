// Rebuilding the chunk index from the segments, for stores in every state, with interruptions at
// every step.
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>

#include "fs/open/rebuild_index.h"
#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "fs/recovery/block_replay.h"
#include "fs/segments/segment_tables.h"
#include "store/env/sim_env.h"
#include "store/segment/directory_segment_store.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_scan.h"
#include "store/superblock/superblock.h"
#include "tests/fs/check/checked_store.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/fs/core/recompression_store.h"
#include "tests/fs/repair/repaired_store.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

// The order of entries depends on a secret that is drawn when an index is made.
using Entries = std::set<Location>;

Entries EntriesOf(Env& env, const std::string& store) {
  auto opened = OpenStoreIndexReadOnly(env, store);
  REQUIRE_OK(opened);
  Entries entries;
  REQUIRE_OK(opened->index->ForEach([&entries](const OrderedEntry& entry) {
    entries.insert(entry.location);
    return Status::Ok();
  }));
  return entries;
}

Result<RebuiltIndex> Rebuild(Env& env, const std::string& store) {
  IndexRebuildOptions options;
  options.store = store;
  return RebuildIndex(env, options);
}

// The store without its index and its lock.
DirectoryTree WithoutIndex(const std::string& store) {
  DirectoryTree tree = ReadTree(store);
  std::erase_if(tree, [](const auto& file) {
    return file.first.starts_with("index") || file.first == "lock";
  });
  return tree;
}

// The sequences of all blocks, by segment and first ordinal.
std::map<std::pair<SegmentId, uint32_t>, uint64_t> SequencesOf(Env& env, const std::string& store,
                                                               const SegmentRecords& records) {
  auto state = ReadSuperblock(env, store);
  REQUIRE_OK(state);
  std::map<std::pair<SegmentId, uint32_t>, uint64_t> sequences;
  for (const auto& [id, record] : records) {
    auto file = env.OpenFile(SegmentPath(store, id), {});
    REQUIRE_OK(file);
    REQUIRE_OK(
        ScanBlocks(**file, {state->superblock.uuid, id}, {}, [&](const BlockHead& head, uint32_t) {
          for (uint32_t i = head.first_ordinal; i < head.end_ordinal(); ++i)
            sequences[{head.segment, i}] = head.sequence;
          return Status::Ok();
        }));
  }
  return sequences;
}

// The number of calls in which a mount reads segments.
uint64_t SegmentReadsOfAMount(CheckedStore& store) {
  const uint64_t before = store.fixture().env().Count(FaultEnv::Call::kRead, ".seg");
  store.fixture().Open();
  const uint64_t reads = store.fixture().env().Count(FaultEnv::Call::kRead, ".seg") - before;
  store.fixture().Close();
  return reads;
}

}  // namespace

TEST_CASE("a rebuilt index has the entries of the old one, and nothing else is changed") {
  CheckedStore store(GENERATE(IndexEngine::kSilt, IndexEngine::kMap));
  store.FillAndClose();
  Env& env = store.fixture().env();
  const Entries before = EntriesOf(env, store.path());
  const DirectoryTree rest = WithoutIndex(store.path());
  SECTION("whole") {}
  SECTION("missing") { std::filesystem::remove_all(IndexPath(store.path())); }
  SECTION("a file") {
    std::filesystem::remove_all(IndexPath(store.path()));
    WriteText(IndexPath(store.path()), "what?");
  }
  SECTION("empty") {
    std::filesystem::remove_all(IndexPath(store.path()));
    std::filesystem::create_directory(IndexPath(store.path()));
  }
  SECTION("damaged") {
    for (const auto& file : std::filesystem::directory_iterator(IndexPath(store.path()))) {
      if (file.file_size() > 0) store.Flip(file.path(), file.file_size() / 2);
    }
  }
  SECTION("of another store") {
    CheckedStore other;
    other.FillAndClose();
    std::filesystem::remove_all(IndexPath(store.path()));
    std::filesystem::create_directory(IndexPath(store.path()));
    WriteText(JoinPath(IndexPath(store.path()), "manifest"),
              ReadText(JoinPath(IndexPath(other.path()), "manifest")));
  }
  const auto rebuilt = Rebuild(env, store.path());
  REQUIRE_OK(rebuilt);
  CHECK(rebuilt->chunks >= before.size());
  CHECK(rebuilt->entries == before.size());
  CHECK(rebuilt->segments > 4);
  CHECK(rebuilt->damages == 0);
  CHECK(EntriesOf(env, store.path()) == before);
  const bool same = WithoutIndex(store.path()) == rest;
  CHECK(same);
  RequireCodes(store.Check(true), {});
}

TEST_CASE("a mount after a rebuild reads no more of the segments than another mount") {
  CheckedStore store(GENERATE(IndexEngine::kSilt, IndexEngine::kMap));
  store.FillAndClose();
  const uint64_t usual = SegmentReadsOfAMount(store);
  REQUIRE_OK(Rebuild(store.fixture().env(), store.path()));
  CHECK(SegmentReadsOfAMount(store) <= usual);
  std::filesystem::remove_all(IndexPath(store.path()));
  CHECK(SegmentReadsOfAMount(store) > usual + 10);
}

TEST_CASE("blocks are replayed by sequence, and none is reported durable before it is added") {
  CheckedStore store;
  store.FillAndClose();
  Env& env = store.fixture().env();
  SegmentRecords records;
  store.EditMetadata([&records](KvStore& kv) {
    auto read = ReadSegmentRecords(*kv.Snapshot());
    REQUIRE_OK(read);
    records = *read;
  });
  const auto sequences = SequencesOf(env, store.path(), records);
  uint64_t highest = 0;
  for (const auto& [place, sequence] : sequences) highest = std::max(highest, sequence);
  auto state = ReadSuperblock(env, store.path());
  REQUIRE_OK(state);
  ReplayOptions options;
  options.batch_entries = GENERATE(1u, 30u, 4096u);
  options.threads = GENERATE(1u, 4u);
  options.durable_sequence = GENERATE(false, true) ? sequences.begin()->second + 1 : 0;
  uint64_t wanted = 0;
  for (const auto& [place, sequence] : sequences) wanted += sequence > options.durable_sequence;
  uint64_t put = 0;
  uint64_t before = options.durable_sequence;  // sequence of the last entry put
  uint64_t last = 0;
  std::set<SegmentId> done;
  options.put = [&](std::span<const IndexEntry> entries, uint64_t sequence) {
    // From now on the index may report all sequences below `sequence` as durable. So all their
    // entries must have been put.
    REQUIRE(sequence > before - (entries.empty() ? 1 : 0));
    for (const IndexEntry& entry : entries) {
      const uint64_t own = sequences.at({entry.location.segment, entry.location.ordinal});
      REQUIRE(own >= sequence);
      REQUIRE(own >= before);
      before = own;
    }
    put += entries.size();
    last = sequence;
    return Status::Ok();
  };
  options.report = [](const std::string& sentence) { FAIL(sentence); };
  options.segment_done = [&done](SegmentId id) {
    REQUIRE(done.insert(id).second);
    return Status::Ok();
  };
  DirectorySegmentStore segments(env, store.path());
  REQUIRE_OK(ReplayBlocks(segments, {store.path(), state->superblock.uuid, 0}, records, options));
  CHECK(put == wanted);
  CHECK(last == highest);
  CHECK(done.size() > 4);
}

// Segments on a machine that does not answer some calls.
class SilentSegments final : public SegmentStore {
 public:
  SilentSegments(Env& env, const std::string& store) : segments_(env, store) {}

  const std::string& name() const override { return segments_.name(); }
  std::string NameOf(SegmentId id) const override { return segments_.NameOf(id); }
  std::optional<SegmentId> IdOf(std::string_view name) const override {
    return segments_.IdOf(name);
  }
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override {
    if (silent_ == 0) return segments_.Open(id);
    --silent_;
    ++unanswered_;
    return Status(StatusCode::kIoError, "no answer");
  }
  uint64_t UnansweredReads() const override { return unanswered_; }
  Status Put(SegmentId id, const SegmentSource& source) override {
    return segments_.Put(id, source);
  }
  Status Replace(SegmentId id, const SegmentSource& source) override {
    return segments_.Replace(id, source);
  }
  Status Remove(SegmentId id) override { return segments_.Remove(id); }
  Result<SegmentListing> List() override { return segments_.List(); }
  Result<SegmentListing> Recover() override { return segments_.Recover(); }

  // The next calls of Open have no answer.
  void BeSilent(uint64_t calls) { silent_ = calls; }

 private:
  DirectorySegmentStore segments_;
  std::atomic<uint64_t> silent_ = 0;
  std::atomic<uint64_t> unanswered_ = 0;
};

TEST_CASE("a replay does not take a missing answer for damage") {
  CheckedStore store;
  store.FillAndClose();
  Env& env = store.fixture().env();
  SegmentRecords records;
  store.EditMetadata([&records](KvStore& kv) {
    auto read = ReadSegmentRecords(*kv.Snapshot());
    REQUIRE_OK(read);
    records = *read;
  });
  auto state = ReadSuperblock(env, store.path());
  REQUIRE_OK(state);
  const StoreIdentity identity{store.path(), state->superblock.uuid, 0};
  SilentSegments segments(env, store.path());
  size_t put = 0;
  ReplayOptions options;
  options.threads = 1;  // calls of Open in a fixed order
  options.put = [&put](std::span<const IndexEntry> entries, uint64_t) {
    put += entries.size();
    return Status::Ok();
  };
  options.report = [](const std::string& sentence) { FAIL(sentence); };
  REQUIRE_OK(ReplayBlocks(segments, identity, records, options));
  const size_t all = put;
  put = 0;
  segments.BeSilent(3);
  SECTION("it ends") {
    CHECK(ReplayBlocks(segments, identity, records, options).Is(StatusCode::kIoError));
    CHECK(put == 0);
  }
  SECTION("it waits for the answer") {
    std::atomic<int> waits = 0;
    options.wait_for_answer = [&waits] { return ++waits > 0; };
    REQUIRE_OK(ReplayBlocks(segments, identity, records, options));
    CHECK(put == all);
    CHECK(waits == 3);
  }
  SECTION("the caller ends the wait") {
    options.wait_for_answer = [] { return false; };
    CHECK(ReplayBlocks(segments, identity, records, options).Is(StatusCode::kIoError));
    CHECK(put == 0);
  }
  SECTION("after another failure it does not wait") {
    options.batch_entries = 1;
    options.put = [](std::span<const IndexEntry>, uint64_t) {
      return Status(StatusCode::kNoSpace, "full");
    };
    segments.BeSilent(0);
    options.wait_for_answer = [] { return true; };
    options.segment_done = [&segments](SegmentId) {
      segments.BeSilent(UINT64_MAX);
      return Status::Ok();
    };
    CHECK(ReplayBlocks(segments, identity, records, options).Is(StatusCode::kNoSpace));
  }
}

TEST_CASE("a rebuild empties the directories of an index's devices and does not remove them") {
  SimEnv env;
  const std::string device = "/store/index/device-3";
  for (const char* directory : {"/store", "/store/index", "/store/index/device-3",
                                "/store/index/device-3/lost+found", "/store/index/stray"}) {
    REQUIRE_OK(env.CreateDirectory(directory));
  }
  for (const char* name :
       {"/manifest", "/device-0", "/device-3/00001-1.pages", "/device-3/notes"}) {
    REQUIRE_OK(env.OpenFile(IndexPath("/store") + name, {.mode = OpenMode::kCreate}));
  }
  REQUIRE_OK(env.SyncDirectory("/"));
  REQUIRE_OK(env.SyncDirectory("/store"));
  REQUIRE_OK(env.SyncDirectory("/store/index"));
  REQUIRE_OK(env.SyncDirectory(device));
  REQUIRE_OK(EmptyIndexDirectory(env, "/store"));
  env.PowerCut();
  const auto names_in = [&](const std::string& directory) {
    std::set<std::string> names;
    const auto entries = env.ListDirectory(directory);
    REQUIRE_OK(entries);
    for (const DirectoryEntry& entry : *entries) names.insert(entry.name);
    return names;
  };
  CHECK(names_in("/store/index") == std::set<std::string>{"device-3"});
  CHECK(names_in(device) == std::set<std::string>{"lost+found", "notes"});
}

TEST_CASE("the index of a crashed store is rebuilt after recovery") {
  CheckedStore store;
  store.Fill();
  store.fixture().Crash();
  if (GENERATE(false, true)) std::filesystem::remove_all(IndexPath(store.path()));
  REQUIRE_OK(Rebuild(store.fixture().env(), store.path()));
  const CheckOutcome outcome = store.Check(true);
  RequireCodes(outcome, {});
  CHECK(outcome.report.clean_shutdown == std::optional(true));
  CHECK(outcome.report.index_entries > 0);
}

TEST_CASE("damaged blocks are left out of the index and reported") {
  CheckedStore store;
  store.FillAndClose();
  Env& env = store.fixture().env();
  const Entries before = EntriesOf(env, store.path());
  store.Flip(SegmentPath(store.path(), 1), 64 + 60);  // in the head of the first block
  std::vector<std::string> damage;
  IndexRebuildOptions options;
  options.store = store.path();
  options.report = [&damage](const std::string& sentence) { damage.push_back(sentence); };
  const auto rebuilt = RebuildIndex(env, options);
  REQUIRE_OK(rebuilt);
  CHECK(rebuilt->damages == 1);
  REQUIRE(damage.size() == 1);
  CHECK(damage[0].find(SegmentPath(store.path(), 1)) != std::string::npos);
  const Entries after = EntriesOf(env, store.path());
  CHECK(after.size() < before.size());
  for (const Location& location : after) CHECK(before.contains(location));
}

TEST_CASE("no index is made without a store, for a store in use, or with lost metadata") {
  CheckedStore store;
  SECTION("no store") {
    const TemporaryDirectory empty;
    REQUIRE_CODE(Rebuild(store.fixture().env(), empty.path()), kNotFound);
    CHECK(std::filesystem::is_empty(empty.path()));
  }
  SECTION("in use") {
    store.Fill();
    REQUIRE_CODE(Rebuild(store.fixture().env(), store.path()), kInUse);
  }
  SECTION("metadata is gone") {
    store.FillAndClose();
    std::filesystem::remove_all(MetadataPath(store.path()));
    REQUIRE_CODE(Rebuild(store.fixture().env(), store.path()), kCorruption);
  }
  SECTION("metadata is older than the superblock") {
    store.FillAndClose();
    auto state = ReadSuperblock(store.fixture().env(), store.path());
    REQUIRE_OK(state);
    ++state->superblock.last_commit;
    REQUIRE_OK(WriteSuperblock(store.fixture().env(), store.path(), state->superblock));
    REQUIRE_CODE(Rebuild(store.fixture().env(), store.path()), kCorruption);
  }
}

TEST_CASE("a rebuild can be interrupted, and the next mount continues it") {
  CheckedStore store;
  store.FillAndClose();
  IndexRebuildOptions options;
  options.store = store.path();
  uint64_t asked = 0;
  options.interrupted = [&asked] { return ++asked > 3; };
  REQUIRE_CODE(RebuildIndex(store.fixture().env(), options), kInterrupted);
  // Until the rebuild is finished, fsck reports only that it is unfinished, not the missing
  // entries.
  RequireCodes(store.Check(true), {"index-rebuild"});
  {
    const auto opened = OpenStoreIndexReadOnly(store.fixture().env(), store.path());
    REQUIRE_OK(opened);
    CHECK(opened->rebuild_interrupted);
  }
  REQUIRE_CODE(OpenStoreIndexForWriting(store.fixture().env(), store.path()).status(),
               kInvalidArgument);
  SECTION("a mount") {
    store.fixture().Open(/*read_only=*/true);
    store.fixture().Close();
    RequireCodes(store.Check(true), {"index-rebuild"});
    store.fixture().Open();
    store.fixture().Close();
  }
  SECTION("a repair") { RequireRepaired(store, RepairMode::kSafe, {"index-rebuild"}); }
  SECTION("another rebuild") { REQUIRE_OK(Rebuild(store.fixture().env(), store.path())); }
  RequireCodes(store.Check(true), {});
  CHECK(OpenStoreIndexReadOnly(store.fixture().env(), store.path())->rebuild_interrupted == false);
}

TEST_CASE("opening a store can be interrupted, and the next open continues") {
  CheckedStore store;
  store.FillAndClose();
  std::filesystem::remove_all(IndexPath(store.path()));
  FileSystemOptions options;
  options.store = store.path();
  uint64_t asked = 0;
  options.interrupted = [&asked] { return ++asked > 2; };
  REQUIRE_CODE(FileSystem::Open(store.fixture().env(), options).status(), kInterrupted);
  CHECK(asked == 3);
  RequireCodes(store.Check(true), {"index-rebuild"});
  store.fixture().Open();
  store.fixture().Close();
  RequireCodes(store.Check(true), {});
}

TEST_CASE("a power cut at any step of a rebuild leaves an index that the next mount completes") {
  SimEnv env;
  RecompressionStore store(env, "/store");
  {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    store.WriteFiles(**fs, 1, 6);
    REQUIRE_OK((*fs)->Close());
  }
  const auto before = env.Fork();
  env.StartTrace();
  REQUIRE_OK(Rebuild(env, store.path));
  const SimTrace trace = env.TakeTrace();
  REQUIRE(trace.size() > 5);
  uint64_t interrupted = 0;
  for (const auto unsynced : {CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                              CrashPolicy::Unsynced::kGarble}) {
    const auto device = before->Fork();
    const size_t first = static_cast<size_t>(unsynced) % SanitizedStep();
    for (size_t cut = 0; cut <= trace.size(); ++cut) {
      if (cut > 0) REQUIRE_OK(device->Replay(trace[cut - 1]));
      if (cut % SanitizedStep() != first && cut != trace.size()) continue;
      INFO(fmt::format("cut before record {} of {}: {}", cut, trace.size(),
                       cut < trace.size() ? Describe(trace[cut]) : "the end"));
      const auto left = device->Fork();
      left->PowerCut({.unsynced = unsynced, .seed = cut, .names_in_any_order = cut % 2 == 0});
      CheckOptions check;
      check.store = store.path;
      check.on_finding = [](const Finding& finding) { CHECK(finding.code == "index-rebuild"); };
      const auto checked = CheckStore(*left, check);
      REQUIRE_OK(checked);
      interrupted += checked->findings;
      {
        auto fs = store.Open(*left, /*read_only=*/true);
        REQUIRE_OK(fs);
        store.RequireFiles(**fs);
        REQUIRE_OK((*fs)->Close());
      }
      {
        auto fs = store.Open(*left);
        REQUIRE_OK(fs);
        store.RequireFiles(**fs);
        REQUIRE_OK((*fs)->Close());
      }
      store.RequireSound(*left);
    }
  }
  CHECK(interrupted > 5 / SanitizedStep());
}

}  // namespace siltfs::testing
