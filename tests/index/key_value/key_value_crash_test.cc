// Power cuts and failures in every call of a run: flushed values are present, unflushed values may
// be present, and no key has a value that was never put for it.
#include "key_value_history.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

struct Shape {
  size_t slot_size;
  uint64_t memory_limit;
};

KeyValueOptions OptionsOf(const Shape& shape) {
  KeyValueOptions options = TinyKeyValueOptions(shape.slot_size);
  options.index.memory_limit = shape.memory_limit;
  // Makes puts durable also without a Flush.
  options.index.entries_per_flush = 37;
  return options;
}

void MakeDirectory(SimEnv& env, const Shape& shape) {
  REQUIRE_OK(env.CreateDirectory(OptionsOf(shape).directory));
  REQUIRE_OK(env.SyncDirectory("/"));
}

// A run that may end in any call. Returns the number of failed operations, including opening and
// closing.
int Live(SimEnv& env, const Shape& shape, uint64_t seed, KeyValueHistory& history, int steps) {
  auto store = KeyValueStore::Open(env, OptionsOf(shape));
  if (!store.ok()) return 1;
  const int failures = RunWorkload(**store, history, {.seed = seed, .steps = steps, .keys = 25});
  const Status closed = (*store)->Close();
  if (closed.ok()) history.NoteFlushed();
  return failures + (closed.ok() ? 0 : 1);
}

// REQUIREs that the store is in an allowed state after a crash, continues to work, and stays
// correct.
void RequireSurvived(SimEnv& env, const Shape& shape, uint64_t seed, KeyValueHistory& history) {
  auto store = KeyValueStore::Open(env, OptionsOf(shape));
  REQUIRE_OK(store);
  const auto answers = CheckAfterCrash(**store, history);
  CheckVerifies(**store);
  for (const auto& [key, answer] : answers) history.Settle(key, answer, true);
  REQUIRE(RunWorkload(**store, history, {.seed = seed + 1, .steps = 30, .keys = 25}) == 0);
  CheckNow(**store, history);
  REQUIRE_OK((*store)->Close());
  history.NoteFlushed();
  env.PowerCut({.unsynced = CrashPolicy::Unsynced::kDrop});
  store = KeyValueStore::Open(env, OptionsOf(shape));
  REQUIRE_OK(store);
  CheckAfterCrash(**store, history);
}

bool CutAt(const Shape& shape, uint64_t seed, uint64_t cut, const CrashPolicy& policy, bool twice) {
  SimEnv env(seed);
  MakeDirectory(env, shape);
  KeyValueHistory history;
  env.CutAtCall(cut);
  Live(env, shape, seed, history, 60);
  const bool struck = !env.PowerIsOn();
  env.Reboot(policy);
  if (twice) {
    env.CutAtCall(1 + cut % 17);
    auto store = KeyValueStore::Open(env, OptionsOf(shape));
    store.status().IgnoreError("power cut");
    store = Status(StatusCode::kIoError, "gone");
    store.status().IgnoreError("the power was cut");
    env.Reboot({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = cut});
  }
  RequireSurvived(env, shape, seed, history);
  return struck;
}

}  // namespace

TEST_CASE("a power cut in any call of a key-value store loses nothing that was flushed") {
  using Unsynced = CrashPolicy::Unsynced;
  const Shape shape = GENERATE(Shape{32, kNoMemoryLimit}, Shape{64, kNoMemoryLimit}, Shape{512, 0});
  const auto unsynced = GENERATE(Unsynced::kDrop, Unsynced::kKeep, Unsynced::kSubset);
  const bool twice = GENERATE(false, true);
  const uint64_t seed = 1;
  uint64_t cut = FirstCall(static_cast<uint64_t>(unsynced) + (twice ? 4 : 0));
  while (true) {
    INFO("slots of " << shape.slot_size << ", seed " << seed << ", cut " << cut << ", policy "
                     << static_cast<int>(unsynced) << ", twice " << twice);
    if (!CutAt(shape, seed, cut, {.unsynced = unsynced, .seed = seed * 1000 + cut}, twice)) break;
    cut += CallStep();
  }
  CHECK(cut > 50);
}

TEST_CASE("a killed process loses no flushed value") {
  const Shape shape{64, kNoMemoryLimit};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimEnv env(seed);
    MakeDirectory(env, shape);
    KeyValueHistory history;
    {
      auto store = KeyValueStore::Open(env, OptionsOf(shape));
      REQUIRE_OK(store);
      REQUIRE(RunWorkload(**store, history, {.seed = seed, .steps = 200, .keys = 25}) == 0);
    }
    RequireSurvived(env, shape, seed, history);
  }
}

TEST_CASE("a failing call of a key-value store is returned and loses no flushed value") {
  const Shape shape = GENERATE(Shape{32, 0}, Shape{64, kNoMemoryLimit});
  const StatusCode code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  const bool sticky = GENERATE(false, true);
  const uint64_t seed = 11;
  uint64_t calls = 0;
  {
    SimEnv env(seed);
    MakeDirectory(env, shape);
    const uint64_t before = env.Calls(SimCall::kMutating);
    KeyValueHistory history;
    REQUIRE(Live(env, shape, seed, history, 60) == 0);
    calls = env.Calls(SimCall::kMutating) - before;
  }
  REQUIRE(calls > 50);
  const uint64_t variant = (code == StatusCode::kNoSpace ? 1 : 0) + (sticky ? 2 : 0);
  for (uint64_t nth = FirstCall(variant); nth <= calls; nth += CallStep()) {
    INFO("slots of " << shape.slot_size << ", call " << nth << " of " << calls << " fails with "
                     << StatusCodeName(code) << (sticky ? ", and all after it" : ""));
    SimEnv env(seed);
    MakeDirectory(env, shape);
    env.FailCall({.calls = SimCall::kMutating,
                  .nth = nth,
                  .code = code,
                  .sticky = sticky,
                  .path_part = "",
                  .bytes_written = nth % 3 * 1000});
    KeyValueHistory history;
    const int failures = Live(env, shape, seed, history, 60);
    // A failed removal of an unneeded file may be repeated later. So a single failing call need not
    // make an operation fail.
    if (sticky) REQUIRE(failures > 0);
    env.ClearFaults();
    env.PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = seed + nth});
    RequireSurvived(env, shape, seed, history);
  }
}

TEST_CASE("a store accepts all calls again when a full disk has room") {
  const Shape shape = GENERATE(Shape{32, kNoMemoryLimit}, Shape{256, kNoMemoryLimit});
  SimEnv env(7);
  MakeDirectory(env, shape);
  KeyValueHistory history;
  auto store = KeyValueStore::Open(env, OptionsOf(shape));
  REQUIRE_OK(store);
  REQUIRE(RunWorkload(**store, history, {.seed = 3, .steps = 100}) == 0);
  auto space = env.GetDiskSpace("/");
  REQUIRE_OK(space);
  env.SetCapacity(200'000);
  Random random(9);
  int full = 0;
  for (int i = 0; i < 300; ++i) {
    Bytes value(2000);
    random.Fill(value);
    const Status put = (*store)->Put(AsBytes(KeyOf(i % 40)), value);
    history.Note(KeyOf(i % 40), value, put.ok());
    if (put.ok()) continue;
    REQUIRE(put.Is(StatusCode::kNoSpace));
    ++full;
  }
  CHECK(full > 0);
  CheckNow(**store, history);
  env.SetCapacity(SimEnv::kUnlimited);
  REQUIRE(RunWorkload(**store, history, {.seed = 4, .steps = 100}) == 0);
  CheckNow(**store, history);
  REQUIRE_OK((*store)->Close());
  history.NoteFlushed();
  store = KeyValueStore::Open(env, OptionsOf(shape));
  REQUIRE_OK(store);
  CheckNow(**store, history);
}

TEST_CASE("a store with an interrupted creation is durable after the next opening") {
  const Shape shape{64, kNoMemoryLimit};
  const std::string key = "key";
  const Bytes value(3000, 7);
  for (uint64_t nth = 1;; ++nth) {
    INFO("call " << nth << " fails");
    SimEnv env(nth);
    MakeDirectory(env, shape);
    env.FailCall({.calls = SimCall::kMutating,
                  .nth = nth,
                  .code = StatusCode::kIoError,
                  .sticky = true,
                  .path_part = "",
                  .bytes_written = 0});
    const bool made = KeyValueStore::Open(env, OptionsOf(shape)).ok();
    env.ClearFaults();
    // The state after a killed process: its changes are visible, but not on the device.
    {
      auto store = KeyValueStore::Open(env, OptionsOf(shape));
      REQUIRE_OK(store);
      REQUIRE_OK((*store)->Put(AsBytes(key), value));
      REQUIRE_OK((*store)->Flush());
    }
    env.PowerCut({.unsynced = CrashPolicy::Unsynced::kDrop});
    auto store = KeyValueStore::Open(env, OptionsOf(shape));
    REQUIRE_OK(store);
    auto got = (*store)->Get(AsBytes(key));
    REQUIRE_OK(got);
    REQUIRE(*got == value);
    if (made) break;
  }
}

}  // namespace siltfs::testing
