// Power cuts, kills of the process and failures of the device at every step of a garbage
// collection.
#include <fmt/format.h>

#include <string>

#include "fs/interface/store_maintenance.h"
#include "fs/open/store_stats.h"
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

// A closed store with some half dead and some wholly dead segments. With deltas, some of the
// segments have chunks to which no file refers, but which are bases.
struct Collecting {
  explicit Collecting(bool deltas = false) : store(env, kPath) {
    if (deltas) store.AllowDeltas(chooser);
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    if (deltas) WriteResembling(**fs);
    for (uint64_t i = 0; i < 10; ++i) {
      const std::string name = fmt::format("random {}", i);
      store.files[name] = RandomBytes(i, 30'000);
      WriteLargeFile(**fs, name, store.files[name]);
    }
    // One file is large enough to have recipe nodes.
    store.files["large"] = RandomBytes(99, 900'000);
    WriteLargeFile(**fs, "large", store.files["large"]);
    store.files["large too"] = RandomBytes(98, 900'000);
    WriteLargeFile(**fs, "large too", store.files["large too"]);
    for (const std::string name : {"random 1", "random 3", "random 4", "random 6", "large"}) {
      REQUIRE_OK((*fs)->Unlink(kRootInode, name));
      store.files.erase(name);
    }
    REQUIRE_OK((*fs)->Close());
    fs->reset();
    const auto stats = ReadStoreStats(env, kPath);
    REQUIRE_OK(stats);
    stored = stats->stored_bytes;
  }

  void WriteResembling(FileSystem& fs) {
    const auto settle = [&] {
      REQUIRE_OK(fs.SyncAll());
      REQUIRE_OK(fs.maintenance().CollectGarbage(/*dry_run=*/true));  // seals the full segments
      const auto report = fs.maintenance().Recompress();
      REQUIRE_OK(report);
      return report->delta_chunks;
    };
    // Those between the bases are not resembled by any file, and die with the bases' files.
    for (uint64_t i = 0; i < 8; ++i) {
      WriteLargeFile(fs, fmt::format("base {}", i), RandomBytes(200 + i, 30'000));
      WriteLargeFile(fs, fmt::format("between {}", i), RandomBytes(300 + i, 30'000));
    }
    settle();
    for (uint64_t i = 0; i < 8; ++i) {
      const std::string name = fmt::format("similar {}", i);
      store.files[name] = SimilarTo(RandomBytes(200 + i, 30'000), 1);
      WriteLargeFile(fs, name, store.files[name]);
    }
    REQUIRE(settle() > 8);
    for (uint64_t i = 0; i < 8; ++i) {
      REQUIRE_OK(fs.Unlink(kRootInode, fmt::format("base {}", i)));
      REQUIRE_OK(fs.Unlink(kRootInode, fmt::format("between {}", i)));
    }
  }

  SimEnv env;
  FamilyChooser chooser;
  RecompressionStore store;
  uint64_t stored = 0;
};

// Requires that the store is complete and sound, and that the next collection finds the remaining
// garbage.
void RequireWhole(const Collecting& collecting, SimEnv& env) {
  const RecompressionStore& store = collecting.store;
  store.RequireOpensWhole(env);
  {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    const auto report = (*fs)->maintenance().CollectGarbage(false);
    REQUIRE_OK(report);
    CHECK(report->segments_left == 0);
    store.RequireFiles(**fs);
    REQUIRE_OK((*fs)->Close());
  }
  store.RequireSound(env);
  store.RequireStatistics(env);
  CHECK(ReadStoreStats(env, kPath)->stored_bytes < collecting.stored * 7 / 10);
}

// The device before the collection, with the store open, and the trace of the collection's calls.
struct Collection {
  explicit Collection(Collecting& collecting) {
    auto fs = collecting.store.Open(collecting.env);
    REQUIRE_OK(fs);
    before = ForkAndTraceDevice(collecting.env);
    const auto report = (*fs)->maintenance().CollectGarbage(false);
    REQUIRE_OK(report);
    REQUIRE(report->segments_removed >= 10);
    REQUIRE(report->bytes_copied > 50'000);
    trace = collecting.env.TakeTrace();
  }

  std::unique_ptr<SimEnv> before;
  SimTrace trace;
};

}  // namespace

TEST_CASE("a power cut at any step of a collection loses nothing") {
  const bool deltas = GENERATE(false, true);
  CAPTURE(deltas);
  Collecting collecting(deltas);
  const Collection collection(collecting);
  const SimTrace& trace = collection.trace;
  uint64_t cuts = 0;
  for (const auto unsynced : {CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                              CrashPolicy::Unsynced::kGarble}) {
    const auto device = ForkDevice(*collection.before);
    const uint64_t first = FirstCall(static_cast<uint64_t>(unsynced)) - 1;
    for (size_t cut = 0; cut <= trace.size(); ++cut) {
      INFO(fmt::format("cut before record {} of {}: {}", cut, trace.size(),
                       cut < trace.size() ? Describe(trace[cut]) : "the end"));
      if (cut % CallStep() == first || cut == trace.size()) {
        const auto left = ForkDevice(*device);
        left->PowerCut({.unsynced = unsynced, .seed = cut, .names_in_any_order = cut % 2 == 0});
        RequireWhole(collecting, *left);
        ++cuts;
      }
      if (cut < trace.size()) REQUIRE_OK(ReplayRecord(*device, trace[cut]));
    }
  }
  CHECK(cuts > 300 / CallStep());
}

TEST_CASE("a process killed at any step of a collection loses nothing, even with a power cut") {
  Collecting collecting;
  const Collection collection(collecting);
  const SimTrace& trace = collection.trace;
  const auto device = ForkDevice(*collection.before);
  for (size_t cut = 0; cut <= trace.size(); ++cut) {
    INFO(fmt::format("killed before record {} of {}: {}", cut, trace.size(),
                     cut < trace.size() ? Describe(trace[cut]) : "the end"));
    if (cut % CallStep() == 0 || cut == trace.size()) {
      const auto left = ForkDevice(*device);
      {
        auto next = collecting.store.Open(*left);
        REQUIRE_OK(next);
        collecting.store.RequireFiles(**next);
      }
      left->PowerCut();
      RequireWhole(collecting, *left);
    }
    if (cut < trace.size()) REQUIRE_OK(ReplayRecord(*device, trace[cut]));
  }
}

TEST_CASE("a device that fails at any step of a collection costs no file") {
  Collecting collecting;
  const auto code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  const bool sticky = GENERATE(false, true);
  uint64_t struck = 0;
  for (uint64_t nth = FirstCall(sticky ? 2 : 0);; nth += CallStep()) {
    const auto device = ForkDevice(collecting.env);
    INFO(fmt::format("call {} fails with {}{}", nth, StatusCodeName(code),
                     sticky ? ", and all after it" : ""));
    auto fs = collecting.store.Open(*device);
    REQUIRE_OK(fs);
    // The count is read before the fault is set, because other threads make calls, too.
    const uint64_t calls = device->Calls(SimCall::kMutating);
    device->FailCall({.calls = SimCall::kMutating, .nth = nth, .code = code, .sticky = sticky});
    const auto report = (*fs)->maintenance().CollectGarbage(false);
    const bool reached = device->Calls(SimCall::kMutating) - calls >= nth;
    device->ClearFaults();
    collecting.store.RequireFiles(**fs);
    const bool closed = (*fs)->Close().ok();
    fs->reset();
    if (closed) {
      collecting.store.RequireSound(*device);
      collecting.store.RequireStatistics(*device);
    }
    if (nth % 3 == 0) device->PowerCut();
    RequireWhole(collecting, *device);
    if (!reached) {
      REQUIRE_OK(report);
      break;
    }
    ++struck;
  }
  CHECK(struck > 30 / CallStep());
}

}  // namespace siltfs::testing
