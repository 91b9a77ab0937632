// The device fails in any call, once or in all calls from then on. Callers that put or commit get
// the error, nothing that was committed is lost, and no thread waits for ever.
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

StoreSettings SmallSegments(TestIndex index) {
  StoreSettings settings;
  settings.index = index;
  settings.segment_bytes = 16u << 10;
  settings.pipeline_bytes = 64u << 10;
  return settings;
}

struct Script {
  PutChunks committed;
  PutChunks pending;  // put and not committed
  Status failure;     // status of the first call that failed
};

// Puts chunks and nodes, and commits, until a call fails. Returns true if no call fails.
bool Run(StoreUnderTest& store, Script& script) {
  auto fails = [&](Status status) {
    if (status.ok()) return false;
    script.failure = std::move(status);
    return true;
  };
  for (uint64_t round = 0; round < 6; ++round) {
    for (uint64_t part = 0; part < 3; ++part) {
      PutChunks batch;
      for (uint64_t i = 0; i < 10; ++i) {
        batch.chunks.push_back(RandomChunk(1000 * round + 100 * part + i));
      }
      if (fails(TryPut(store.chunks(), batch))) return false;
      script.pending.Append(batch);
    }
    auto node = store.chunks().PutNode(DullChunk(round, 3000));
    if (fails(node.status())) return false;
    if (fails(store.TryCommit())) return false;
    script.committed.Append(script.pending);
    script.pending = {};
  }
  return true;
}

void RequireRefused(StoreUnderTest& store, const Status& first) {
  const std::string cause(first.cause());
  PutChunks fresh;
  fresh.chunks.push_back(RandomChunk(99999));
  const Status put = TryPut(store.chunks(), fresh);
  REQUIRE_CODE(put, kReadOnly);
  REQUIRE(put.cause() == cause);
  auto node = store.chunks().PutNode(RandomChunk(99998));
  REQUIRE_CODE(node, kReadOnly);
  REQUIRE(node.status().cause() == cause);
  std::vector<Mutation> extra;
  const Status commit = store.chunks().PrepareCommit(store.committed().last_commit + 1, extra);
  REQUIRE_CODE(commit, kReadOnly);
  REQUIRE(commit.cause() == cause);
}

}  // namespace

TEST_CASE("if any write, sync or create fails, waiting callers get the error, and reads go on") {
  const auto index = GENERATE(TestIndex::kMap, TestIndex::kSilt);
  const auto call =
      GENERATE(SimCall::kWrite, SimCall::kSync, SimCall::kCreate, SimCall::kSyncDirectory);
  size_t reported = 0;
  size_t repeated = 0;
  for (uint64_t nth = 1;; ++nth) {
    const StatusCode code = nth % 4 < 2 ? StatusCode::kIoError : StatusCode::kNoSpace;
    INFO("call " << nth << " of kind " << static_cast<uint32_t>(call) << " fails, index "
                 << static_cast<int>(index) << ", " << StatusCodeName(code));
    StoreUnderTest store(SmallSegments(index));
    store.Open();
    const bool sticky = nth % 2 == 0;
    const uint64_t before = store.env().Calls(call);
    store.env().FailCall(
        {.calls = call, .nth = nth, .code = code, .sticky = sticky, .bytes_written = 700});
    Script script;
    const bool whole = Run(store, script);
    const bool struck = store.env().Calls(call) - before >= nth;
    // A failed sync cannot be repeated, whatever its error. The index is an exception: it writes a
    // new file each time.
    const bool new_file = index == TestIndex::kSilt && call == SimCall::kSync &&
                          script.failure.path().find("index") != std::string_view::npos;
    const bool may_be_repeated = code == StatusCode::kNoSpace &&
                                 (call == SimCall::kWrite || call == SimCall::kCreate || new_file);
    if (!whole) {
      ++reported;
      REQUIRE(script.failure.Is(may_be_repeated ? StatusCode::kNoSpace : StatusCode::kReadOnly));
      REQUIRE(script.failure.ToString().find("a fault was injected") != std::string::npos);
      if (!may_be_repeated) RequireRefused(store, script.failure);
      if (!may_be_repeated) RequireRefused(store, script.failure);
    }
    RequireAll(store.chunks(), script.committed);
    RequireAll(store.chunks(), script.pending);
    if (!whole && may_be_repeated) {
      // The sealer syncs segments while the index is written. A sticky fault that fails the index's
      // sync can also fail a segment's sync, and that failure is final.
      store.chunks().WaitUntilSealed();
      store.env().ClearFaults();
      const Status commit = store.TryCommit();
      if (new_file && sticky && commit.Is(StatusCode::kReadOnly)) {
        REQUIRE(commit.ToString().find("/segments/") != std::string::npos);
        RequireRefused(store, commit);
      } else {
        REQUIRE_OK(commit);
        script.committed.Append(script.pending);
        script.pending = {};
        REQUIRE(Run(store, script));
        ++repeated;
      }
    }
    if (nth % 3 == 0) {
      store.Crash({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = nth});
    } else {
      store.Kill();  // the device stays on, with its cache
    }
    store.env().ClearFaults();
    store.Open();
    RequireAll(store.chunks(), script.committed);
    REQUIRE(store.findings().empty());
    if (!struck) break;
  }
  // A run syncs only the directories of the first segments.
  REQUIRE(reported >= (call == SimCall::kSyncDirectory ? 2 : 5));
  if (call == SimCall::kWrite || call == SimCall::kCreate) REQUIRE(repeated >= 2);
}

TEST_CASE("an index that fails to take an entry turns the store read-only, whatever the error") {
  const auto code = GENERATE(StatusCode::kIoError, StatusCode::kCorruption);
  StoreUnderTest store(SmallSegments(TestIndex::kSilt));
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 30);
  store.Commit();
  store.index().FailPuts(Status(code, "the index is broken"));
  PutMany(store.chunks(), 100, 3);
  const Status commit = store.TryCommit();
  REQUIRE_CODE(commit, kReadOnly);
  REQUIRE(commit.cause().find("the index is broken") != std::string_view::npos);
  RequireRefused(store, commit);
  RequireAll(store.chunks(), all);
  store.Kill();
  store.Open();
  RequireAll(store.chunks(), all);
}

TEST_CASE("an index that has no room for an entry is retried, and nothing is appended twice") {
  StoreUnderTest store(SmallSegments(TestIndex::kSilt));
  store.Open();
  PutChunks all = PutMany(store.chunks(), 0, 30);
  store.Commit();
  store.index().FailPuts(Status(StatusCode::kNoSpace, "the index has no room"));
  all.Append(PutMany(store.chunks(), 100, 3));
  REQUIRE_CODE(store.TryCommit(), kNoSpace);
  store.chunks().WaitUntilSealed();  // the sealer adds footers at its own pace
  const uint64_t stored = store.chunks().totals().stored_bytes;
  REQUIRE_CODE(store.TryCommit(), kNoSpace);
  RequireAll(store.chunks(), all);
  store.index().FailPuts(Status::Ok());
  store.Commit();
  store.chunks().WaitUntilSealed();
  REQUIRE(store.chunks().totals().stored_bytes == stored);
  store.Kill();
  store.Open();
  RequireAll(store.chunks(), all);
}

TEST_CASE("chunks accepted while the disk is full are bounded, and wait for room") {
  StoreSettings settings = SmallSegments(TestIndex::kMap);
  StoreUnderTest store(settings);
  store.Open();
  PutChunks all = PutMany(store.chunks(), 0, 10);
  store.Commit();
  store.env().SetCapacity(0);
  Status full;
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < 1000 && full.ok(); ++i) {
    PutChunks batch;
    batch.chunks.push_back(RandomChunk(1000 + i));
    full = TryPut(store.chunks(), batch);
    if (full.ok()) all.Append(batch);
    if (full.ok()) ++accepted;
  }
  REQUIRE_CODE(full, kNoSpace);
  REQUIRE(accepted > 10);
  REQUIRE_CODE(store.TryCommit(), kNoSpace);
  RequireAll(store.chunks(), all);
  store.env().SetCapacity(SimEnv::kUnlimited);
  store.Commit();
  store.Crash({.unsynced = CrashPolicy::Unsynced::kDrop, .seed = 1});
  store.Open();
  RequireAll(store.chunks(), all);
}

TEST_CASE("after a failed sync no chunk is accepted, not even a duplicate") {
  StoreUnderTest store(SmallSegments(TestIndex::kMap));
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 3);
  store.env().FailCall({.calls = SimCall::kSync, .path_part = "segments"});
  const Status failed = store.TryCommit();
  REQUIRE_CODE(failed, kReadOnly);
  PutChunks again = all;
  REQUIRE_CODE(TryPut(store.chunks(), again), kReadOnly);
  RequireRefused(store, failed);
  std::vector<Mutation> last;
  REQUIRE_CODE(store.chunks().Finish(last), kReadOnly);
}

TEST_CASE("a disk that is nearly full is reported before anything is accepted") {
  StoreSettings settings;
  settings.minimum_free_bytes = 1u << 20;
  StoreUnderTest store(settings);
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 50);
  store.Reopen();
  const ChunkStoreTotals before = store.chunks().totals();
  store.env().SetCapacity((1u << 20) + before.stored_bytes - 100000);
  PutChunks batch;
  for (uint64_t i = 0; i < 10; ++i) batch.chunks.push_back(RandomChunk(1000 + i));
  const Status put = TryPut(store.chunks(), batch);
  REQUIRE_CODE(put, kNoSpace);
  REQUIRE(put.path() == store.path());
  REQUIRE_CODE(store.chunks().PutNode(batch.chunks[0]), kNoSpace);
  store.Commit();  // a commit is still possible
  REQUIRE(store.chunks().totals().chunks == before.chunks);
  REQUIRE(store.chunks().totals().stored_bytes == before.stored_bytes);
  RequireAll(store.chunks(), all);

  // As soon as there is room, everything works as before.
  store.env().SetCapacity(SimEnv::kUnlimited);
  REQUIRE_OK(TryPut(store.chunks(), batch));
  store.Commit();
  RequireAll(store.chunks(), batch);
}

TEST_CASE("a disk that fills during many puts is noticed in between") {
  StoreSettings settings;
  settings.minimum_free_bytes = 8u << 20;
  settings.segment_bytes = 4u << 20;
  settings.pipeline_bytes = 1u << 20;
  StoreUnderTest store(settings);
  store.Open();
  store.env().SetCapacity(20u << 20);
  PutChunks all;
  Status full;
  for (uint64_t i = 0; i < 400 && full.ok(); ++i) {
    PutChunks batch;
    batch.chunks.push_back(RandomChunk(i, 64u << 10));
    full = TryPut(store.chunks(), batch);
    if (full.ok()) all.Append(batch);
  }
  REQUIRE_CODE(full, kNoSpace);
  store.Commit();
  RequireAll(store.chunks(), all);
}

}  // namespace siltfs::testing
