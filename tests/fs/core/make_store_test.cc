// The remains of an interrupted mkfs, and how the next mkfs continues.
#include "fs/open/make_store.h"

#include <fmt/format.h>

#include <array>

#include "fs/check/check_store.h"
#include "fs/interface/file_system.h"
#include "fs/open/store_layout.h"
#include "fs/repair/repair_store.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "store/superblock/superblock.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

const std::string kStore = "/store";
constexpr const char* kUnfinished = "/store: siltfs mkfs did not finish here: run it again";

MakeStoreOptions Options() {
  MakeStoreOptions options;
  options.path = kStore;
  options.index_memory = 4u << 20;
  return options;
}

Result<CheckReport> Check(SimEnv& env) {
  CheckOptions options;
  options.store = kStore;
  options.segments = SealedSegments(env);
  return CheckStore(env, options);
}

// Requires that the store is complete and usable.
void RequireUsable(SimEnv& env) {
  const auto checked = Check(env);
  REQUIRE_OK(checked);
  CHECK(checked->findings == 0);
  CHECK(env.GetFileInfo(UnfinishedStorePath(kStore)).status().Is(StatusCode::kNotFound));
  FileSystemOptions options;
  options.store = kStore;
  options.segments = SealedSegments(env);
  auto opened = FileSystem::Open(env, options);
  REQUIRE_OK(opened);
  REQUIRE_OK((*opened)->Close());
}

// Requires the messages of fsck and of a repair for a directory without a store.
void RequireNoStore(SimEnv& env) {
  const auto mark = env.GetFileInfo(UnfinishedStorePath(kStore));
  const bool marked = mark.ok() && mark->type == FileType::kDirectory;
  const std::string sentence = marked ? kUnfinished : "/store: there is no siltfs store here";
  CHECK(Check(env).status().ToString() == sentence);
  RepairOptions repair;
  repair.check.store = kStore;
  repair.check.segments = SealedSegments(env);
  CHECK(RepairStore(env, repair).status().ToString() == sentence);
  CHECK(ReadSuperblock(env, kStore).status().ToString() == sentence);
}

// The number of mkfs's calls that change the device. `made_before`: the store's directory exists
// before mkfs begins.
uint64_t CallsOfMkfs(bool made_before) {
  SimEnv env;
  if (made_before) REQUIRE_OK(env.CreateDirectory(kStore));
  const uint64_t before = env.Calls(SimCall::kMutating);
  REQUIRE_OK(MakeStore(env, Options()));
  return env.Calls(SimCall::kMutating) - before;
}

// Requires that mkfs works after the cut, unless the store was complete already.
void RequireMkfsWorks(SimEnv& env) {
  if (ReadSuperblock(env, kStore).ok()) {
    const auto checked = Check(env);
    REQUIRE_OK(checked);
    CHECK(checked->findings == 0);
  } else {
    RequireNoStore(env);
  }
  const bool marked = env.GetFileInfo(UnfinishedStorePath(kStore)).ok();
  const Status made = MakeStore(env, Options());
  if (!made.ok()) {
    CHECK(made.Is(StatusCode::kNotEmpty));
    CHECK_FALSE(marked);
  }
  RequireUsable(env);
}

// Makes an empty directory on the device.
void MakeDirectory(SimEnv& env) {
  REQUIRE_OK(env.CreateDirectory(kStore));
  REQUIRE_OK(env.SyncDirectory("/"));
}

TEST_CASE("after a power cut at any step of mkfs, mkfs works again") {
  using Unsynced = CrashPolicy::Unsynced;
  constexpr std::array kPolicies = {Unsynced::kDrop, Unsynced::kKeep, Unsynced::kSubset,
                                    Unsynced::kGarble};
  const uint64_t calls = CallsOfMkfs(true);
  REQUIRE(calls > 20);
  uint64_t unfinished = 0;
  for (uint64_t call = FirstCall(0); call <= calls; call += CallStep()) {
    const uint64_t variant = call % 7;
    CAPTURE(call);
    SimEnv env(call);
    if (variant % 2 == 0) MakeDirectory(env);
    env.CutAtCall(call);
    const Status cut = MakeStore(env, Options());
    REQUIRE(cut.ok() == env.PowerIsOn());
    env.Reboot(
        {.unsynced = kPolicies[variant % 4], .seed = call, .names_in_any_order = variant > 3});
    if (env.GetFileInfo(UnfinishedStorePath(kStore)).ok()) ++unfinished;
    RequireMkfsWorks(env);
  }
  CHECK(unfinished > calls / CallStep() / 3);
}

TEST_CASE("mkfs survives a power cut while it removes the remains of an interrupted mkfs") {
  const uint64_t calls = CallsOfMkfs(true);
  for (uint64_t first = FirstCall(0) + 9; first <= calls; first += 24) {
    for (uint64_t second = 1; second <= 24; second += 3) {
      CAPTURE(first, second);
      SimEnv env(first);
      MakeDirectory(env);
      env.CutAtCall(first);
      const Status begun = MakeStore(env, Options());
      REQUIRE(begun.ok() == env.PowerIsOn());
      env.Reboot({.unsynced = CrashPolicy::Unsynced::kKeep});
      env.CutAtCall(second);
      const Status cut = MakeStore(env, Options());
      REQUIRE(cut.ok() == env.PowerIsOn());
      env.Reboot({.unsynced = CrashPolicy::Unsynced::kSubset,
                  .seed = second,
                  .names_in_any_order = second % 2 == 0});
      RequireMkfsWorks(env);
    }
  }
}

TEST_CASE("a mkfs that finds the disk full leaves nothing behind") {
  const bool made_before = GENERATE(false, true);
  bool made = false;
  for (uint64_t kibibytes = 0; !made; kibibytes += 4) {
    CAPTURE(made_before, kibibytes);
    REQUIRE(kibibytes < 1024);
    SimEnv env;
    env.SetCapacity(kibibytes << 10);
    if (made_before) REQUIRE_OK(env.CreateDirectory(kStore));
    const Status status = MakeStore(env, Options());
    made = status.ok();
    if (made) break;
    CHECK(status.Is(StatusCode::kNoSpace));
    const auto left = env.ListDirectory(kStore);
    CHECK(left.ok() == made_before);
    if (left.ok()) CHECK(left->empty());
    env.SetCapacity(SimEnv::kUnlimited);
    REQUIRE_OK(MakeStore(env, Options()));
    RequireUsable(env);
  }
}

TEST_CASE("the next mkfs removes files that a failed mkfs could not remove on a full disk") {
  const uint64_t calls = CallsOfMkfs(true);
  for (uint64_t call = FirstCall(0); call <= calls; call += 3) {
    CAPTURE(call);
    SimEnv env;
    REQUIRE_OK(env.CreateDirectory(kStore));
    env.FailCall(
        {.calls = SimCall::kMutating, .nth = call, .code = StatusCode::kNoSpace, .sticky = true});
    REQUIRE_FALSE(MakeStore(env, Options()).ok());
    env.ClearFaults();
    RequireMkfsWorks(env);
  }
}

// Runs mkfs and cuts the power when mkfs has made all files except the superblock.
void MakeRemains(SimEnv& env) {
  // The last 13 calls make two copies of the superblock, with six calls each, and remove the mark.
  env.CutAtCall(CallsOfMkfs(false) - 13);
  REQUIRE_FALSE(MakeStore(env, Options()).ok());
  env.Reboot({.unsynced = CrashPolicy::Unsynced::kKeep});
  REQUIRE(env.GetFileInfo(MetadataPath(kStore)).ok());
  RequireNoStore(env);
}

TEST_CASE("mkfs removes none of its remains if a foreign file is among them") {
  for (const std::string name : {"photo", "meta/photo", "index/photo", "segments/photo", "LOG",
                                 "mkfs.unfinished/photo", "meta/000001.jpg", "superblock.2"}) {
    CAPTURE(name);
    SimEnv env;
    MakeRemains(env);
    const std::string path = JoinPath(kStore, name);
    REQUIRE_OK(env.OpenFile(path, {.mode = OpenMode::kCreate}));
    const uint64_t before = env.Calls(SimCall::kMutating);
    const Status made = MakeStore(env, Options());
    CHECK(
        made.ToString() ==
        fmt::format("/store: siltfs mkfs did not finish here, and {} is none of its files: remove "
                    "it and run mkfs again; nothing was changed",
                    path));
    CHECK(env.Calls(SimCall::kMutating) == before);
    REQUIRE_OK(env.RemoveFile(path));
    REQUIRE_OK(MakeStore(env, Options()));
    RequireUsable(env);
  }
}

TEST_CASE("mkfs does not touch a complete store, even with a mark beside it") {
  SimEnv env;
  REQUIRE_OK(MakeStore(env, Options()));
  RequireUsable(env);
  REQUIRE_OK(env.CreateDirectory(UnfinishedStorePath(kStore)));
  const uint64_t before = env.Calls(SimCall::kMutating);
  CHECK(MakeStore(env, Options()).ToString() ==
        "/store: there is a store in the directory; nothing was changed");
  CHECK(env.Calls(SimCall::kMutating) == before);
  const auto checked = Check(env);
  REQUIRE_OK(checked);
  CHECK(checked->findings == 0);
}

TEST_CASE("mkfs does not take a regular file with the mark's name for a mark") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kStore));
  REQUIRE_OK(env.OpenFile(UnfinishedStorePath(kStore), {.mode = OpenMode::kCreate}));
  CHECK(MakeStore(env, Options()).Is(StatusCode::kNotEmpty));
  REQUIRE_OK(env.GetFileInfo(UnfinishedStorePath(kStore)));
  RequireNoStore(env);
}

}  // namespace
}  // namespace siltfs::testing
