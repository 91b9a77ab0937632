// A crash during the operations of several threads on several files. A prefix of each thread's
// operations survives. An operation survives only with all operations that ended before it began.
// All synced operations survive.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "fs/interface/store_maintenance.h"
#include "store/base/random.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

constexpr int64_t kClock = 1'000'000;
constexpr int kFiles = 4;

uint64_t HashOf(ByteView bytes) {
  uint64_t hash = 14695981039346656037ULL;
  for (uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211ULL;
  return hash;
}

// A file's state, as its thread knows it.
struct Known {
  Bytes content;
  uint32_t mode = 0644;
  int64_t mtime = kClock;
  std::string xattr;

  std::string Text() const {
    return fmt::format("{} bytes {:x}, mode {:o}, mtime {}, xattr {}", content.size(),
                       HashOf(content), mode, mtime, xattr);
  }
};
using State = std::map<std::string, std::string>;

struct Step {
  uint64_t began;
  uint64_t ended;
  State after;
  std::string what;
};

std::atomic<uint64_t> stamp;

// Lets the other threads run for a while.
void Yield(uint64_t times) {
  while (times-- > 0) std::this_thread::yield();
}

// One thread's operations in a directory of its own.
class Worker {
 public:
  Worker(FileSystem& fs, InodeNumber directory, uint64_t seed, bool may_fail)
      : fs_(fs), directory_(directory), random_(seed), may_fail_(may_fail) {
    steps_.push_back({0, 0, {}, "nothing"});
  }

  void Run(int count, const std::atomic<bool>& power_gone) {
    for (int i = 0; i < count && what_.empty() && !ended_; ++i) {
      power_gone_ = &power_gone;
      One();
    }
  }
  void CloseAll() {
    for (auto& [name, inode] : open_) Release(inode);
    open_.clear();
  }

  const std::vector<Step>& steps() const { return steps_; }
  const std::string& what() const { return what_; }
  size_t synced() const { return synced_; }

 private:
  void Release(InodeNumber inode) {
    fs_.ReleaseFile(inode);
    fs_.Forget(inode, 1);
  }
  std::string PickName() { return fmt::format("f{}", random_.Below(kFiles)); }

  void Done(uint64_t began, const Status& status, const std::string& what) {
    const uint64_t ended = ++stamp;
    if (!status.ok()) {
      if (*power_gone_) {
        ended_ = true;
        return;
      }
      if (!may_fail_ || !status.Is(StatusCode::kNoSpace))
        what_ = fmt::format("{}: {}", what, status.ToString());
      return;
    }
    State state;
    for (auto& [name, file] : files_) state[name] = texts_[name];
    steps_.push_back({began, ended, std::move(state), what});
  }
  void Changed(const std::string& name) {
    texts_[name] = files_[name].Text();
    last_[name] = steps_.size() + 1;
  }

  void One() {
    const uint64_t began = ++stamp;
    const std::string name = PickName();
    if (!files_.contains(name)) {
      auto created = fs_.CreateFile(directory_, name, 0644, kCaller);
      if (created.ok()) {
        open_[name] = created->inode;
        files_[name] = {};
        Changed(name);
      }
      return Done(began, created.status(), "create " + name);
    }
    if (!open_.contains(name)) {
      auto found = fs_.Lookup(directory_, name);
      if (!found.ok()) return Done(began, found.status(), "lookup " + name);
      Status opened = fs_.OpenFile(found->inode, false);
      if (!opened.ok()) {
        fs_.Forget(found->inode, 1);
        return Done(began, opened, "open " + name);
      }
      open_[name] = found->inode;
    }
    const InodeNumber inode = open_[name];
    Known& file = files_[name];
    switch (random_.Below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
      case 7: {
        const size_t most = random_.OneIn(8) ? 300'000 : random_.OneIn(3) ? 20'000 : 50;
        const size_t size = 1 + random_.Below(most);
        const uint64_t offset =
            random_.OneIn(2) ? file.content.size() : random_.Below(file.content.size() + 1000);
        if (offset + size > 600'000) return;
        const Bytes data = RandomBytes(random_.Next(), size);
        Status status = fs_.Write(inode, offset, data, Privileges::kDropAll, WriteTimes::kNow);
        if (status.ok()) {
          file.content.resize(std::max<size_t>(file.content.size(), offset + size));
          std::copy(data.begin(), data.end(),
                    file.content.begin() + static_cast<ptrdiff_t>(offset));
          file.mtime = kClock;
          file.mode &= ~04000U;
          Changed(name);
        }
        return Done(began, status, fmt::format("write {} [{}, +{})", name, offset, size));
      }
      case 8:
      case 9: {
        AttributeChange change;
        change.mtime = static_cast<int64_t>(began);
        Status status = fs_.SetAttributes(inode, change).status();
        if (status.ok()) {
          file.mtime = *change.mtime;
          Changed(name);
        }
        return Done(began, status, "utimes " + name);
      }
      case 10: {
        AttributeChange change;
        change.mode = random_.Below(0200) | 04400;
        Status status = fs_.SetAttributes(inode, change).status();
        if (status.ok()) {
          file.mode = *change.mode;
          Changed(name);
        }
        return Done(began, status, "chmod " + name);
      }
      case 11: {
        AttributeChange change;
        change.size = random_.Below(file.content.size() + 100);
        Status status = fs_.SetAttributes(inode, change).status();
        if (status.ok()) {
          file.content.resize(*change.size);
          file.mtime = kClock;
          Changed(name);
        }
        return Done(began, status, "truncate " + name);
      }
      case 12: {
        const std::string value = fmt::format("{}", began);
        Status status = fs_.SetXattr(inode, "user.a", value, XattrMode::kSet);
        if (status.ok()) {
          file.xattr = value;
          Changed(name);
        }
        return Done(began, status, "setxattr " + name);
      }
      case 13: {
        const std::string other = PickName();
        if (other == name) return;
        Status status = fs_.Rename(directory_, name, directory_, other, RenameMode::kReplace);
        if (status.ok()) {
          if (open_.contains(other)) Release(open_[other]);
          open_[other] = inode;
          open_.erase(name);
          files_[other] = std::move(files_[name]);
          files_.erase(name);
          Changed(other);
        }
        return Done(began, status, "rename " + name + " " + other);
      }
      case 14: {
        Status status = fs_.Unlink(directory_, name);
        if (status.ok()) {
          files_.erase(name);
          if (random_.OneIn(2)) fs_.Write(inode, 5, AsBytes("gone")).IgnoreError("is gone");
          Release(inode);
          open_.erase(name);
        }
        return Done(began, status, "unlink " + name);
      }
      case 15: {
        const std::string other = PickName();
        if (other == name || !open_.contains(other) || file.content.empty()) return;
        Known& target = files_[other];
        const uint64_t from = random_.Below(file.content.size());
        const uint64_t length = 1 + random_.Below(file.content.size() - from);
        const uint64_t to = random_.Below(target.content.size() + 1);
        if (to + length > 600'000) return;
        auto copied = fs_.CopyRange(inode, from, open_[other], to, length, Privileges::kKeep);
        if (copied.ok()) {
          const Bytes data(file.content.begin() + static_cast<ptrdiff_t>(from),
                           file.content.begin() + static_cast<ptrdiff_t>(from + length));
          target.content.resize(std::max<size_t>(target.content.size(), to + length));
          std::copy(data.begin(), data.end(), target.content.begin() + static_cast<ptrdiff_t>(to));
          target.mtime = kClock;
          Changed(other);
        }
        return Done(began, copied.status(), "copy " + name + " " + other);
      }
      case 16: {
        if (file.content.empty()) return;
        const uint64_t from = random_.Below(file.content.size());
        const uint64_t length = 1 + random_.Below(file.content.size() - from);
        Status status =
            fs_.Allocate(inode, AllocateMode::kZero, from, length, true, Privileges::kKeep);
        if (status.ok()) {
          std::fill_n(file.content.begin() + static_cast<ptrdiff_t>(from), length, uint8_t{0});
          file.mtime = kClock;
          Changed(name);
        }
        return Done(began, status, "punch " + name);
      }
      case 17:
      case 18: {
        Release(inode);
        open_.erase(name);
        return;
      }
      default: {
        Status status = fs_.Fsync(inode);
        if (status.ok()) {
          synced_ = std::max(synced_, last_[name]);
        } else if (*power_gone_) {
          ended_ = true;
        } else if (!may_fail_ || !status.Is(StatusCode::kNoSpace)) {
          what_ = "fsync: " + status.ToString();
        }
      }
    }
  }

  FileSystem& fs_;
  const InodeNumber directory_;
  Random random_;
  const bool may_fail_;
  std::map<std::string, Known> files_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, size_t> last_;  // the number of steps up to each file's last change
  std::map<std::string, InodeNumber> open_;
  std::vector<Step> steps_;
  bool ended_ = false;                             // a failure ended the thread's operations
  const std::atomic<bool>* power_gone_ = nullptr;  // once true, all operations fail
  size_t synced_ = 0;                              // steps known to be synced
  std::string what_;
};

State StateOf(FileSystem& fs, InodeNumber directory) {
  State state;
  for (const std::string& name : ListNames(fs, directory)) {
    auto found = fs.Lookup(directory, name);
    REQUIRE_OK(found);
    Known file;
    auto content = ReadFile(fs, found->inode);
    REQUIRE_OK(content);
    file.content = std::move(*content);
    file.mode = found->mode & 07777;
    file.mtime = found->mtime;
    auto xattr = fs.GetXattr(found->inode, "user.a");
    if (xattr.ok()) file.xattr = *xattr;
    fs.Forget(found->inode, 1);
    state[name] = file.Text();
  }
  return state;
}

std::string TextOf(const State& state) {
  std::string text;
  for (const auto& [name, file] : state) text += name + ": " + file + "\n";
  return text;
}

void Round(uint64_t seed, bool faults) {
  constexpr int kThreads = 3;
  Random random(seed);
  StoreFixture store;
  store.env().SetClock(kClock);
  FileSystemOptions options;
  options.store = store.path();
  options.segments = SealedSegments(store.env());
  options.group_bytes = std::array<size_t, 4>{1, 2000, 100'000, 4U << 20}[random.Below(4)];
  options.commit_interval =
      std::chrono::milliseconds(std::array<int, 3>{0, 1, 20}[random.Below(3)]);
  auto opened = FileSystem::Open(store.env(), options);
  REQUIRE_OK(opened);
  std::unique_ptr<FileSystem> fs = std::move(opened).value();
  std::vector<InodeNumber> directories;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int t = 0; t < kThreads; ++t) {
    directories.push_back(MakeDir(*fs, kRootInode, fmt::format("d{}", t)));
    workers.push_back(std::make_unique<Worker>(*fs, directories.back(), random.Next(), faults));
  }
  REQUIRE_OK(fs->SyncAll());
  std::atomic<bool> power_gone = false;
  const bool closes = faults && random.OneIn(2);
  const int count = 20 + static_cast<int>(random.Below(200));
  {
    std::vector<std::thread> threads;
    std::atomic<bool> over = false;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] { workers[static_cast<size_t>(t)]->Run(count, power_gone); });
    const uint64_t others = random.Below(4);
    const uint64_t power_until = stamp + 20 + random.Below(static_cast<uint64_t>(count) * 6);
    std::thread power([&] {
      while (!over && stamp < power_until) std::this_thread::yield();
      if (over || faults) return;
      power_gone = true;
      store.env().Fail(FaultEnv::Call::kChange, "", StatusCode::kIoError);
    });
    std::thread other([&, others, own = random.Next()] {
      Random dice(own);
      while (!over) {
        if ((others & 1) != 0) fs->SyncAll().IgnoreError("checked afterwards");
        if ((others & 2) != 0) fs->maintenance().GetStats().status().IgnoreError("only to disturb");
        if (faults) {
          if (dice.OneIn(2)) {
            store.env().Fail(FaultEnv::Call::kWrite, "/meta/", StatusCode::kNoSpace);
          } else {
            store.env().SetAvailable(0);
          }
          Yield(dice.Below(4000));
          store.env().Heal();
          store.env().SetAvailable(std::nullopt);
        }
        Yield(dice.Below(2000));
      }
    });
    for (std::thread& thread : threads) thread.join();
    over = true;
    other.join();
    power.join();
  }
  INFO("seed " << seed << ", group " << options.group_bytes << ", interval "
               << options.commit_interval.count() << ", " << count << " steps, closes " << closes);
  for (auto& worker : workers) REQUIRE(worker->what() == "");
  if (closes) {
    for (auto& worker : workers) worker->CloseAll();
    REQUIRE_OK(fs->Close());
  }
  fs.reset();
  store.env().Heal();
  RecountStore(store.path());
  FileSystem& again = store.Open();
  uint64_t last_began = 0;            // the latest start of an operation that survived
  uint64_t first_ended = UINT64_MAX;  // the earliest end of an operation that did not survive
  for (int t = 0; t < kThreads; ++t) {
    const State state = StateOf(again, directories[static_cast<size_t>(t)]);
    const auto& steps = workers[static_cast<size_t>(t)]->steps();
    const size_t synced = closes ? steps.size() : workers[static_cast<size_t>(t)]->synced();
    size_t found = steps.size();
    while (found > 0 && steps[found - 1].after != state) --found;
    INFO("thread " << t << " has\n"
                   << TextOf(state) << "of " << steps.size() << " steps, synced " << synced);
    REQUIRE(found > 0);
    REQUIRE(found >= synced);
    // Several steps may lead to the same state, for example if a file is made and removed. Then
    // only the steps up to the first of them are known to have survived.
    size_t least = 1;
    while (steps[least - 1].after != state) ++least;
    last_began = std::max(last_began, steps[least - 1].began);
    if (found < steps.size()) first_ended = std::min(first_ended, steps[found].ended);
  }
  INFO("an operation that began at " << last_began << " survived, one that ended at " << first_ended
                                     << " did not");
  REQUIRE(last_began <= first_ended);
  store.Close();
  RecountStore(store.path());
}

// The number of seeds: this test's share of a campaign, but at least three, because three seeds are
// enough to detect a wrong order.
uint64_t Seeds() { return std::max<uint64_t>(3, Share(15)); }

}  // namespace

TEST_CASE("an operation survives a crash only with all operations that ended before it began") {
  for (uint64_t seed = 1; seed <= Seeds(); ++seed) Round(seed, false);
}

TEST_CASE("a disk that is sometimes full loses no accepted change") {
  for (uint64_t seed = 1; seed <= Seeds(); ++seed) Round(seed, true);
}

TEST_CASE("a store may be destroyed while it commits") {
  for (uint64_t round = 0; round < 40; ++round) {
    StoreFixture store;
    FileSystemOptions options;
    options.store = store.path();
    options.segments = SealedSegments(store.env());
    options.commit_interval = std::chrono::milliseconds(1);
    auto opened = FileSystem::Open(store.env(), options);
    REQUIRE_OK(opened);
    FileSystem& fs = **opened;
    std::vector<InodeNumber> files;
    for (int i = 0; i < 100; ++i)
      files.push_back(fs.CreateFile(kRootInode, fmt::format("{}", i), 0644, kCaller)->inode);
    const Bytes data = RandomBytes(round, 3000);
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::microseconds(1000 + 100 * (round % 17));
    for (uint64_t i = 0; std::chrono::steady_clock::now() < end; ++i)
      REQUIRE_OK(fs.Write(files[i % files.size()], 10 * i, data));
    opened.value().reset();
  }
}

}  // namespace siltfs::testing
