// O_TMPFILE: files that begin without a name.
#include <fmt/format.h>

#include <filesystem>

#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

struct TemporaryFilesFixture {
  MemoryFileSystem fs;
  MountedFileSystem mount{fs};

  // Links the file as described in open(2).
  int GiveName(const Descriptor& file, const std::string& name) const {
    const std::string link = fmt::format("/proc/self/fd/{}", file.get());
    return Outcome(
        linkat(AT_FDCWD, link.c_str(), AT_FDCWD, (mount / name).c_str(), AT_SYMLINK_FOLLOW));
  }
  // Waits until there are `count` inodes. Returns false if there is still another number of inodes
  // after many attempts. The kernel sends FORGET at some later time. Each attempt makes requests,
  // so that time passes.
  bool InodesComeTo(size_t count) const {
    for (int turn = 0; turn < 5000 && fs.InodeCount() != count; ++turn) {
      mount.DropCaches();
      static_cast<void>(StatOf(mount.path()));
    }
    return fs.InodeCount() == count;
  }
};

struct stat StatOf(const Descriptor& file) {
  struct stat stat = {};
  REQUIRE(fstat(file.get(), &stat) == 0);
  return stat;
}

}  // namespace

TEST_CASE_METHOD(TemporaryFilesFixture,
                 "A temporary file can be used, has no name, and is deleted when closed") {
  const struct stat before = testing::StatOf(mount.path());
  Descriptor file(mount.path(), O_TMPFILE | O_RDWR, 0640);
  REQUIRE(file.error() == 0);
  CHECK(StatOf(file).st_nlink == 0);
  CHECK(StatOf(file).st_mode == (S_IFREG | 0640));
  REQUIRE(WriteAt(file.get(), 0, AsBytes("nameless")) == 0);
  REQUIRE(Outcome(fsync(file.get())) == 0);
  mount.DropCaches();
  const Bytes bytes = ReadAt(file.get(), 0, 100);
  CHECK(AsText(bytes) == "nameless");
  CHECK(std::filesystem::is_empty(mount.path()));
  const struct stat after = testing::StatOf(mount.path());
  CHECK(after.st_mtim.tv_sec == before.st_mtim.tv_sec);
  CHECK(after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
  CHECK(fs.InodeCount() == 2);
  CHECK(fs.TotalOpens() == 1);
  REQUIRE(file.Close() == 0);
  CHECK(InodesComeTo(1));
}

TEST_CASE_METHOD(TemporaryFilesFixture, "A linked temporary file becomes a regular file") {
  Descriptor file(mount.path(), O_TMPFILE | O_RDWR, 0600);
  REQUIRE(WriteAt(file.get(), 0, AsBytes("complete")) == 0);
  REQUIRE(GiveName(file, "name") == 0);
  CHECK(StatOf(file).st_nlink == 1);
  CHECK(testing::StatOf(mount / "name").st_ino == StatOf(file).st_ino);
  REQUIRE(GiveName(file, "another") == 0);
  CHECK(StatOf(file).st_nlink == 2);
  REQUIRE(file.Close() == 0);
  mount.DropCaches();
  CHECK(ReadFile(mount / "name") == "complete");
  REQUIRE(Outcome(unlink((mount / "name").c_str())) == 0);
  CHECK(ReadFile(mount / "another") == "complete");
  REQUIRE(Outcome(unlink((mount / "another").c_str())) == 0);
  CHECK(InodesComeTo(1));
}

TEST_CASE_METHOD(TemporaryFilesFixture, "A temporary file cannot be linked to an existing name") {
  REQUIRE(WriteFile(mount / "taken", "old") == 0);
  const Descriptor file(mount.path(), O_TMPFILE | O_RDWR, 0600);
  CHECK(GiveName(file, "taken") == EEXIST);
  CHECK(StatOf(file).st_nlink == 0);
  CHECK(GiveName(file, "free") == 0);
}

TEST_CASE_METHOD(TemporaryFilesFixture,
                 "With O_EXCL, or after its last unlink, a file cannot be linked") {
  const Descriptor exclusive(mount.path(), O_TMPFILE | O_EXCL | O_RDWR, 0600);
  REQUIRE(exclusive.error() == 0);
  CHECK(GiveName(exclusive, "a") == ENOENT);
  const Descriptor removed(mount / "b", O_CREAT | O_RDWR);
  REQUIRE(Outcome(unlink((mount / "b").c_str())) == 0);
  CHECK(GiveName(removed, "c") == ENOENT);
  const Descriptor named(mount.path(), O_TMPFILE | O_RDWR, 0600);
  REQUIRE(GiveName(named, "d") == 0);
  REQUIRE(Outcome(unlink((mount / "d").c_str())) == 0);
  CHECK(GiveName(named, "e") == ENOENT);
  CHECK(std::filesystem::is_empty(mount.path()));
}

TEST_CASE_METHOD(TemporaryFilesFixture,
                 "A temporary file gets the group of a set-group-id directory") {
  const std::string directory = mount / "shared";
  REQUIRE(Outcome(mkdir(directory.c_str(), 0775)) == 0);
  REQUIRE(Outcome(chown(directory.c_str(), 1, 77)) == 0);
  REQUIRE(Outcome(chmod(directory.c_str(), 02775)) == 0);
  const Descriptor file(directory, O_TMPFILE | O_WRONLY, 0600);
  REQUIRE(file.error() == 0);
  CHECK(StatOf(file).st_gid == 77);
}

}  // namespace siltfs::testing
