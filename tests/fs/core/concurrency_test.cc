// Several threads use one file system. The results of their calls must be possible for the same
// calls one after another, in some order. Afterwards all metadata, with the counters, must be
// consistent.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "store/base/random.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Runs `work(thread number)` on `count` threads. The threads report failures to Verdict, since
// Catch's macros are for one thread only.
class Threads {
 public:
  template <typename Work>
  Threads(int count, Work work) {
    for (int t = 0; t < count; ++t) threads_.emplace_back([work, t] { work(t); });
  }
  ~Threads() { Join(); }
  void Join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
};

// The first failure on any thread.
class Verdict {
 public:
  void Expect(bool condition, const std::string& what) {
    if (condition) return;
    MutexLock lock(mutex_);
    if (what_.empty()) what_ = what;
  }
  void ExpectOk(const Status& status, const std::string& what) {
    Expect(status.ok(), what + ": " + status.ToString());
  }
  // Expects OK, or one of the failures that another thread may cause.
  void ExpectOneOf(const Status& status, std::initializer_list<StatusCode> allowed,
                   const std::string& what) {
    const bool fine =
        status.ok() || std::find(allowed.begin(), allowed.end(), status.code()) != allowed.end();
    Expect(fine, what + ": " + status.ToString());
  }
  std::string what() const {
    MutexLock lock(mutex_);
    return what_;
  }

 private:
  mutable Mutex mutex_;
  std::string what_ SILTFS_GUARDED_BY(mutex_);
};

// A background thread that syncs all until it is destroyed.
class Syncer {
 public:
  Syncer(FileSystem& fs, Verdict& verdict)
      : thread_([this, &fs, &verdict] {
          while (!stop_) {
            verdict.ExpectOk(fs.SyncAll(), "sync");
            std::this_thread::yield();
          }
        }) {}
  ~Syncer() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

void CloseAndRecount(StoreFixture& store) {
  store.Close();
  const StoreCount count = RecountStore(store.path());
  REQUIRE(count.orphans == 0);  // no file is in use any more
  REQUIRE(count.overlay_extents == 0);
  REQUIRE(store.findings().empty());
}

}  // namespace

TEST_CASE("threads that write their own files do not disturb each other") {
  constexpr int kThreads = 3;
  StoreFixture store;
  FileSystem& fs = store.Open();
  Verdict verdict;
  // All files have the same second half, so the same chunks arrive at the same time.
  const Bytes common = RandomBytes(999, 400'000);
  std::vector<Bytes> expected(kThreads);
  {
    Syncer syncer(fs, verdict);
    Threads threads(kThreads, [&](int t) {
      Random random(static_cast<uint64_t>(t));
      auto created = fs.CreateFile(kRootInode, fmt::format("f{}", t), 0644, kCaller);
      verdict.ExpectOk(created.status(), "create");
      Bytes content = RandomBytes(static_cast<uint64_t>(t), 300'000);
      content.insert(content.end(), common.begin(), common.end());
      for (size_t at = 0; at < content.size(); at += 50'000) {
        const size_t size = std::min<size_t>(50'000, content.size() - at);
        verdict.ExpectOk(fs.Write(created->inode, at, ByteView(content).subspan(at, size)),
                         "write");
        Bytes back(size);
        verdict.ExpectOk(fs.Read(created->inode, at, back).status(), "read");
        verdict.Expect(
            std::equal(back.begin(), back.end(), content.begin() + static_cast<ptrdiff_t>(at)),
            "what was just written is not what is read");
        if (random.OneIn(6)) verdict.ExpectOk(fs.Fsync(created->inode), "fsync");
      }
      fs.ReleaseFile(created->inode);
      fs.Forget(created->inode, 1);
      expected[static_cast<size_t>(t)] = std::move(content);
    });
  }
  REQUIRE(verdict.what() == "");
  store.Reopen();
  for (int t = 0; t < kThreads; ++t) {
    auto file = Resolve(store.fs(), fmt::format("f{}", t));
    REQUIRE_OK(file);
    REQUIRE((*ReadFile(store.fs(), *file) == expected[static_cast<size_t>(t)]));
  }
  CloseAndRecount(store);
}

TEST_CASE("each part of a file written by several threads comes whole from one of them") {
  constexpr int kThreads = 3;
  constexpr uint64_t kParts = 24;
  constexpr size_t kPart = 20'000;  // not a multiple of any block or chunk size
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = MakeFile(fs, kRootInode, "shared");
  Verdict verdict;
  auto part_of = [](uint64_t thread, uint64_t part, uint64_t version) {
    return RandomBytes(thread * 1'000'000 + part * 1000 + version, kPart);
  };
  auto one_of = [&](ByteView got, uint64_t part) {
    if (std::all_of(got.begin(), got.end(), [](uint8_t byte) { return byte == 0; })) return true;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
      for (uint64_t version = 0; version < 3; ++version) {
        const Bytes candidate = part_of(thread, part, version);
        if (std::equal(got.begin(), got.end(), candidate.begin())) return true;
      }
    }
    return false;
  };
  {
    Syncer syncer(fs, verdict);
    Threads writers(kThreads, [&](int t) {
      const auto thread = static_cast<uint64_t>(t);
      Random random(thread);
      verdict.ExpectOk(fs.OpenFile(file, false), "open");
      for (int i = 0; i < 60; ++i) {
        const uint64_t part = random.Below(kParts);
        verdict.ExpectOk(fs.Write(file, part * kPart, part_of(thread, part, random.Below(3))),
                         "write");
        if (random.OneIn(10)) {  // folds while others write
          fs.ReleaseFile(file);
          verdict.ExpectOk(fs.OpenFile(file, false), "open");
        }
        const uint64_t other = random.Below(kParts);
        Bytes got(kPart);
        auto count = fs.Read(file, other * kPart, got);
        verdict.ExpectOk(count.status(), "read");
        got.resize(*count);
        verdict.Expect(one_of(got, other), fmt::format("part {} is torn", other));
      }
      fs.ReleaseFile(file);
    });
  }
  REQUIRE(verdict.what() == "");
  store.Reopen();
  auto bytes = ReadFile(store.fs(), file);
  REQUIRE_OK(bytes);
  for (uint64_t part = 0; part * kPart < bytes->size(); ++part) {
    INFO("part " << part);
    REQUIRE(one_of(ByteView(*bytes).subspan(part * kPart, kPart), part));
  }
  CloseAndRecount(store);
}

TEST_CASE("reads during writes and truncations see a size that was set, and no truncated bytes") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = MakeFile(fs, kRootInode, "a");
  Verdict verdict;
  const Bytes ones(200'000, 1);
  {
    Syncer syncer(fs, verdict);
    Threads threads(3, [&](int t) {
      Random random(static_cast<uint64_t>(t));
      for (int i = 0; i < 60; ++i) {
        if (t == 0) {
          verdict.ExpectOk(fs.Write(file, 0, ones), "write");
        } else if (t == 1) {
          AttributeChange change;
          change.size = random.Below(2) * 100'000;
          verdict.ExpectOk(fs.SetAttributes(file, change).status(), "truncate");
        } else {
          Bytes got(200'000);
          auto count = fs.Read(file, 0, got);
          verdict.ExpectOk(count.status(), "read");
          got.resize(*count);
          verdict.Expect(got.size() % 100'000 == 0, fmt::format("{} bytes", got.size()));
          // The bytes are ones, followed by zeros if the file grew again.
          verdict.Expect(std::is_sorted(got.rbegin(), got.rend()), "ones after zeros");
        }
      }
    });
  }
  REQUIRE(verdict.what() == "");
  CloseAndRecount(store);
}

TEST_CASE("names made, moved, linked and removed by several threads leave a sound tree") {
  const uint64_t seed = GENERATE(1u, 2u);
  constexpr int kThreads = 4;
  StoreFixture store;
  FileSystem& fs = store.Open();
  std::vector<InodeNumber> directories{kRootInode};
  for (int i = 0; i < 3; ++i) directories.push_back(MakeDir(fs, kRootInode, fmt::format("d{}", i)));
  Verdict verdict;
  {
    Syncer syncer(fs, verdict);
    Threads threads(kThreads, [&](int t) {
      Random random(seed * 100 + static_cast<uint64_t>(t));
      auto directory = [&] { return directories[random.Below(directories.size())]; };
      auto name = [&] { return fmt::format("n{}", random.Below(6)); };
      using enum StatusCode;
      for (int i = 0; i < 400; ++i) {
        switch (random.Below(9)) {
          case 0: {
            auto created = fs.CreateFile(directory(), name(), 0644, kCaller);
            verdict.ExpectOneOf(created.status(), {kAlreadyExists, kNotFound, kStale}, "create");
            if (!created.ok()) break;
            verdict.ExpectOk(fs.Write(created->inode, 0, RandomBytes(random.Next(), 3000)),
                             "write");
            fs.ReleaseFile(created->inode);
            fs.Forget(created->inode, 1);
            break;
          }
          case 1: {
            auto made = fs.MakeDirectory(directory(), name(), 0755, kCaller);
            verdict.ExpectOneOf(made.status(), {kAlreadyExists, kNotFound, kStale}, "mkdir");
            if (made.ok()) fs.Forget(made->inode, 1);
            break;
          }
          case 2:
            verdict.ExpectOneOf(fs.Unlink(directory(), name()), {kNotFound, kIsADirectory, kStale},
                                "unlink");
            break;
          case 3:
            verdict.ExpectOneOf(fs.RemoveDirectory(directory(), name()),
                                {kNotFound, kNotADirectory, kNotEmpty, kStale}, "rmdir");
            break;
          case 4: {
            auto found = fs.Lookup(directory(), name());
            verdict.ExpectOneOf(found.status(), {kNotFound, kStale}, "lookup");
            if (!found.ok()) break;
            Status linked;
            auto link = fs.Link(found->inode, directory(), name());
            verdict.ExpectOneOf(link.status(), {kNotFound, kAlreadyExists, kNotPermitted, kStale},
                                "link");
            fs.Forget(found->inode, link.ok() ? 2 : 1);
            break;
          }
          case 5: {  // another thread may remove the name after the lookup
            auto found = fs.Lookup(directory(), name());
            if (!found.ok() || (found->mode & 0170000) != 0100000) {
              if (found.ok()) fs.Forget(found->inode, 1);
              break;
            }
            verdict.ExpectOk(fs.OpenFile(found->inode, random.OneIn(3)), "open what is looked up");
            verdict.ExpectOk(fs.Write(found->inode, random.Below(5000), Bytes(700, 'w')), "write");
            verdict.ExpectOk(fs.SetXattr(found->inode, "user.x", "1", XattrMode::kSet), "setxattr");
            if (random.OneIn(20)) verdict.ExpectOk(fs.Fsync(found->inode), "fsync");
            fs.Forget(found->inode, 1);
            fs.ReleaseFile(found->inode);
            break;
          }
          case 6: {
            const InodeNumber where = directory();
            uint64_t last = 0;
            Status read = fs.ReadDirectory(where, 0, [&](const DirectoryRecord& record) {
              verdict.Expect(record.cookie > last, "cookies out of order");
              last = record.cookie;
              return true;
            });
            verdict.ExpectOneOf(read, {kStale}, "readdir");
            break;
          }
          default: {
            const RenameMode mode = random.OneIn(3) ? RenameMode::kExchange : RenameMode::kReplace;
            verdict.ExpectOneOf(
                fs.Rename(directory(), name(), directory(), name(), mode),
                {kNotFound, kIsADirectory, kNotADirectory, kNotEmpty, kInvalidArgument, kStale},
                "rename");
          }
        }
      }
    });
  }
  REQUIRE(verdict.what() == "");
  CloseAndRecount(store);
}

TEST_CASE("a file is deleted if its last name and its last user go at the same time") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  Verdict verdict;
  // The two threads arrive in any order. In each round, one of them must remove the file.
  std::atomic<int> round = -1;
  std::atomic<int> arrived = 0;
  std::atomic<InodeNumber> inode = 0;
  constexpr int kRounds = 1500;
  {
    Threads forgetter(1, [&](int) {
      for (int i = 0; i < kRounds; ++i) {
        while (round < i) std::this_thread::yield();
        if (i % 2 == 0) fs.ReleaseFile(inode);
        fs.Forget(inode, 1);
        ++arrived;
      }
    });
    for (int i = 0; i < kRounds; ++i) {
      auto created = i % 2 == 0 ? fs.CreateFile(kRootInode, "a", 0644, kCaller)
                                : fs.MakeNode(kRootInode, "a", 0100644, 0, kCaller);
      if (!created.ok()) {
        verdict.ExpectOk(created.status(), "create");
        break;
      }
      inode = created->inode;
      round = i;
      if (i % 3 == 0) {
        verdict.ExpectOk(fs.Unlink(kRootInode, "a"), "unlink");
      } else {
        auto other = fs.MakeNode(kRootInode, "b", 0100644, 0, kCaller);
        verdict.ExpectOk(other.status(), "create");
        fs.Forget(other->inode, 1);
        verdict.ExpectOk(fs.Rename(kRootInode, "b", kRootInode, "a", RenameMode::kReplace),
                         "rename");
        verdict.ExpectOk(fs.Unlink(kRootInode, "a"), "unlink");
      }
      while (arrived <= i) std::this_thread::yield();
    }
    round = kRounds;
  }
  REQUIRE(verdict.what() == "");
  REQUIRE(store.Stats().files == 0);
  CloseAndRecount(store);
}

TEST_CASE("directories that several threads move into each other never leave the tree") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  std::vector<InodeNumber> directories{kRootInode};
  for (int i = 0; i < 5; ++i) directories.push_back(MakeDir(fs, kRootInode, fmt::format("n{}", i)));
  Verdict verdict;
  {
    Threads threads(4, [&](int t) {
      Random random(static_cast<uint64_t>(t));
      using enum StatusCode;
      for (int i = 0; i < 500; ++i) {
        const InodeNumber from = directories[random.Below(directories.size())];
        const InodeNumber to = directories[random.Below(directories.size())];
        const std::string name = fmt::format("n{}", random.Below(5));
        verdict.ExpectOneOf(
            fs.Rename(from, name, to, fmt::format("n{}", random.Below(5)),
                      random.OneIn(2) ? RenameMode::kNoReplace : RenameMode::kExchange),
            {kNotFound, kAlreadyExists, kInvalidArgument}, "rename");
      }
    });
  }
  REQUIRE(verdict.what() == "");
  REQUIRE(store.Stats().directories == 6);
  CloseAndRecount(store);
}

TEST_CASE("fsynced files survive a crash in the middle of other threads' work") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  constexpr int kThreads = 3;
  Verdict verdict;
  std::vector<std::vector<std::pair<std::string, uint64_t>>> promised(kThreads);
  {
    Threads threads(kThreads, [&](int t) {
      for (int i = 0; i < 12; ++i) {
        const std::string name = fmt::format("f{}-{}", t, i);
        const uint64_t seed = static_cast<uint64_t>(t * 100 + i);
        auto created = fs.CreateFile(kRootInode, name, 0644, kCaller);
        verdict.ExpectOk(created.status(), "create");
        verdict.ExpectOk(fs.Write(created->inode, 0, RandomBytes(seed, 60'000)), "write");
        if (i % 2 == 0) fs.ReleaseFile(created->inode);
        if (i % 3 == 0) continue;
        verdict.ExpectOk(fs.Fsync(created->inode), "fsync");
        promised[static_cast<size_t>(t)].emplace_back(name, seed);
      }
    });
  }
  REQUIRE(verdict.what() == "");
  store.Crash();
  store.Open();
  for (const auto& files : promised) {
    for (const auto& [name, seed] : files) {
      INFO(name);
      auto file = Resolve(store.fs(), name);
      REQUIRE_OK(file);
      REQUIRE((*ReadFile(store.fs(), *file) == RandomBytes(seed, 60'000)));
    }
  }
  store.Close();
  RecountStore(store.path());
}

}  // namespace siltfs::testing
