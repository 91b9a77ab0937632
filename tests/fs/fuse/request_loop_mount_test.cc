// Concurrency of the request loop, on real mounts.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fs/fuse/fuse_binding.h"
#include "store/base/thread_annotations.h"
#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

// Lookups of names that begin with "held" wait until the test releases them.
class HoldingFileSystem final : public MemoryFileSystem {
 public:
  Result<Attributes> Lookup(InodeNumber parent, std::string_view name) override {
    if (name.starts_with("held")) {
      const MutexLock lock(mutex_);
      ++held_;
      changed_.NotifyAll();
      while (holding_) changed_.Wait(mutex_);
      --held_;
    }
    return MemoryFileSystem::Lookup(parent, name);
  }
  void AwaitHeld(size_t count) {
    const MutexLock lock(mutex_);
    while (held_ < count) changed_.Wait(mutex_);
  }
  void LetGo() {
    const MutexLock lock(mutex_);
    holding_ = false;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  size_t held_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool holding_ SILTFS_GUARDED_BY(mutex_) = true;
};

// Threads that each look up one held name. Lookups do not change a directory, so the kernel sends
// several lookups in one directory at the same time.
class Askers {
 public:
  Askers(HoldingFileSystem& fs, const MountedFileSystem& mount) : fs_(fs), mount_(mount) {}
  ~Askers() {
    fs_.LetGo();
    for (std::thread& thread : threads_) thread.join();
  }
  void AddOne() {
    const std::string directory = std::to_string(threads_.size());
    REQUIRE(Outcome(mkdir((mount_ / directory).c_str(), 0755)) == 0);
    AddOneIn(directory, "held");
  }
  void AddOneIn(const std::string& directory, const std::string& name) {
    const std::string path = mount_ / (directory + "/" + name);
    threads_.emplace_back([path] {
      struct stat about = {};
      static_cast<void>(stat(path.c_str(), &about));
    });
    fs_.AwaitHeld(threads_.size());
  }

 private:
  HoldingFileSystem& fs_;
  const MountedFileSystem& mount_;
  std::vector<std::thread> threads_;
};

// A workload with a lookup, an open, a large and a small write, and more.
void UseAFile(const std::string& path) {
  REQUIRE(WriteFile(path, "small") == 0);
  REQUIRE(WriteFile(path, std::string(300'000, 'x')) == 0);
  REQUIRE(StatOf(path).st_size == 300'000);
  REQUIRE(Outcome(unlink(path.c_str())) == 0);
}

}  // namespace

TEST_CASE("A blocked request does not block others, as long as a thread is left") {
  HoldingFileSystem fs;
  const MountedFileSystem mount(fs);
  Askers askers(fs, mount);
  UseAFile(mount / "file");
  for (unsigned held = 1; held < FuseBinding::kMaxThreads; ++held) {
    askers.AddOne();
    UseAFile(mount / ("file-" + std::to_string(held)));
  }
}

TEST_CASE("Names of one directory are looked up in parallel") {
  HoldingFileSystem fs;
  const MountedFileSystem mount(fs);
  REQUIRE(Outcome(mkdir((mount / "0").c_str(), 0755)) == 0);
  Askers askers(fs, mount);
  askers.AddOneIn("0", "held");
  askers.AddOneIn("0", "held too");  // returns when both are blocked
}

TEST_CASE("Requests are answered again after all threads were blocked") {
  HoldingFileSystem fs;
  const MountedFileSystem mount(fs);
  {
    Askers askers(fs, mount);
    for (unsigned held = 0; held < FuseBinding::kMaxThreads; ++held) askers.AddOne();
  }
  UseAFile(mount / "file");
}

TEST_CASE("Requests arrive as the options and the environment say") {
  const char* const wanted = std::getenv("SILTFS_TEST_IO_URING");
  const bool rings = wanted != nullptr && std::string_view(wanted) == "on";
  MemoryFileSystem fs;
  {
    const MountedFileSystem mount(fs);
    UseAFile(mount / "file");
    if (wanted != nullptr)
      CHECK(mount.CurrentTransport() == (rings ? Transport::kRings : Transport::kDevice));
  }
  MountOptions options;
  options.io_uring = IoUringUse::kOff;
  const MountedFileSystem mount(fs, options);
  UseAFile(mount / "file");
  CHECK(mount.CurrentTransport() == Transport::kDevice);
}

TEST_CASE("Many concurrent programs are all answered") {
  MemoryFileSystem fs;
  const MountedFileSystem mount(fs);
  std::vector<std::thread> programs;
  std::atomic<int> failed = 0;
  for (int program = 0; program < 12; ++program) {
    programs.emplace_back([&, program] {
      for (int i = 0; i < 100; ++i) {
        const std::string path = mount / (std::to_string(program) + "-" + std::to_string(i));
        if (WriteFile(path, std::string(static_cast<size_t>(i) * 1000, 'x')) != 0) ++failed;
        if (Outcome(unlink(path.c_str())) != 0) ++failed;
      }
    });
  }
  for (std::thread& program : programs) program.join();
  REQUIRE(failed == 0);
}

}  // namespace siltfs::testing
