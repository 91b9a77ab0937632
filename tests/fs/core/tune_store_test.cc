// Changes of a store's parameters after mkfs.
#include "fs/open/tune_store.h"

#include <array>

#include "fs/check/check_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/make_store.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_stats.h"
#include "store/env/sim_env.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

const std::string kStore = "/store";

StoreUuid SomeUuid() { return *StoreUuid::FromText("01234567-89ab-4def-8123-456789abcdef"); }

StoreChanges AllChanges() {
  return {.compression_level = 9,
          .index_memory = 8u << 20,
          .label = "weekly",
          .uuid = UuidChoice{.kind = UuidChoice::Kind::kGiven, .given = SomeUuid()}};
}

Superblock SuperblockOf(Env& env) {
  const auto state = ReadSuperblock(env, kStore);
  REQUIRE_OK(state);
  return state->superblock;
}

void RequireConsistent(SimEnv& env) {
  CheckOptions options;
  options.store = kStore;
  options.segments = SealedSegments(env);
  const auto checked = CheckStore(env, options);
  REQUIRE_OK(checked);
  CHECK(checked->findings == 0);
}

bool HasChanges(const Superblock& superblock) {
  return superblock.label == "weekly" && superblock.shown_uuid() == SomeUuid() &&
         superblock.compression == Compression{BlockCodecId::kZstd, 9} &&
         superblock.index_memory == 8u << 20;
}

TEST_CASE("After a power cut at any call, a store has all changes of tune or none") {
  using Unsynced = CrashPolicy::Unsynced;
  constexpr std::array kPolicies = {Unsynced::kDrop, Unsynced::kKeep, Unsynced::kSubset,
                                    Unsynced::kGarble};
  uint64_t changed = 0;
  uint64_t unchanged = 0;
  bool finished = false;
  for (uint64_t call = 1; !finished; ++call) {
    for (size_t variant = 0; variant < 2 * kPolicies.size(); ++variant) {
      CAPTURE(call, variant);
      SimEnv env(call);
      REQUIRE_OK(MakeStore(env, {.path = kStore, .index_memory = 4u << 20, .label = "nightly"}));
      const Superblock before = SuperblockOf(env);
      env.CutAtCall(call);
      const auto tuned = TuneStore(env, kStore, AllChanges());
      finished = env.PowerIsOn();
      REQUIRE(tuned.ok() == finished);
      env.Reboot({.unsynced = kPolicies[variant / 2],
                  .seed = call,
                  .names_in_any_order = variant % 2 == 1});
      const Superblock after = SuperblockOf(env);
      const bool has = HasChanges(after);
      CHECK((has || after == before));
      CHECK((!finished || has));
      (has ? changed : unchanged) += 1;
      RequireConsistent(env);
      // The command can be repeated.
      REQUIRE_OK(TuneStore(env, kStore, AllChanges()));
      CHECK(HasChanges(SuperblockOf(env)));
    }
  }
  CHECK(changed > kPolicies.size());
  CHECK(unchanged > kPolicies.size());
}

TEST_CASE("A failed write of tune is reported, and the store has all changes or none") {
  bool finished = false;
  for (uint64_t nth = 1; !finished; ++nth) {
    CAPTURE(nth);
    SimEnv env;
    REQUIRE_OK(MakeStore(env, {.path = kStore, .index_memory = 4u << 20}));
    const Superblock before = SuperblockOf(env);
    env.FailCall({.calls = SimCall::kMutating, .nth = nth, .code = StatusCode::kIoError});
    const auto tuned = TuneStore(env, kStore, AllChanges());
    finished = tuned.ok();
    env.ClearFaults();
    const Superblock after = SuperblockOf(env);
    CHECK((HasChanges(after) || after == before));
    REQUIRE_OK(TuneStore(env, kStore, AllChanges()));
    CHECK(HasChanges(SuperblockOf(env)));
  }
}

TEST_CASE("Changes survive mounts, and leave the data and its names alone") {
  StoreFixture store;
  const Bytes data = RandomBytes(1, 3'000'000);
  WriteFile(store.Open(), "file", data);
  store.Close();
  const auto tuned = TuneStore(store.env(), store.path(), AllChanges());
  REQUIRE_OK(tuned);
  CHECK(tuned->after.uuid == tuned->before.uuid);
  FileSystem& fs = store.Open();
  CHECK(store.Stats().label == "weekly");
  CHECK(store.Stats().uuid == SomeUuid().ToText());
  CHECK(*ReadFile(fs, RequireInode(fs, "file")) == data);
  const uint64_t stored = store.Stats().unique_bytes;
  WriteFile(fs, "copy", data);
  REQUIRE_OK(fs.SyncAll());
  CHECK(store.Stats().unique_bytes == stored);
  store.Close();
  const auto stats = ReadStoreStats(store.env(), store.path());
  REQUIRE_OK(stats);
  CHECK(stats->label == "weekly");
}

TEST_CASE("After a crash, tune keeps what recovery needs to know") {
  StoreFixture store;
  const Bytes data = RandomBytes(1, 300'000);
  WriteFile(store.Open(), "file", data);
  REQUIRE_OK(store.fs().SyncAll());
  store.Crash();
  const auto tuned = TuneStore(store.env(), store.path(), AllChanges());
  REQUIRE_OK(tuned);
  CHECK_FALSE(tuned->after.clean);
  CHECK(tuned->after.last_commit == tuned->before.last_commit);
  FileSystem& fs = store.Open();
  CHECK(*ReadFile(fs, RequireInode(fs, "file")) == data);
}

// Text that fills a segment and can be compressed well.
Bytes MuchText() {
  Bytes text;
  for (size_t i = 0; text.size() < 40'000'000; ++i) {
    const std::string line = "this is line " + std::to_string(i * i) + " of the text\n";
    text.insert(text.end(), line.begin(), line.end());
  }
  return text;
}

bool HasText(FileSystem& fs, const Bytes& text) {
  const auto read = ReadFile(fs, RequireInode(fs, "text"));
  REQUIRE_OK(read);
  return *read == text;
}

TEST_CASE("A store that was stored without compression can be compressed later") {
  MakeStoreOptions options;
  options.compression_level = 0;
  StoreFixture store(options);
  const Bytes text = MuchText();
  WriteLargeFile(store.Open(), "text", text);
  store.Close();
  REQUIRE_OK(TuneStore(store.env(), store.path(), {.compression_level = 3}));
  store.Open();
  const uint64_t before = store.Stats().stored_bytes;
  REQUIRE_OK(store.fs().maintenance().Recompress());
  CHECK(store.Stats().stored_bytes < before / 2);
  CHECK(HasText(store.fs(), text));
  store.Close();
  REQUIRE_OK(TuneStore(store.env(), store.path(), {.compression_level = 0}));
  CHECK(HasText(store.Open(), text));
}

TEST_CASE("tune needs the lock of the store") {
  StoreFixture store;
  store.Open();
  REQUIRE_CODE(TuneStore(store.env(), store.path(), AllChanges()), kInUse);
  store.Close();
  REQUIRE_OK(TuneStore(store.env(), store.path(), AllChanges()));
}

}  // namespace
}  // namespace siltfs::testing
