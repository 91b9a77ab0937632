// Callers that get a signal or are killed while their request is being answered.
#include <fcntl.h>
#include <sys/wait.h>

#include <sys/statvfs.h>
#include <csignal>
#include <functional>
#include <string_view>
#include <thread>

#include "store/base/thread_annotations.h"
#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

// Blocks requests of one kind while it is closed.
class Gate {
 public:
  void Close(std::string_view kind) {
    const MutexLock lock(mutex_);
    closed_to_ = kind;
    waiting_ = 0;
  }
  void Open() {
    const MutexLock lock(mutex_);
    closed_to_ = {};
    changed_.NotifyAll();
  }
  void Pass(std::string_view kind) {
    const MutexLock lock(mutex_);
    if (kind == closed_to_) ++waiting_;
    while (kind == closed_to_) changed_.Wait(mutex_);
  }
  bool HasRequest() {
    const MutexLock lock(mutex_);
    return waiting_ > 0;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::string_view closed_to_ SILTFS_GUARDED_BY(mutex_);
  int waiting_ SILTFS_GUARDED_BY(mutex_) = 0;
};

class SlowFileSystem final : public MemoryFileSystem {
 public:
  Result<Attributes> Lookup(InodeNumber parent, std::string_view name) override {
    if (name == "slow") gate.Pass("looking up");
    return MemoryFileSystem::Lookup(parent, name);
  }
  Result<Attributes> MakeDirectory(InodeNumber parent, std::string_view name, uint32_t mode,
                                   Caller caller) override {
    gate.Pass("making a directory");
    return MemoryFileSystem::MakeDirectory(parent, name, mode, caller);
  }
  Result<Attributes> CreateFile(InodeNumber parent, std::string_view name, uint32_t mode,
                                Caller caller) override {
    gate.Pass("creating");
    return MemoryFileSystem::CreateFile(parent, name, mode, caller);
  }
  Result<Attributes> MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                       Caller caller) override {
    gate.Pass("making a temporary file");
    return MemoryFileSystem::MakeTemporaryFile(directory, mode, caller);
  }
  Status OpenFile(InodeNumber inode, bool truncate) override {
    gate.Pass("opening");
    return MemoryFileSystem::OpenFile(inode, truncate);
  }
  Result<size_t> Read(InodeNumber inode, uint64_t offset, MutableByteView out) override {
    gate.Pass("reading");
    return MemoryFileSystem::Read(inode, offset, out);
  }
  Status Fsync(InodeNumber inode) override {
    gate.Pass("syncing");
    return MemoryFileSystem::Fsync(inode);
  }
  Gate gate;
};

struct InterruptsFixture {
  SlowFileSystem fs;
  MountedFileSystem mount{fs};
  std::string file = mount / "file";
  std::string slow = mount / "slow";

  // Waits until no inode is in use. Returns false if inodes are still in use after many attempts.
  // The kernel sends FORGET and RELEASE at some later time. Each attempt makes requests, so that
  // time passes.
  bool NothingIsInUse() const {
    for (int turn = 0; turn < 5000; ++turn) {
      if (fs.TotalLookups() == 0 && fs.TotalOpens() == 0) return true;
      mount.DropCaches();
      static_cast<void>(StatOf(mount.path()));
    }
    return false;
  }
};

// Runs `act` in a child process. `act` may only make system calls.
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

// Waits until a request is blocked at the gate. Returns false if the child ended before it made a
// request.
bool AwaitRequest(Gate& gate, pid_t child) {
  while (!gate.HasRequest()) {
    siginfo_t ended = {};
    REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0);
    if (ended.si_pid == child) return false;
    std::this_thread::yield();
  }
  return true;
}

void OnSignal(int /*number*/) {}

}  // namespace

TEST_CASE_METHOD(
    InterruptsFixture,
    "A caller that is killed during a request leaves nothing behind, and blocks no other") {
  REQUIRE(WriteFile(file, "content") == 0);
  mount.DropCaches();
  const char* const file_name = file.c_str();
  const char* const slow_name = slow.c_str();
  const char* const directory = mount.path().c_str();
  std::string_view kind;
  std::function<int()> act;
  SECTION("looking up") {
    kind = "looking up";
    act = [slow_name] { return access(slow_name, F_OK); };
  }
  SECTION("making a directory") {
    kind = "making a directory";
    act = [slow_name] { return mkdir(slow_name, 0755); };
  }
  SECTION("creating") {
    kind = "creating";
    act = [slow_name] { return open(slow_name, O_RDWR | O_CREAT, 0644); };
  }
  SECTION("making a temporary file") {
    kind = "making a temporary file";
    act = [directory] { return open(directory, O_TMPFILE | O_RDWR, 0644); };
  }
  SECTION("opening") {
    kind = "opening";
    act = [file_name] { return open(file_name, O_RDONLY); };
  }
  SECTION("syncing") {
    kind = "syncing";
    act = [file_name] { return fsync(open(file_name, O_RDWR)); };
  }
  fs.gate.Close(kind);
  const pid_t child = StartChild(act);
  REQUIRE(AwaitRequest(fs.gate, child));
  REQUIRE(Outcome(kill(child, SIGKILL)) == 0);
  // While the request is blocked, the daemon answers other callers.
  struct statvfs space = {};
  CHECK(statvfs(directory, &space) == 0);
  fs.gate.Open();
  const int status = StatusOf(child);
  CHECK(WIFSIGNALED(status));
  CHECK(ReadFile(file) == "content");
  CHECK(NothingIsInUse());
  REQUIRE_OK(mount.Unmount());
}

TEST_CASE_METHOD(InterruptsFixture, "A signal does not make a running sync or read fail") {
  REQUIRE(WriteFile(file, "content") == 0);
  mount.DropCaches();
  const char* const name = file.c_str();
  std::string_view kind;
  std::function<int()> act;
  SECTION("a sync") {
    kind = "syncing";
    act = [name] { return fsync(open(name, O_RDWR)) == 0 ? 0 : 1; };
  }
  SECTION("a read") {
    kind = "reading";
    act = [name] {
      // Drop the file's pages. DropCaches would not, if a RELEASE of the inode is still pending.
      const int fd = open(name, O_RDONLY);
      posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      char byte = 0;
      return read(fd, &byte, 1) == 1 && byte == 'c' ? 0 : 1;
    };
  }
  struct sigaction action = {};
  action.sa_handler = OnSignal;  // without SA_RESTART, so that calls are interrupted
  struct sigaction before = {};
  REQUIRE(sigaction(SIGUSR1, &action, &before) == 0);
  fs.gate.Close(kind);
  const pid_t child = StartChild(act);
  REQUIRE(AwaitRequest(fs.gate, child));
  REQUIRE(Outcome(kill(child, SIGUSR1)) == 0);
  // Gives the kernel time to report the signal to the daemon: each statvfs is a request that waits
  // for the daemon's reply.
  struct statvfs space = {};
  for (int turn = 0; turn < 100; ++turn) CHECK(statvfs(mount.path().c_str(), &space) == 0);
  fs.gate.Open();
  const int status = StatusOf(child);
  REQUIRE(sigaction(SIGUSR1, &before, nullptr) == 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(NothingIsInUse());
}

}  // namespace siltfs::testing
