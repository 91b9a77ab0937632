// The power going, and the device failing, at every step of settling.
#include <fmt/format.h>

#include "store/env/sim_env.h"
#include "store/segment/segment_files.h"
#include "tests/fs/core/settle_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

const std::string kPath = "/store";

// A closed store of some segments.
struct Settling {
  Settling() : store(env, kPath) {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    store.WriteFiles(**fs, 1, 9);
    REQUIRE_OK((*fs)->Close());
  }

  SimEnv env;
  SettleStore store;
};

// What is left is whole and sound, can be settled, and then still is.
void RequireWhole(const SettleStore& store, SimEnv& env) {
  store.RequireSound(env);
  {
    auto fs = store.Open(env, /*read_only=*/true);
    REQUIRE_OK(fs);
    store.RequireFiles(**fs);
    REQUIRE_OK((*fs)->Close());
  }
  {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    store.RequireFiles(**fs);
    REQUIRE_OK((*fs)->Close());
  }
  store.RequireSound(env);
  store.RequireFigures(env);
  {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    const auto report = (*fs)->Settle();
    REQUIRE_OK(report);
    CHECK(report->segments_left == 0);
    CHECK(report->awaiting_recompression_bytes < 128u << 10);
    store.RequireFiles(**fs);
    REQUIRE_OK((*fs)->Close());
  }
  store.RequireSound(env);
  store.RequireFigures(env);
  REQUIRE(ListSegments(env, kPath)->temporaries.empty());
}

}  // namespace

TEST_CASE("a power cut at any step of settling loses nothing") {
  Settling settling;
  auto fs = settling.store.Open(settling.env);
  REQUIRE_OK(fs);
  const auto before = settling.env.Fork();
  settling.env.StartTrace();
  const auto report = (*fs)->Settle();
  REQUIRE_OK(report);
  REQUIRE(report->segments_rewritten >= 3);
  const SimTrace trace = settling.env.TakeTrace();
  fs->reset();
  for (const auto unsynced : {CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                              CrashPolicy::Unsynced::kGarble}) {
    const auto device = before->Fork();
    const uint64_t first = FirstCall(static_cast<uint64_t>(unsynced)) - 1;
    for (size_t cut = 0; cut <= trace.size(); ++cut) {
      INFO(fmt::format("cut before record {} of {}: {}", cut, trace.size(),
                       cut < trace.size() ? Describe(trace[cut]) : "the end"));
      if (cut % CallStep() == first || cut == trace.size()) {
        const auto left = device->Fork();
        left->PowerCut({.unsynced = unsynced, .seed = cut, .names_in_any_order = cut % 2 == 0});
        RequireWhole(settling.store, *left);
      }
      if (cut < trace.size()) REQUIRE_OK(device->Replay(trace[cut]));
    }
  }
}

TEST_CASE("a process that dies at any step of settling loses nothing, nor does a power cut then") {
  Settling settling;
  auto fs = settling.store.Open(settling.env);
  REQUIRE_OK(fs);
  const auto before = settling.env.Fork();
  settling.env.StartTrace();
  REQUIRE_OK((*fs)->Settle());
  const SimTrace trace = settling.env.TakeTrace();
  fs->reset();
  const auto device = before->Fork();
  for (size_t cut = 0; cut <= trace.size(); ++cut) {
    INFO(fmt::format("death before record {} of {}: {}", cut, trace.size(),
                     cut < trace.size() ? Describe(trace[cut]) : "the end"));
    if (cut % CallStep() == 0 || cut == trace.size()) {
      const auto left = device->Fork();
      {
        auto next = settling.store.Open(*left);
        REQUIRE_OK(next);
        settling.store.RequireFiles(**next);
      }
      left->PowerCut();
      RequireWhole(settling.store, *left);
    }
    if (cut < trace.size()) REQUIRE_OK(device->Replay(trace[cut]));
  }
}

TEST_CASE("a device that fails at any step of settling costs no file") {
  Settling settling;
  const auto code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  const bool sticky = GENERATE(false, true);
  int struck = 0;
  const uint64_t variant = (code == StatusCode::kNoSpace ? 1 : 0) + (sticky ? 2 : 0);
  for (uint64_t nth = FirstCall(variant);; nth += CallStep()) {
    const auto device = settling.env.Fork();
    INFO(fmt::format("call {} fails with {}{}", nth, StatusCodeName(code),
                     sticky ? ", and all after it" : ""));
    auto fs = settling.store.Open(*device);
    REQUIRE_OK(fs);
    // In this order: other threads make calls, too.
    const uint64_t calls = device->Calls(SimCall::kMutating);
    device->FailCall({.calls = SimCall::kMutating, .nth = nth, .code = code, .sticky = sticky});
    const auto report = (*fs)->Settle();
    const bool reached = device->Calls(SimCall::kMutating) - calls >= nth;
    device->ClearFaults();
    settling.store.RequireFiles(**fs);
    const bool closed = (*fs)->Close().ok();
    fs->reset();
    // An unmount leaves nothing to be resolved.
    if (closed) {
      settling.store.RequireSound(*device);
      settling.store.RequireFigures(*device);
    }
    if (nth % 3 == 0) device->PowerCut();
    RequireWhole(settling.store, *device);
    if (!reached) {
      REQUIRE_OK(report);
      break;
    }
    ++struck;
  }
  CHECK(struck > 30 / static_cast<int>(CallStep()));
}

}  // namespace siltfs::testing
