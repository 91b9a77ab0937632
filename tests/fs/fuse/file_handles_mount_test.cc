// File handles (open_by_handle_at, NFS) are valid as long as the inode exists, even if the kernel
// has dropped it.
#include <memory>

#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

// A file_handle followed by room for its bytes.
struct Handle {
  alignas(file_handle) unsigned char bytes[sizeof(file_handle) + MAX_HANDLE_SZ];
  file_handle* get() { return reinterpret_cast<file_handle*>(bytes); }
};

struct FileHandlesFixture {
  MemoryFileSystem fs;
  MountedFileSystem mount{fs};
  const Descriptor root{mount.path(), O_RDONLY | O_DIRECTORY};

  std::unique_ptr<Handle> HandleOf(const std::string& name) const {
    auto handle = std::make_unique<Handle>();
    handle->get()->handle_bytes = MAX_HANDLE_SZ;
    int mount_id = 0;
    REQUIRE(Outcome(name_to_handle_at(root.get(), name.c_str(), handle->get(), &mount_id, 0)) == 0);
    return handle;
  }
  // Opens the file; returns a descriptor, or -1 with errno.
  int Open(Handle& handle, int flags = O_RDONLY) const {
    return open_by_handle_at(root.get(), handle.get(), flags);
  }
  // Returns when the kernel has dropped everything except the root, and has sent the FORGETs.
  void ForgetAll() const {
    for (int turn = 0; turn < 5000 && fs.TotalLookups() > 0; ++turn) {
      mount.DropCaches();
      static_cast<void>(StatOf(mount.path()));
    }
    REQUIRE(fs.TotalLookups() == 0);
  }
};

}  // namespace

TEST_CASE_METHOD(FileHandlesFixture, "A handle opens its file after the kernel has forgotten it") {
  REQUIRE(Outcome(mkdir((mount / "d").c_str(), 0755)) == 0);
  REQUIRE(Outcome(mkdir((mount / "d/e").c_str(), 0755)) == 0);
  REQUIRE(WriteFile(mount / "d/e/file", "content") == 0);
  const auto file = HandleOf("d/e/file");
  const auto directory = HandleOf("d/e");
  ForgetAll();
  SECTION("a file") {
    const int fd = Open(*file);
    REQUIRE(fd >= 0);
    const Bytes bytes = ReadAt(fd, 0, 100);
    CHECK(AsText(bytes) == "content");
    close(fd);
  }
  SECTION("a directory, which is reconnected to the root through its parents") {
    const int fd = Open(*directory, O_RDONLY | O_DIRECTORY);
    REQUIRE(fd >= 0);
    struct stat stat = {};
    REQUIRE(fstatat(fd, "../e/file", &stat, 0) == 0);
    CHECK(stat.st_size == 7);
    close(fd);
  }
  ForgetAll();
}

TEST_CASE_METHOD(FileHandlesFixture, "A handle follows its file to another name") {
  REQUIRE(WriteFile(mount / "a", "content") == 0);
  const auto handle = HandleOf("a");
  REQUIRE(Outcome(rename((mount / "a").c_str(), (mount / "b").c_str())) == 0);
  REQUIRE(WriteFile(mount / "a", "another") == 0);
  ForgetAll();
  const int fd = Open(*handle);
  REQUIRE(fd >= 0);
  const Bytes bytes = ReadAt(fd, 0, 100);
  CHECK(AsText(bytes) == "content");
  close(fd);
}

TEST_CASE_METHOD(FileHandlesFixture,
                 "The handle of a removed file is stale, also after other files were made") {
  REQUIRE(WriteFile(mount / "a", "content") == 0);
  REQUIRE(Outcome(mkdir((mount / "d").c_str(), 0755)) == 0);
  const auto file = HandleOf("a");
  const auto directory = HandleOf("d");
  REQUIRE(Outcome(unlink((mount / "a").c_str())) == 0);
  REQUIRE(Outcome(rmdir((mount / "d").c_str())) == 0);
  ForgetAll();
  REQUIRE(WriteFile(mount / "a", "another") == 0);
  REQUIRE(Outcome(mkdir((mount / "d").c_str(), 0755)) == 0);
  CHECK(Outcome(Open(*file)) == ESTALE);
  CHECK(Outcome(Open(*directory, O_RDONLY | O_DIRECTORY)) == ESTALE);
}

TEST_CASE_METHOD(FileHandlesFixture, "An open file without a name can be opened by its handle") {
  const Descriptor open_file(mount / "a", O_RDWR | O_CREAT);
  REQUIRE(WriteAt(open_file.get(), 0, AsBytes("content")) == 0);
  const auto handle = HandleOf("a");
  REQUIRE(Outcome(unlink((mount / "a").c_str())) == 0);
  mount.DropCaches();
  const int fd = Open(*handle);
  REQUIRE(fd >= 0);
  const Bytes bytes = ReadAt(fd, 0, 100);
  CHECK(AsText(bytes) == "content");
  close(fd);
}

}  // namespace siltfs::testing
