// Power cuts, and failures of the device, at every step of recompression.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "fs/interface/store_maintenance.h"
#include "store/env/sim_env.h"
#include "store/segment/segment_files.h"
#include "tests/fs/core/recompression_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"
#include "tests/support/family_chooser.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

const std::string kPath = "/store";

// A closed store with several segments. With deltas, it also has recompressed segments, and most
// chunks of the others resemble chunks of these.
struct Recompressing {
  explicit Recompressing(bool deltas = false) : store(env, kPath) {
    if (deltas) store.AllowDeltas(chooser);
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    if (deltas) WriteResembling(**fs);
    if (!deltas) store.WriteFiles(**fs, 1, 9);
    REQUIRE_OK((*fs)->Close());
  }

  void WriteResembling(FileSystem& fs) {
    const auto write = [&](const std::string& name, Bytes content) {
      WriteLargeFile(fs, name, content);
      store.files[name] = std::move(content);
    };
    for (uint64_t seed = 1; seed <= 5; ++seed)
      write(fmt::format("base {}", seed), RandomBytes(seed, 60'000));
    REQUIRE_OK(fs.SyncAll());
    REQUIRE_OK(fs.maintenance().CollectGarbage(/*dry_run=*/true));  // seals the full segments
    REQUIRE_OK(fs.maintenance().Recompress());
    for (uint64_t seed = 1; seed <= 4; ++seed)
      write(fmt::format("similar {}", seed), SimilarTo(RandomBytes(seed, 60'000), 1));
  }

  SimEnv env;
  FamilyChooser chooser;
  RecompressionStore store;
};

// Requires that the store is complete and sound, can be recompressed, and is sound afterwards.
void RequireWhole(const RecompressionStore& store, SimEnv& env) {
  store.RequireOpensWhole(env);
  {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    const auto report = (*fs)->maintenance().Recompress();
    REQUIRE_OK(report);
    CHECK(report->segments_left == 0);
    CHECK(report->awaiting_recompression_bytes < 128u << 10);
    store.RequireFiles(**fs);
    REQUIRE_OK((*fs)->Close());
  }
  store.RequireSound(env);
  store.RequireStatistics(env);
  REQUIRE(ListSegments(env, kPath)->temporaries.empty());
}

}  // namespace

TEST_CASE("a power cut at any step of recompression loses nothing") {
  const bool deltas = GENERATE(false, true);
  CAPTURE(deltas);
  Recompressing recompressing(deltas);
  auto fs = recompressing.store.Open(recompressing.env);
  REQUIRE_OK(fs);
  const auto before = ForkAndTraceDevice(recompressing.env);
  const auto report = (*fs)->maintenance().Recompress();
  REQUIRE_OK(report);
  REQUIRE(report->segments_rewritten >= 3);
  REQUIRE((report->delta_chunks > 10) == deltas);
  const SimTrace trace = recompressing.env.TakeTrace();
  fs->reset();
  for (const auto unsynced : {CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                              CrashPolicy::Unsynced::kGarble}) {
    const auto device = ForkDevice(*before);
    const uint64_t first = FirstCall(static_cast<uint64_t>(unsynced)) - 1;
    for (size_t cut = 0; cut <= trace.size(); ++cut) {
      INFO(fmt::format("cut before record {} of {}: {}", cut, trace.size(),
                       cut < trace.size() ? Describe(trace[cut]) : "the end"));
      if (cut % CallStep() == first || cut == trace.size()) {
        const auto left = ForkDevice(*device);
        left->PowerCut({.unsynced = unsynced, .seed = cut, .names_in_any_order = cut % 2 == 0});
        RequireWhole(recompressing.store, *left);
      }
      if (cut < trace.size()) REQUIRE_OK(ReplayRecord(*device, trace[cut]));
    }
  }
}

TEST_CASE("a process killed at any step of recompression loses nothing, even with a power cut") {
  Recompressing recompressing;
  auto fs = recompressing.store.Open(recompressing.env);
  REQUIRE_OK(fs);
  const auto before = ForkAndTraceDevice(recompressing.env);
  REQUIRE_OK((*fs)->maintenance().Recompress());
  const SimTrace trace = recompressing.env.TakeTrace();
  fs->reset();
  const auto device = ForkDevice(*before);
  for (size_t cut = 0; cut <= trace.size(); ++cut) {
    INFO(fmt::format("killed before record {} of {}: {}", cut, trace.size(),
                     cut < trace.size() ? Describe(trace[cut]) : "the end"));
    if (cut % CallStep() == 0 || cut == trace.size()) {
      const auto left = ForkDevice(*device);
      {
        auto next = recompressing.store.Open(*left);
        REQUIRE_OK(next);
        recompressing.store.RequireFiles(**next);
      }
      left->PowerCut();
      RequireWhole(recompressing.store, *left);
    }
    if (cut < trace.size()) REQUIRE_OK(ReplayRecord(*device, trace[cut]));
  }
}

TEST_CASE("a device that fails at any step of recompression costs no file") {
  Recompressing recompressing;
  const auto code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  const bool sticky = GENERATE(false, true);
  int struck = 0;
  const uint64_t variant = (code == StatusCode::kNoSpace ? 1 : 0) + (sticky ? 2 : 0);
  for (uint64_t nth = FirstCall(variant);; nth += CallStep()) {
    const auto device = ForkDevice(recompressing.env);
    INFO(fmt::format("call {} fails with {}{}", nth, StatusCodeName(code),
                     sticky ? ", and all after it" : ""));
    auto fs = recompressing.store.Open(*device);
    REQUIRE_OK(fs);
    // The count is read before the fault is set, because other threads make calls, too.
    const uint64_t calls = device->Calls(SimCall::kMutating);
    device->FailCall({.calls = SimCall::kMutating, .nth = nth, .code = code, .sticky = sticky});
    const auto report = (*fs)->maintenance().Recompress();
    const bool reached = device->Calls(SimCall::kMutating) - calls >= nth;
    device->ClearFaults();
    recompressing.store.RequireFiles(**fs);
    const bool closed = (*fs)->Close().ok();
    fs->reset();
    // After a clean unmount, the check and the statistics are right without another mount: no
    // segment's replacement is left for recovery.
    if (closed) {
      recompressing.store.RequireSound(*device);
      recompressing.store.RequireStatistics(*device);
    }
    if (nth % 3 == 0) device->PowerCut();
    RequireWhole(recompressing.store, *device);
    if (!reached) {
      REQUIRE_OK(report);
      break;
    }
    ++struck;
  }
  CHECK(struck > 30 / static_cast<int>(CallStep()));
}

}  // namespace siltfs::testing
