// Power cuts and failures at every step of a clone, a full disk, and garbage collections at the
// same time.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "fs/check/check_store.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/store_maintenance.h"
#include "fs/meta/open_kv_store.h"
#include "fs/open/store_metadata.h"
#include "fs/records/hidden_range.h"
#include "store/base/thread_annotations.h"
#include "store/env/sim_env.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/recompression_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

const std::string kPath = "/store";
constexpr size_t kManyBytes = 8u << 20;
constexpr size_t kFewBytes = 500;
constexpr int kFiles = 60;  // take two ranges of inode numbers

// A store with a directory "tree". Its files are not in store.files, which are those of the root.
struct Cloning {
  // `outside`: some files also have names outside of the tree.
  explicit Cloning(bool outside = true) : store(env, kPath) {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    const InodeNumber tree = MakeDir(**fs, kRootInode, "tree");
    for (int i = 0; i < kFiles; ++i) {
      const InodeNumber file = MakeFile(**fs, tree, fmt::format("f{}", i));
      REQUIRE_OK((*fs)->OpenFile(file, false));
      REQUIRE_OK((*fs)->Write(file, 0, RandomBytes(static_cast<uint64_t>(i), 200)));
      (*fs)->ReleaseFile(file);
      REQUIRE_OK((*fs)->SetXattr(file, "user.number", std::to_string(i), XattrMode::kSet));
      if (i % 8 == 0 || (outside && i % 4 == 0)) {
        const auto linked =
            (*fs)->Link(file, i % 8 == 0 ? tree : kRootInode, fmt::format("l{}", i));
        REQUIRE_OK(linked);
        (*fs)->Forget(file, 1);
      }
    }
    REQUIRE_OK((*fs)->Close());
  }
  // With few bytes in a batch, the records are loaded, otherwise they are written.
  static Status Clone(FileSystem& fs, size_t batch_bytes) {
    const auto tree = Resolve(fs, "tree");
    if (!tree.ok()) return tree.status();
    return fs.entries()
        .Clone({.source = *tree,
                .parent = kRootInode,
                .name = "clone",
                .most_links = 3,
                .batch_bytes = batch_bytes})
        .status();
  }

  SimEnv env;
  RecompressionStore store;
};

// The number of records of hidden inodes.
size_t HiddenRanges(Env& env) {
  const auto superblock = ReadSuperblock(env, kPath);
  REQUIRE_OK(superblock);
  const auto kv =
      OpenStoreMetadata(env, superblock->superblock, kPath, KvStoreOptions::Mode::kReadOnly);
  REQUIRE_OK(kv);
  const auto ranges = ReadHiddenRanges(*(*kv)->Snapshot());
  REQUIRE_OK(ranges);
  return ranges->size();
}

void RequireFile(FileSystem& fs, const std::string& path, int number) {
  const auto file = Resolve(fs, path);
  REQUIRE_OK(file);
  REQUIRE(*ReadFile(fs, *file) == RandomBytes(static_cast<uint64_t>(number), 200));
  REQUIRE(*fs.GetXattr(*file, "user.number") == std::to_string(number));
}

// Requires that the store is sound before and after it is opened, that the tree is whole, and that
// the clone is whole or not there. Returns whether it is there.
bool RequireWhole(const Cloning& cloning, SimEnv& env) {
  cloning.store.RequireSound(env);
  bool there = false;
  for (const bool read_only : {true, false}) {
    auto fs = cloning.store.Open(env, read_only);
    REQUIRE_OK(fs);
    there = Resolve(**fs, "clone").ok();
    const auto clone = Resolve(**fs, "clone");
    if (there) REQUIRE(ListNames(**fs, *clone).size() == kFiles + 8);
    for (int i = 0; i < kFiles; ++i) {
      RequireFile(**fs, fmt::format("tree/f{}", i), i);
      if (!there) continue;
      RequireFile(**fs, fmt::format("clone/f{}", i), i);
      const auto file = (*fs)->GetAttributes(*Resolve(**fs, fmt::format("clone/f{}", i)));
      REQUIRE(file->links == (i % 8 == 0 ? 2u : 1u));
    }
    if (!read_only) REQUIRE_OK((*fs)->Close());
  }
  REQUIRE(HiddenRanges(env) == 0);
  cloning.store.RequireSound(env);
  cloning.store.RequireStatistics(env);
  return there;
}

}  // namespace

TEST_CASE("a power cut at any step of a clone leaves all of it or nothing") {
  const auto [batch_bytes, outside] =
      GENERATE(table<size_t, bool>({{kManyBytes, true}, {kFewBytes, true}, {kFewBytes, false}}));
  Cloning cloning(outside);
  auto fs = cloning.store.Open(cloning.env);
  REQUIRE_OK(fs);
  const auto before = ForkAndTraceDevice(cloning.env);
  REQUIRE_OK(Cloning::Clone(**fs, batch_bytes));
  REQUIRE_OK((*fs)->SyncAll());
  const SimTrace trace = cloning.env.TakeTrace();
  fs->reset();
  uint64_t with = 0;
  uint64_t without = 0;
  uint64_t hidden = 0;
  for (const auto unsynced : {CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                              CrashPolicy::Unsynced::kSubset}) {
    const auto device = ForkDevice(*before);
    for (size_t cut = 0; cut <= trace.size(); ++cut) {
      INFO(fmt::format("cut before record {} of {}: {}", cut, trace.size(),
                       cut < trace.size() ? Describe(trace[cut]) : "the end"));
      if (cut % SanitizedStep() == 0) {
        const auto left = ForkDevice(*device);
        left->PowerCut({.unsynced = unsynced, .seed = cut, .names_in_any_order = cut % 2 == 0});
        hidden += HiddenRanges(*left) > 0;
        ++(RequireWhole(cloning, *left) ? with : without);
      }
      if (cut < trace.size()) REQUIRE_OK(ReplayRecord(*device, trace[cut]));
    }
  }
  CHECK((kIsSanitized || with >= 3));
  CHECK(without >= 3);
  CHECK((kIsSanitized || hidden > 3));
}

TEST_CASE("a power cut at any step of the removal of a clone leaves no records") {
  Cloning cloning;
  auto fs = cloning.store.Open(cloning.env);
  REQUIRE_OK(fs);
  const auto tree = Resolve(**fs, "tree");
  std::unique_ptr<SimEnv> unfinished;
  CloneRequest request{.source = *tree, .parent = kRootInode, .name = "clone"};
  request.on_progress = [&](const CloneTotals&) {
    unfinished = ForkDevice(cloning.env);
    return Status::Ok();
  };
  REQUIRE_OK((*fs)->entries().Clone(request));
  fs->reset();
  unfinished->PowerCut({.unsynced = CrashPolicy::Unsynced::kDrop, .seed = 1});
  REQUIRE(HiddenRanges(*unfinished) == 2);
  const auto before = ForkAndTraceDevice(*unfinished);
  {
    auto next = cloning.store.Open(*unfinished);
    REQUIRE_OK(next);
    CHECK_FALSE(Resolve(**next, "clone").ok());
  }
  const SimTrace trace = unfinished->TakeTrace();
  const auto device = ForkDevice(*before);
  for (size_t cut = 0; cut <= trace.size(); ++cut) {
    INFO(fmt::format("cut before record {} of {}", cut, trace.size()));
    if (cut % CallStep() == 0) {
      const auto left = ForkDevice(*device);
      left->PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = cut});
      CHECK_FALSE(RequireWhole(cloning, *left));
    }
    if (cut < trace.size()) REQUIRE_OK(ReplayRecord(*device, trace[cut]));
  }
}

TEST_CASE("a full disk at any step of a clone leaves nothing") {
  const size_t batch_bytes = GENERATE(kManyBytes, kFewBytes);
  const SimCall calls = batch_bytes == kManyBytes ? SimCall::kWrite : SimCall::kMutating;
  Cloning cloning;
  bool ended = false;
  uint64_t failed = 0;
  for (uint64_t call = 1; !ended; ++call) {
    INFO("call " << call);
    const auto env = ForkDevice(cloning.env);
    auto fs = cloning.store.Open(*env);
    REQUIRE_OK(fs);
    env->FailCall({.calls = calls, .nth = call, .code = StatusCode::kNoSpace});
    const Status cloned = Cloning::Clone(**fs, batch_bytes);
    env->ClearFaults();
    ended = cloned.ok() && failed > 0 && call > 3;
    if (!cloned.ok()) {
      ++failed;
      REQUIRE(cloned.Is(StatusCode::kNoSpace));
      CHECK_FALSE(Resolve(**fs, "clone").ok());
      REQUIRE_OK(Cloning::Clone(**fs, batch_bytes));  // now there is room
    }
    REQUIRE_OK((*fs)->Close());
    fs->reset();
    CHECK(RequireWhole(cloning, *env));
  }
}

namespace {

// A flag that another thread waits for. A wait ends after a limit, because some threads of these
// tests must not get further before the waiting thread goes on.
class Flag {
 public:
  void Set() {
    const MutexLock lock(mutex_);
    set_ = true;
    changed_.NotifyAll();
  }
  bool Await(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    const MutexLock lock(mutex_);
    while (!set_) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= left.zero()) return false;
      changed_.WaitFor(mutex_, left);
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ SILTFS_GUARDED_BY(mutex_) = false;
};

constexpr std::chrono::milliseconds kLimit{400};

// A store in which a collection has victims, and a file "source" in one of them.
struct Collected {
  Collected() : store(env, kPath) {
    auto opened = store.Open(env);
    REQUIRE_OK(opened);
    fs = *std::move(opened);
    for (uint64_t i = 0; i < 12; ++i) {
      const std::string name = fmt::format("file {}", i);
      store.files[name] = RandomBytes(100 + i, 30'000);
      WriteLargeFile(*fs, name, store.files[name]);
    }
    WriteLargeFile(*fs, "source", source);
    for (uint64_t i = 20; i < 32; ++i)
      WriteLargeFile(*fs, fmt::format("file {}", i), RandomBytes(100 + i, 30'000));
    REQUIRE_OK(fs->Close());
    fs.reset();
    opened = store.Open(env);  // seals the segments
    REQUIRE_OK(opened);
    fs = *std::move(opened);
    for (uint64_t i = 20; i < 32; ++i)
      REQUIRE_OK(fs->Unlink(kRootInode, fmt::format("file {}", i)));
    for (uint64_t i = 0; i < 12; i += 2) {
      REQUIRE_OK(fs->Unlink(kRootInode, fmt::format("file {}", i)));
      store.files.erase(fmt::format("file {}", i));
    }
  }
  void RequireClone() {
    store.files["clone"] = source;
    store.RequireFiles(*fs);
    REQUIRE_OK(fs->Close());
    fs.reset();
    store.RequireSound(env);
  }

  const Bytes source = RandomBytes(1, 100'000);
  SimEnv env;
  RecompressionStore store;
  std::unique_ptr<FileSystem> fs;
};

}  // namespace

TEST_CASE("a collection waits for a clone whose source was removed meanwhile") {
  Collected collected;
  FileSystem& fs = *collected.fs;
  std::thread collector;
  Flag collection_ended;
  CloneRequest request{.source = *Resolve(fs, "source"), .parent = kRootInode, .name = "clone"};
  request.on_progress = [&](const CloneTotals&) {
    REQUIRE_OK(fs.Unlink(kRootInode, "source"));
    REQUIRE_OK(fs.SyncAll());
    collector = std::thread([&] {
      REQUIRE_OK(fs.maintenance().CollectGarbage(false));
      collection_ended.Set();
    });
    CHECK_FALSE(collection_ended.Await(kLimit));
    return Status::Ok();
  };
  REQUIRE_OK(fs.entries().Clone(request));
  collector.join();
  collected.RequireClone();
}

TEST_CASE("a clone that begins while a collection waits has the collection's references") {
  Collected collected;
  FileSystem& fs = *collected.fs;
  Flag first_copied;
  Flag second_copied;
  Flag collection_ended;
  // The first clone makes the collection wait.
  std::thread first([&] {
    CloneRequest request{.source = *Resolve(fs, "file 1"), .parent = kRootInode, .name = "other"};
    request.on_progress = [&](const CloneTotals&) {
      first_copied.Set();
      second_copied.Await(4 * kLimit);
      return Status::Ok();
    };
    REQUIRE_OK(fs.entries().Clone(request));
  });
  first_copied.Await(100 * kLimit);
  std::thread collector([&] {
    REQUIRE_OK(fs.maintenance().CollectGarbage(false));
    collection_ended.Set();
  });
  collection_ended.Await(kLimit);  // by now it waits for the first clone
  CloneRequest request{.source = *Resolve(fs, "source"), .parent = kRootInode, .name = "clone"};
  request.on_progress = [&](const CloneTotals&) {
    REQUIRE_OK(fs.Unlink(kRootInode, "source"));
    REQUIRE_OK(fs.SyncAll());
    second_copied.Set();
    collection_ended.Await(kLimit);
    return Status::Ok();
  };
  REQUIRE_OK(fs.entries().Clone(request));
  first.join();
  collector.join();
  REQUIRE_OK(fs.maintenance().CollectGarbage(false));
  collected.RequireClone();
}

}  // namespace siltfs::testing
