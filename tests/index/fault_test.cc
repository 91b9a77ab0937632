// Failing calls: each mutating call of a run fails once, or it and all later calls fail. The error
// is returned, answers stay right, and entries reported durable survive a power cut.
#include "engines.h"
#include "history.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";

uint64_t MutatingCallsOfALife(const Engine& engine, uint64_t seed) {
  SimEnv env(seed);
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  const uint64_t before = env.Calls(SimCall::kMutating);
  History history;
  auto index = engine.open(env, kDirectory, false);
  REQUIRE_OK(index);
  REQUIRE(RunWorkload(**index, history, {.seed = seed, .steps = 70}).failures == 0);
  REQUIRE_OK((*index)->Close());
  return env.Calls(SimCall::kMutating) - before;
}

bool HasManifestEdits(SimEnv& env) {
  const auto info = env.GetFileInfo(JoinPath(kDirectory, "manifest.edits"));
  return info.ok() && info->size > 0;
}

void LiveWithFault(const Engine& engine, uint64_t seed, const SimFault& fault) {
  SimEnv env(seed);
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  REQUIRE_OK(env.SyncDirectory("/"));
  env.FailCall(fault);
  History history;
  WorkloadResult run;
  int failures = 0;
  {
    auto index = engine.open(env, kDirectory, false);
    if (index.ok()) {
      run = RunWorkload(**index, history, {.seed = seed, .steps = 70});
      CheckNow(**index, history);
      const Status closed = (*index)->Close();
      if (closed.ok()) history.NoteFlushed();
      failures = run.failures + (closed.ok() ? 0 : 1);
      run.durable = (*index)->durable_sequence();
    } else {
      failures = 1;
    }
  }
  // Every failure is reported, with two exceptions: if a full disk has no room for a new manifest,
  // closing the index leaves the edits of the old one; and some engines make room and go on.
  const bool full = fault.code == StatusCode::kNoSpace;
  REQUIRE((failures > 0 || (full && HasManifestEdits(env)) ||
           (full && !fault.sticky && engine.makes_room)));
  env.ClearFaults();
  env.PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = seed + fault.nth});

  auto open = [&] {
    auto index = engine.open(env, kDirectory, false);
    REQUIRE_OK(index);
    return std::move(*index);
  };
  auto index = open();
  REQUIRE(index->durable_sequence() >= run.durable);
  CheckAfterCrash(*index, history);
  CheckForEach(*index, history);
  CheckLifeGoesOn(std::move(index), history, open);
}

}  // namespace

TEST_CASE("a failing call is returned as an error and loses no durable entry") {
  const size_t engine_number = GENERATE(range(size_t{0}, Engines().size()));
  const StatusCode code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  const bool sticky = GENERATE(false, true);
  const Engine& engine = Engines()[engine_number];
  const uint64_t seed = 11;
  const uint64_t calls = MutatingCallsOfALife(engine, seed);
  REQUIRE(calls > 10);
  const uint64_t variant = (code == StatusCode::kNoSpace ? 1 : 0) + (sticky ? 2 : 0);
  const uint64_t step = CallStepAmong(calls);
  for (uint64_t nth = FirstCallAmong(2 * variant, step); nth <= calls; nth += step) {
    INFO(engine.name << ", call " << nth << " of " << calls << " fails with "
                     << StatusCodeName(code) << (sticky ? ", and all after it" : ""));
    LiveWithFault(engine, seed,
                  {.calls = SimCall::kMutating,
                   .nth = nth,
                   .code = code,
                   .sticky = sticky,
                   .path_part = "",
                   .bytes_written = nth % 3 * 1000});
  }
}

TEST_CASE("a failing flash read is returned as an error, and later reads are right") {
  const Engine& engine = GENERATE(from_range(Engines()));
  INFO(engine.name);
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  auto index = engine.open(env, kDirectory, false);
  REQUIRE_OK(index);
  History history;
  RunWorkload(**index, history, {.seed = 12, .steps = 300});
  const auto names = history.Names();
  std::vector<Answer> answers(names.size());
  const uint64_t before = env.Calls(SimCall::kRead);
  REQUIRE_OK((*index)->Get(names, answers));
  const uint64_t reads = env.Calls(SimCall::kRead) - before;
  for (uint64_t nth = 1; nth <= reads; ++nth) {
    env.FailCall({.calls = SimCall::kRead, .nth = nth, .path_part = ""});
    REQUIRE_CODE((*index)->Get(names, answers), kIoError);
    for (size_t i = 0; i < names.size(); ++i) {
      REQUIRE((!answers[i] || history.MayAnswerNow(names[i], answers[i])));
    }
    env.ClearFaults();
  }
  CheckNow(**index, history);
}

TEST_CASE("puts and flushes succeed again when a full disk has room") {
  const Engine& engine = GENERATE(from_range(Engines()));
  INFO(engine.name);
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  REQUIRE_OK(env.SyncDirectory("/"));
  auto index = engine.open(env, kDirectory, false);
  REQUIRE_OK(index);
  History history;
  REQUIRE(RunWorkload(**index, history, {.seed = 13, .steps = 100}).failures == 0);
  REQUIRE_OK((*index)->Flush());
  const uint64_t durable = (*index)->durable_sequence();
  for (uint64_t pages = 0; pages < 6; ++pages) {
    auto space = env.GetDiskSpace(kDirectory);
    REQUIRE_OK(space);
    env.SetCapacity(space->total_bytes - space->free_bytes + pages * 4096);
    RunWorkload(**index, history, {.seed = 14 + pages, .steps = 100, .names = 1000});
    const Status full = (*index)->Flush();
    full.IgnoreError("a map may fit although a log does not");
    CheckNow(**index, history);
    env.SetCapacity(SimEnv::kUnlimited);
    REQUIRE(RunWorkload(**index, history, {.seed = 20 + pages, .steps = 100}).failures == 0);
    REQUIRE_OK((*index)->Flush());
    history.NoteFlushed();
    CheckNow(**index, history);
  }
  index->reset();
  env.PowerCut();
  index = engine.open(env, kDirectory, false);
  REQUIRE_OK(index);
  CHECK((*index)->durable_sequence() >= durable);
  CheckAfterCrash(**index, history);
}

}  // namespace siltfs::testing
