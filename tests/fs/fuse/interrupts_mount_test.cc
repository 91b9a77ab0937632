// Callers that are signalled or killed while their request is being answered.
#include <sys/wait.h>

#include <sys/statvfs.h>
#include <csignal>
#include <functional>

#include "store/base/thread_annotations.h"
#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

// Holds requests back, once closed, until it is opened.
class Gate {
 public:
  void Close() {
    const MutexLock lock(mutex_);
    open_ = false;
    waiting_ = 0;
  }
  void Open() {
    const MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Pass() {
    const MutexLock lock(mutex_);
    ++waiting_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mutex_);
  }
  // Until a request stands before it.
  void AwaitRequest() {
    const MutexLock lock(mutex_);
    while (waiting_ == 0) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ SILTFS_GUARDED_BY(mutex_) = true;
  int waiting_ SILTFS_GUARDED_BY(mutex_) = 0;
};

class SlowFileSystem final : public MemoryFileSystem {
 public:
  Result<Attributes> Lookup(InodeNumber parent, std::string_view name) override {
    if (name == "slow") gate.Pass();
    return MemoryFileSystem::Lookup(parent, name);
  }
  Result<Attributes> MakeDirectory(InodeNumber parent, std::string_view name, uint32_t mode,
                                   Caller caller) override {
    gate.Pass();
    return MemoryFileSystem::MakeDirectory(parent, name, mode, caller);
  }
  Result<Attributes> CreateFile(InodeNumber parent, std::string_view name, uint32_t mode,
                                Caller caller) override {
    gate.Pass();
    return MemoryFileSystem::CreateFile(parent, name, mode, caller);
  }
  Result<Attributes> MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                       Caller caller) override {
    gate.Pass();
    return MemoryFileSystem::MakeTemporaryFile(directory, mode, caller);
  }
  Status OpenFile(InodeNumber inode, bool truncate) override {
    gate.Pass();
    return MemoryFileSystem::OpenFile(inode, truncate);
  }
  Result<size_t> Read(InodeNumber inode, uint64_t offset, MutableByteView out) override {
    gate.Pass();
    return MemoryFileSystem::Read(inode, offset, out);
  }
  Status Fsync(InodeNumber inode) override {
    gate.Pass();
    return MemoryFileSystem::Fsync(inode);
  }
  Gate gate;
};

struct Fixture {
  SlowFileSystem fs;
  MountedFileSystem mount{fs};
  std::string file = mount / "file";
  std::string slow = mount / "slow";

  // Forgetting and closing are not synchronous; each turn is a few round trips.
  bool NothingIsInUse() const {
    for (int turn = 0; turn < 5000; ++turn) {
      if (fs.TotalLookups() == 0 && fs.TotalOpens() == 0) return true;
      mount.DropCaches();
      static_cast<void>(StatOf(mount.path()));
    }
    return false;
  }
};

// Only system calls may happen in it.
pid_t StartChild(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) _exit(act());
  REQUIRE(child > 0);
  return child;
}

int StatusOf(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

void OnSignal(int /*number*/) {}

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "Who is killed within a request leaves nothing behind and blocks nobody") {
  REQUIRE(WriteFile(file, "content") == 0);
  mount.DropCaches();
  const char* const file_name = file.c_str();
  const char* const slow_name = slow.c_str();
  const char* const directory = mount.path().c_str();
  std::function<int()> act;
  SECTION("looking up") {
    act = [slow_name] { return access(slow_name, F_OK); };
  }
  SECTION("making a directory") {
    act = [slow_name] { return mkdir(slow_name, 0755); };
  }
  SECTION("creating") {
    act = [slow_name] { return open(slow_name, O_RDWR | O_CREAT, 0644); };
  }
  SECTION("making a temporary file") {
    act = [directory] { return open(directory, O_TMPFILE | O_RDWR, 0644); };
  }
  SECTION("opening") {
    act = [file_name] { return open(file_name, O_RDONLY); };
  }
  SECTION("syncing") {
    act = [file_name] { return fsync(open(file_name, O_RDWR)); };
  }
  fs.gate.Close();
  const pid_t child = StartChild(act);
  fs.gate.AwaitRequest();
  REQUIRE(Outcome(kill(child, SIGKILL)) == 0);
  // Others are served meanwhile.
  struct statvfs space = {};
  CHECK(statvfs(directory, &space) == 0);
  fs.gate.Open();
  const int status = StatusOf(child);
  CHECK(WIFSIGNALED(status));
  CHECK(ReadFile(file) == "content");
  CHECK(NothingIsInUse());
  REQUIRE_OK(mount.Unmount());
}

TEST_CASE_METHOD(Fixture, "A signal does not make a sync or a read in progress fail") {
  REQUIRE(WriteFile(file, "content") == 0);
  mount.DropCaches();
  const char* const name = file.c_str();
  std::function<int()> act;
  SECTION("a sync") {
    act = [name] { return fsync(open(name, O_RDWR)) == 0 ? 0 : 1; };
  }
  SECTION("a read") {
    act = [name] {
      char byte = 0;
      return read(open(name, O_RDONLY), &byte, 1) == 1 && byte == 'c' ? 0 : 1;
    };
  }
  struct sigaction action = {};
  action.sa_handler = OnSignal;  // and no SA_RESTART: what can be interrupted is
  struct sigaction before = {};
  REQUIRE(sigaction(SIGUSR1, &action, &before) == 0);
  fs.gate.Close();
  const pid_t child = StartChild(act);
  fs.gate.AwaitRequest();
  REQUIRE(Outcome(kill(child, SIGUSR1)) == 0);
  struct statvfs space = {};
  CHECK(statvfs(mount.path().c_str(), &space) == 0);
  fs.gate.Open();
  const int status = StatusOf(child);
  REQUIRE(sigaction(SIGUSR1, &before, nullptr) == 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(NothingIsInUse());
}

}  // namespace siltfs::testing
