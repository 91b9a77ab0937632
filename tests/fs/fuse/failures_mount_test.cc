// Failures of the core as seen by the caller, and mounts that fail.
#include <atomic>

#include "store/env/posix_env.h"
#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/temporary_directory.h"

#include <spdlog/sinks/null_sink.h>

namespace siltfs::testing {
namespace {

// Reads and writes fail on demand.
class FailingFileSystem : public MemoryFileSystem {
 public:
  std::atomic<StatusCode> failure = StatusCode::kOk;

  Result<Attributes> GetAttributes(InodeNumber inode) override {
    if (failure != StatusCode::kOk) return Status(failure, "made to fail");
    return MemoryFileSystem::GetAttributes(inode);
  }
  Result<size_t> Read(InodeNumber inode, uint64_t offset, MutableByteView out) override {
    if (failure != StatusCode::kOk) return Status(failure, "made to fail");
    return MemoryFileSystem::Read(inode, offset, out);
  }
  Status Write(InodeNumber inode, uint64_t offset, ByteView data, Privileges privileges,
               WriteTimes times) override {
    if (failure != StatusCode::kOk) return {failure, "made to fail"};
    return MemoryFileSystem::Write(inode, offset, data, privileges, times);
  }
  Status Fsync(InodeNumber inode) override {
    if (failure != StatusCode::kOk) return {failure, "made to fail"};
    return MemoryFileSystem::Fsync(inode);
  }
};

TEST_CASE("Damage in the file system is an I/O error for the reader, and has no other effect") {
  FailingFileSystem fs;
  MountedFileSystem mount(fs);
  REQUIRE(WriteFile(mount / "a", "x") == 0);
  const Descriptor file(mount / "a");
  // These calls make the kernel drop the cached page. With DropCaches the kernel might keep it.
  REQUIRE(fsync(file.get()) == 0);
  REQUIRE(posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED) == 0);
  fs.failure = StatusCode::kCorruption;
  char byte = 0;
  CHECK(Outcome(pread(file.get(), &byte, 1, 0)) == EIO);
  fs.failure = StatusCode::kOk;
  CHECK(Outcome(pread(file.get(), &byte, 1, 0)) == 0);
  CHECK(byte == 'x');
}

TEST_CASE("Unreadable attributes are an I/O error, including the birth time") {
  FailingFileSystem fs;
  MountedFileSystem mount(fs);
  REQUIRE(WriteFile(mount / "a", "x") == 0);
  const Descriptor file(mount / "a");
  fs.failure = StatusCode::kCorruption;
  struct statx told = {};
  const auto ask = [&] {
    return Outcome(statx(file.get(), "", AT_EMPTY_PATH, STATX_BTIME, &told));
  };
  CHECK(ask() == EIO);
  fs.failure = StatusCode::kOk;
  CHECK(ask() == 0);
}

TEST_CASE("A full disk is reported by fsync although the kernel accepted the data") {
  FailingFileSystem fs;
  MountedFileSystem mount(fs);
  Descriptor file(mount / "a", O_RDWR | O_CREAT);
  fs.failure = StatusCode::kNoSpace;
  REQUIRE(WriteAt(file.get(), 0, AsBytes("x")) == 0);
  CHECK(Outcome(fsync(file.get())) == ENOSPC);
  fs.failure = StatusCode::kOk;
}

TEST_CASE("A failed sync reaches the caller") {
  FailingFileSystem fs;
  MountedFileSystem mount(fs);
  Descriptor file(mount / "a", O_RDWR | O_CREAT);
  fs.failure = StatusCode::kIoError;
  CHECK(Outcome(fsync(file.get())) == EIO);
}

TEST_CASE("An invalid mountpoint is refused with its path") {
  EnterPrivateMountNamespace();
  MemoryFileSystem fs;
  const TemporaryDirectory directory;
  const auto env = NewPosixEnv();
  const std::string missing = directory / "missing";
  const auto binding =
      FuseBinding::Mount(*env, fs,
                         {.mountpoint = missing,
                          .store = "/store",
                          .mount = {},
                          .log = std::make_shared<spdlog::logger>(
                              "test", std::make_shared<spdlog::sinks::null_sink_mt>()),
                          .on_ready = {}});
  REQUIRE_CODE(binding, kIoError);
  CHECK(binding.status().path() == missing);
  INFO(binding.status().ToString());
  CHECK(binding.status().cause().find("No such file or directory") != std::string_view::npos);
}

}  // namespace
}  // namespace siltfs::testing
