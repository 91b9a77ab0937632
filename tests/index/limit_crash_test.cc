// Power cuts and faults while limits change: tables shrink, filters and tries are dropped and
// loaded.
#include "history.h"
#include "index/silt/silt_index.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";

struct Shape {
  unsigned partition_bits;
  unsigned bucket_bits;
  bool serve_early;
  bool sorted_runs = false;
};

Result<std::unique_ptr<ChunkIndex>> OpenOf(Env& env, const Shape& shape, uint64_t limit) {
  return OpenSiltIndex(env, {.directory = kDirectory,
                             .partition_bits = shape.partition_bits,
                             .bucket_bits = shape.bucket_bits,
                             .hash_secret = std::nullopt,
                             .max_log_pages = 8,
                             .write_batch_pages = 1,
                             .max_hash_stores = 3,
                             .sort_memory_bytes = shape.sorted_runs ? 20'000U : 2000U,
                             .sorted_runs = shape.sorted_runs,
                             .background = false,
                             .memory_limit = limit,
                             .serve_early = shape.serve_early});
}

uint64_t LimitOf(Random& random) {
  const uint64_t limits[] = {0, kNoMemoryLimit, random.Below(1U << 20)};
  return limits[random.Below(3)];
}

WorkloadResult Live(ChunkIndex& index, History& history, uint64_t seed, int rounds) {
  Random random(seed * 77);
  WorkloadResult all;
  for (int round = 0; round < rounds; ++round) {
    if (!index.SetMemoryLimit(LimitOf(random)).ok()) ++all.failures;
    const auto run = RunWorkload(index, history, {.seed = seed * 100 + round, .steps = 5});
    REQUIRE(run.durable >= all.durable);
    all.durable = run.durable;
    all.failures += run.failures;
  }
  return all;
}

// REQUIREs that after the power cut durable entries are present, nothing is damaged, and the index
// works.
void RequireSurvived(SimEnv& env, const Shape& shape, Random& random, History& history,
                     uint64_t durable) {
  auto open = [&] {
    auto index = OpenOf(env, shape, LimitOf(random));
    REQUIRE_OK(index);
    return std::move(*index);
  };
  auto index = open();
  REQUIRE(index->durable_sequence() >= durable);
  REQUIRE(index->stats().damaged_pages == 0);
  CheckAfterCrash(*index, history);
  CheckForEach(*index, history);
  REQUIRE_OK(index->SetMemoryLimit(LimitOf(random)));
  CheckLifeGoesOn(std::move(index), history, open);
}

bool CutAt(const Shape& shape, uint64_t seed, uint64_t cut, const CrashPolicy& policy, bool twice) {
  SimEnv env(seed);
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  REQUIRE_OK(env.SyncDirectory("/"));
  env.CutAtCall(cut);
  History history;
  WorkloadResult run;
  Random random(seed * 1000 + cut);
  {
    auto index = OpenOf(env, shape, LimitOf(random));
    if (index.ok()) {
      run = Live(**index, history, seed, 12);
      const Status closed = (*index)->Close();
      if (closed.ok()) history.NoteFlushed();
      run.durable = (*index)->durable_sequence();
    }
  }
  const bool struck = !env.PowerIsOn();
  env.Reboot(policy);
  if (twice) {
    // Cuts the power also during recovery, in a random call. Entries reported durable stay durable.
    env.CutAtCall(1 + random.Below(12));
    auto index = OpenOf(env, shape, LimitOf(random));
    if (index.ok()) {
      const uint64_t durable = (*index)->durable_sequence();
      if (durable > 0) REQUIRE(durable >= run.durable);
      run.durable = std::max(run.durable, durable);
      (*index)->SetMemoryLimit(LimitOf(random)).IgnoreError("power cut");
      run.durable = std::max(run.durable, (*index)->durable_sequence());
    }
    index = Status(StatusCode::kIoError, "gone");
    index.status().IgnoreError("the power was cut");
    env.Reboot({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = cut});
  }
  RequireSurvived(env, shape, random, history, run.durable);
  return struck;
}

}  // namespace

TEST_CASE("a power cut in any call while limits change loses no durable entry") {
  using Unsynced = CrashPolicy::Unsynced;
  Shape shape = GENERATE(Shape{0, 9, false}, Shape{1, 10, true}, Shape{2, 2, true});
  const auto unsynced = GENERATE(Unsynced::kDrop, Unsynced::kKeep, Unsynced::kSubset);
  const bool twice = GENERATE(false, true);
  const uint64_t seed = GENERATE(1, 2);
  shape.sorted_runs = seed == 2;
  uint64_t cut = FirstCall(static_cast<uint64_t>(unsynced) + (twice ? 4 : 0) + seed);
  while (true) {
    INFO("bucket bits " << shape.bucket_bits << ", seed " << seed << ", cut " << cut << ", policy "
                        << static_cast<int>(unsynced) << ", twice " << twice);
    if (!CutAt(shape, seed, cut, {.unsynced = unsynced, .seed = seed * 1000 + cut}, twice)) break;
    cut += CallStep();
  }
  CHECK(cut > 10);
}

TEST_CASE("a failing call while limits change is returned and loses no durable entry") {
  const Shape shape = GENERATE(Shape{0, 9, false}, Shape{1, 10, true}, Shape{2, 2, true, true});
  const StatusCode code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  const bool sticky = GENERATE(false, true);
  const uint64_t seed = 11;
  const uint64_t variant = (code == StatusCode::kNoSpace ? 1 : 0) + (sticky ? 2 : 0);
  for (uint64_t nth = FirstCall(variant); nth <= 400; nth += CallStep()) {
    INFO("bucket bits " << shape.bucket_bits << ", call " << nth << " " << StatusCodeName(code)
                        << " sticky " << sticky);
    SimEnv env(seed);
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    REQUIRE_OK(env.SyncDirectory("/"));
    const uint64_t before = env.Calls(SimCall::kMutating);
    env.FailCall({.calls = SimCall::kMutating,
                  .nth = nth,
                  .code = code,
                  .sticky = sticky,
                  .path_part = "",
                  .bytes_written = nth % 3 * 1000});
    History history;
    WorkloadResult run;
    int failures = 0;
    {
      auto index = OpenOf(env, shape, nth % 2 == 0 ? 0 : kNoMemoryLimit);
      if (index.ok()) {
        run = Live(**index, history, seed, 12);
        CheckNow(**index, history);
        const Status closed = (*index)->Close();
        if (closed.ok()) history.NoteFlushed();
        failures = run.failures + (closed.ok() ? 0 : 1);
        run.durable = (*index)->durable_sequence();
      } else {
        failures = 1;
      }
    }
    if (env.Calls(SimCall::kMutating) - before < nth) break;
    // On a full disk, closing the index leaves the edits of the manifest.
    const auto edits = env.GetFileInfo(JoinPath(kDirectory, "manifest.edits"));
    const bool has_edits = edits.ok() && edits->size > 0;
    REQUIRE((failures > 0 || (code == StatusCode::kNoSpace && has_edits)));
    env.ClearFaults();
    env.PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = seed + nth});
    Random random(nth);
    RequireSurvived(env, shape, random, history, run.durable);
  }
}

// The process is killed, perhaps after a failed sync. The next process opens the index, with
// serve_early or without, reports a durable sequence and runs a little. Then the power fails in one
// of its calls.
TEST_CASE("a durable sequence reported after a kill survives a power cut") {
  using Unsynced = CrashPolicy::Unsynced;
  const Shape shape = GENERATE(Shape{0, 9, false}, Shape{1, 10, true}, Shape{2, 2, true});
  const auto unsynced = GENERATE(Unsynced::kDrop, Unsynced::kSubset);
  const bool fault = GENERATE(false, true);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    for (uint64_t cut = FirstCall(seed); cut <= 40; cut += CallStep()) {
      INFO("bucket bits " << shape.bucket_bits << ", seed " << seed << ", cut " << cut << ", fault "
                          << fault);
      SimEnv env(seed);
      REQUIRE_OK(env.CreateDirectory(kDirectory));
      REQUIRE_OK(env.SyncDirectory("/"));
      History history;
      WorkloadResult run;
      Random random(seed * 1000 + cut);
      {
        auto index = OpenOf(env, shape, LimitOf(random));
        REQUIRE_OK(index);
        if (fault) {
          env.FailCall({.calls = SimCall::kSync, .nth = 1 + random.Below(30), .path_part = ""});
        }
        run = Live(**index, history, seed, static_cast<int>(1 + random.Below(12)));
      }
      env.ClearFaults();
      env.CutAtCall(cut);
      {
        auto index = OpenOf(env, shape, LimitOf(random));
        if (index.ok()) {
          const uint64_t durable = (*index)->durable_sequence();
          if (env.PowerIsOn()) REQUIRE(durable >= run.durable);
          run.durable = std::max(run.durable, durable);
          (*index)->SetMemoryLimit(LimitOf(random)).IgnoreError("power cut");
          // The power may fail in this flush. So the history does not note operations as flushed,
          // and only the reported sequence counts.
          (*index)->Flush().IgnoreError("power cut");
          run.durable = std::max(run.durable, (*index)->durable_sequence());
        }
      }
      env.Reboot({.unsynced = unsynced, .seed = cut});
      RequireSurvived(env, shape, random, history, run.durable);
    }
  }
}

}  // namespace siltfs::testing
