// The two copies of the superblock: which one is used, damage to one or both of them, and power
// cuts while they are written.
#include "store/base/checksum.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/store/superblock/superblock_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

struct Store {
  Store() {
    REQUIRE_OK(env.CreateDirectory(path));
    REQUIRE_OK(env.SyncDirectory("/"));
  }
  void SetCopy(int copy, const Superblock& superblock) {
    SetCopy(copy, EncodeSuperblock(superblock));
  }
  void SetCopy(int copy, const std::string& bytes) {
    REQUIRE_OK(ReplaceFile(env, SuperblockPath(path, copy), AsBytes(bytes)));
  }
  std::string Copy(int copy) {
    return Must(ReadWholeFile(env, SuperblockPath(path, copy), 1U << 20));
  }

  SimEnv env;
  const std::string path = "/store";
};

}  // namespace

TEST_CASE("A written superblock is read back from both copies after a power cut") {
  Store store;
  Superblock superblock = MakeSuperblock();
  REQUIRE_OK(WriteSuperblock(store.env, store.path, superblock));
  CHECK(superblock.generation == 7);
  store.env.PowerCut();
  SuperblockState state = Must(ReadSuperblock(store.env, store.path));
  CHECK(state.superblock == superblock);
  CHECK(state.copies_valid == std::array<bool, 2>{true, true});
  CHECK(state.highest_commit == superblock.last_commit);
  CHECK(store.Copy(0) == store.Copy(1));
  CHECK(SuperblockPath("/s", 0) == "/s/superblock.0");
  CHECK(SuperblockPath("/s", 1) == "/s/superblock.1");
}

TEST_CASE("If both files are missing there is no store, and the message names the directory") {
  Store store;
  for (const char* path : {"/store", "/nowhere"}) {
    auto state = ReadSuperblock(store.env, path);
    REQUIRE_CODE(state, kNotFound);
    CHECK(state.status().ToString() == std::string(path) + ": there is no siltfs store here");
  }
}

TEST_CASE("The copy with the higher generation is used, with the highest commit of both copies") {
  for (int newer : {0, 1}) {
    Store store;
    Superblock old_one = MakeSuperblock();
    old_one.last_commit = 500;
    Superblock new_one = old_one;
    new_one.generation = old_one.generation + 1;
    new_one.last_commit = 400;
    new_one.clean = false;
    store.SetCopy(newer, new_one);
    store.SetCopy(1 - newer, old_one);
    SuperblockState state = Must(ReadSuperblock(store.env, store.path));
    CHECK(state.superblock == new_one);
    CHECK(state.highest_commit == 500);
  }
}

TEST_CASE("The other copy replaces a damaged or missing one") {
  const std::string whole = EncodeSuperblock(MakeSuperblock());
  for (int bad : {0, 1}) {
    for (const std::string& contents : {std::string(), whole.substr(0, 4095), whole + "x",
                                        std::string(4096, '\0'), std::string(100000, 'x')}) {
      Store store;
      store.SetCopy(1 - bad, whole);
      store.SetCopy(bad, contents);
      SuperblockState state = Must(ReadSuperblock(store.env, store.path));
      CHECK(state.superblock == MakeSuperblock());
      CHECK(state.copies_valid[static_cast<size_t>(bad)] == false);
      CHECK(state.copies_valid[static_cast<size_t>(1 - bad)] == true);
    }
    Store store;
    store.SetCopy(1 - bad, whole);
    CHECK(Must(ReadSuperblock(store.env, store.path)).superblock == MakeSuperblock());
    store.SetCopy(bad, whole);
    store.env.FailCall({.calls = SimCall::kRead, .path_part = SuperblockPath("", bad)});
    CHECK(Must(ReadSuperblock(store.env, store.path)).copies_valid[static_cast<size_t>(bad)] ==
          false);
  }
}

TEST_CASE("Without a valid copy the store is damaged, and the message names a copy") {
  Store store;
  store.SetCopy(0, std::string(4096, 'x'));
  REQUIRE_CODE(ReadSuperblock(store.env, store.path), kCorruption);
  store.SetCopy(1, std::string(10, 'x'));
  auto state = ReadSuperblock(store.env, store.path);
  REQUIRE_CODE(state, kCorruption);
  CHECK(state.status().path() == "/store/superblock.0");
}

TEST_CASE("A device that fails on both copies gives its error, not corruption") {
  Store store;
  store.SetCopy(0, MakeSuperblock());
  store.SetCopy(1, MakeSuperblock());
  store.env.FailCall({.calls = SimCall::kRead, .sticky = true});
  REQUIRE_CODE(ReadSuperblock(store.env, store.path), kIoError);
}

TEST_CASE("A copy of another version needs another siltfs, even if the other copy is valid") {
  for (int newer : {0, 1}) {
    Store store;
    std::string bytes = EncodeSuperblock(MakeSuperblock());
    store.SetCopy(1 - newer, bytes);
    store.SetCopy(newer, std::string(4096, 'x'));
    REQUIRE_OK(ReadSuperblock(store.env, store.path));
    bytes[8] = 2;
    uint64_t checksum = Checksum(AsBytes(bytes).first(4088));
    for (size_t i = 0; i < 8; ++i) bytes[4088 + i] = static_cast<char>(checksum >> (8 * i));
    store.SetCopy(newer, bytes);
    auto state = ReadSuperblock(store.env, store.path);
    REQUIRE_CODE(state, kNeedsNewer);
    CHECK(state.status().ToString() ==
          SuperblockPath(store.path, newer) +
              ": format version 2 is not the one this siltfs understands (1)");
    // Damage to the other copy does not change that.
    store.SetCopy(1 - newer, std::string(4096, 'x'));
    REQUIRE_CODE(ReadSuperblock(store.env, store.path), kNeedsNewer);
  }
}

TEST_CASE("Unknown features prevent the access that they forbid") {
  Store store;
  Superblock superblock = MakeSuperblock();
  superblock.ro_compat_features = 1u << 20;
  store.SetCopy(0, superblock);
  REQUIRE_CODE(ReadSuperblock(store.env, store.path), kNeedsNewer);
  REQUIRE_OK(ReadSuperblock(store.env, store.path, StoreAccess::kReadOnly));
  superblock.incompat_features = uint64_t{1} << 60;
  store.SetCopy(0, superblock);
  REQUIRE_CODE(ReadSuperblock(store.env, store.path, StoreAccess::kReadOnly), kNeedsNewer);
}

TEST_CASE("An invalid superblock is not written") {
  Store store;
  Superblock superblock = MakeSuperblock();
  superblock.chunk_min = 0;
  REQUIRE_CODE(WriteSuperblock(store.env, store.path, superblock), kInvalidArgument);
  CHECK(superblock.generation == 6);
  REQUIRE_CODE(ReadSuperblock(store.env, store.path), kNotFound);
}

TEST_CASE("After a power cut at any step of a write, the old or the new superblock is valid") {
  using Unsynced = CrashPolicy::Unsynced;
  for (Unsynced policy : {Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix, Unsynced::kSubset}) {
    bool finished = false;
    for (uint64_t nth = 1; !finished; ++nth) {
      CAPTURE(policy, nth);
      Store store;
      Superblock superblock = MakeSuperblock();
      REQUIRE_OK(WriteSuperblock(store.env, store.path, superblock));
      const Superblock before = superblock;
      superblock.last_commit += 1;
      superblock.clean = false;
      store.env.CutAtCall(nth);
      finished = WriteSuperblock(store.env, store.path, superblock).ok();
      store.env.Reboot({.unsynced = policy, .seed = nth});
      SuperblockState state = Must(ReadSuperblock(store.env, store.path));
      CHECK((state.superblock == before || state.superblock == superblock));
      if (finished) CHECK(state.superblock == superblock);
      CHECK(state.copies_valid == std::array<bool, 2>{true, true});
      CHECK(state.highest_commit == state.superblock.last_commit);
    }
  }
}

TEST_CASE("After a power cut at any step of the first write, there is no store or a valid one") {
  bool finished = false;
  for (uint64_t nth = 1; !finished; ++nth) {
    CAPTURE(nth);
    Store store;
    Superblock superblock = MakeSuperblock();
    store.env.CutAtCall(nth);
    finished = WriteSuperblock(store.env, store.path, superblock).ok();
    store.env.Reboot({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = nth});
    auto state = ReadSuperblock(store.env, store.path);
    if (state.ok()) {
      CHECK(state->superblock == superblock);
    } else {
      REQUIRE_CODE(state, kNotFound);
      CHECK_FALSE(finished);
    }
  }
}
