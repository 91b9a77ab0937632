// The power is cut in any call, and any part of the unsynced writes survives. When the index is
// opened again, it has all entries up to its durable sequence, and no entry that was never put.
#include "engines.h"
#include "history.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";

uint64_t CallsOfALife(const Engine& engine, uint64_t seed) {
  SimEnv env(seed);
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  REQUIRE_OK(env.SyncDirectory("/"));
  const uint64_t before = env.Calls(SimCall::kMutating);
  History history;
  auto index = engine.open(env, kDirectory, false);
  REQUIRE_OK(index);
  REQUIRE(RunWorkload(**index, history, {.seed = seed, .steps = 70}).failures == 0);
  REQUIRE_OK((*index)->Close());
  return env.Calls(SimCall::kMutating) - before;
}

// Runs with a power cut in the `cut`-th mutating call. Returns false if the run ended earlier.
bool CutAt(const Engine& engine, uint64_t seed, uint64_t cut, const CrashPolicy& policy) {
  SimEnv env(seed);
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  REQUIRE_OK(env.SyncDirectory("/"));
  env.CutAtCall(cut);
  History history;
  WorkloadResult run;
  {
    auto index = engine.open(env, kDirectory, false);
    if (index.ok()) {
      run = RunWorkload(**index, history, {.seed = seed, .steps = 70});
      const Status closed = (*index)->Close();
      if (closed.ok()) history.NoteFlushed();
      run.durable = (*index)->durable_sequence();
    }
  }
  const bool struck = !env.PowerIsOn();
  env.Reboot(policy);

  auto open = [&] {
    auto index = engine.open(env, kDirectory, false);
    REQUIRE_OK(index);
    return std::move(*index);
  };
  auto index = open();
  REQUIRE(index->durable_sequence() >= run.durable);
  REQUIRE(index->stats().damaged_pages == 0);  // a torn tail does not count as damage
  CheckAfterCrash(*index, history);
  CheckForEach(*index, history);
  CheckLifeGoesOn(std::move(index), history, open);
  return struck;
}

}  // namespace

TEST_CASE("a power cut in any call loses no durable entry and creates none") {
  using Unsynced = CrashPolicy::Unsynced;
  const size_t engine_number = GENERATE(range(size_t{0}, Engines().size()));
  const auto unsynced =
      GENERATE(Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix, Unsynced::kSubset);
  const uint64_t seed = GENERATE(1, 2);
  const Engine& engine = Engines()[engine_number];
  const uint64_t step = CallStepAmong(CallsOfALife(engine, seed));
  uint64_t cut = FirstCallAmong(static_cast<uint64_t>(unsynced) + 4 * (seed - 1), step);
  while (true) {
    INFO(engine.name << ", seed " << seed << ", power cut in call " << cut << ", policy "
                     << static_cast<int>(unsynced));
    if (!CutAt(engine, seed, cut, {.unsynced = unsynced, .seed = seed * 1000 + cut})) break;
    cut += step;
  }
  CHECK(cut > 10);
}

}  // namespace siltfs::testing
