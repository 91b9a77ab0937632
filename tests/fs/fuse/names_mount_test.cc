// Names through the kernel: make, link, rename, remove.
#include <linux/fs.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

struct NamesFixture {
  MemoryFileSystem fs;
  MountedFileSystem mount{fs};

  std::string Path(const std::string& name) const { return mount / name; }
  int Rename(const std::string& from, const std::string& to, unsigned flags = 0) const {
    return Outcome(renameat2(AT_FDCWD, Path(from).c_str(), AT_FDCWD, Path(to).c_str(), flags));
  }
};

TEST_CASE_METHOD(NamesFixture, "The mount is listed with its store, its mountpoint and its type") {
  const std::string line = mount.MountLine();
  INFO(line);
  CHECK(line.starts_with("/somewhere/a\\040store,\\040with\\040comma " + mount.path() +
                         " fuse.siltfs "));
  CHECK(line.find("default_permissions") != std::string::npos);
}

TEST_CASE_METHOD(NamesFixture, "A new file exists, with its owner and mode") {
  REQUIRE(WriteFile(Path("a"), "hello") == 0);
  const struct stat stat = StatOf(Path("a"));
  CHECK(stat.st_mode == (S_IFREG | 0644));
  CHECK(stat.st_size == 5);
  CHECK(stat.st_uid == getuid());
  CHECK(stat.st_nlink == 1);
  CHECK(ReadFile(Path("a")) == "hello");
}

TEST_CASE_METHOD(NamesFixture, "A missing name can be made after a failed lookup") {
  CHECK(Outcome(access(Path("late").c_str(), F_OK)) == ENOENT);
  CHECK(Outcome(access(Path("late").c_str(), F_OK)) == ENOENT);
  REQUIRE(WriteFile(Path("late"), "") == 0);
  CHECK(Outcome(access(Path("late").c_str(), F_OK)) == 0);
}

TEST_CASE_METHOD(NamesFixture, "Directories count their links and must be empty to be removed") {
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0750)) == 0);
  REQUIRE(Outcome(mkdir(Path("d/e").c_str(), 0755)) == 0);
  CHECK(StatOf(Path("d")).st_nlink == 3);
  CHECK(StatOf(Path("d")).st_mode == (S_IFDIR | 0750));
  CHECK(Outcome(rmdir(Path("d").c_str())) == ENOTEMPTY);
  CHECK(Outcome(rmdir(Path("d/e").c_str())) == 0);
  CHECK(StatOf(Path("d")).st_nlink == 2);
  CHECK(Outcome(rmdir(Path("d").c_str())) == 0);
  CHECK(Outcome(access(Path("d").c_str(), F_OK)) == ENOENT);
}

TEST_CASE_METHOD(NamesFixture, "Making what exists fails") {
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  CHECK(Outcome(mkdir(Path("d").c_str(), 0755)) == EEXIST);
  CHECK(Descriptor(Path("d"), O_CREAT | O_EXCL | O_WRONLY).error() == EEXIST);
  CHECK(Descriptor(Path("d"), O_WRONLY).error() == EISDIR);
}

TEST_CASE_METHOD(NamesFixture, "A name may be 255 bytes long, and no longer") {
  const std::string longest(kMaxNameBytes, 'n');
  CHECK(WriteFile(Path(longest), "x") == 0);
  CHECK(ReadFile(Path(longest)) == "x");
  CHECK(WriteFile(Path(longest + "n"), "x") == ENAMETOOLONG);
}

TEST_CASE_METHOD(NamesFixture, "Nodes of all kinds keep their type") {
  REQUIRE(Outcome(mkfifo(Path("fifo").c_str(), 0600)) == 0);
  REQUIRE(Outcome(mknod(Path("char").c_str(), S_IFCHR | 0600, makedev(1, 3))) == 0);
  REQUIRE(Outcome(mknod(Path("block").c_str(), S_IFBLK | 0600, makedev(259, 70000))) == 0);
  REQUIRE(Outcome(mknod(Path("socket").c_str(), S_IFSOCK | 0600, 0)) == 0);
  REQUIRE(Outcome(mknod(Path("file").c_str(), S_IFREG | 0600, 0)) == 0);
  CHECK(StatOf(Path("fifo")).st_mode == (S_IFIFO | 0600));
  CHECK(StatOf(Path("char")).st_rdev == makedev(1, 3));
  CHECK(StatOf(Path("block")).st_rdev == makedev(259, 70000));
  CHECK(S_ISSOCK(StatOf(Path("socket")).st_mode));
  CHECK(StatOf(Path("file")).st_mode == (S_IFREG | 0600));
}

TEST_CASE_METHOD(NamesFixture, "A symbolic link leads to its target") {
  REQUIRE(WriteFile(Path("target"), "found") == 0);
  REQUIRE(Outcome(symlink("target", Path("link").c_str())) == 0);
  CHECK(ReadFile(Path("link")).substr(0, 6) == "found");
  char buffer[32];
  REQUIRE(readlink(Path("link").c_str(), buffer, sizeof buffer) == 6);
  CHECK(std::string(buffer, 6) == "target");
  CHECK(StatOf(Path("link")).st_size == 6);
  const std::string far(4000, 'f');
  REQUIRE(Outcome(symlink(far.c_str(), Path("far").c_str())) == 0);
  std::string back(5000, ' ');
  REQUIRE(readlink(Path("far").c_str(), back.data(), back.size()) == 4000);
  CHECK(back.substr(0, 4000) == far);
}

TEST_CASE_METHOD(NamesFixture, "Hard links are one file") {
  REQUIRE(WriteFile(Path("a"), "one") == 0);
  REQUIRE(Outcome(link(Path("a").c_str(), Path("b").c_str())) == 0);
  CHECK(StatOf(Path("a")).st_nlink == 2);
  CHECK(StatOf(Path("a")).st_ino == StatOf(Path("b")).st_ino);
  REQUIRE(WriteFile(Path("b"), "two") == 0);
  CHECK(ReadFile(Path("a")) == "two");
  REQUIRE(Outcome(unlink(Path("a").c_str())) == 0);
  CHECK(StatOf(Path("b")).st_nlink == 1);
  CHECK(ReadFile(Path("b")) == "two");
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  CHECK(Outcome(link(Path("d").c_str(), Path("e").c_str())) == EPERM);
}

TEST_CASE_METHOD(NamesFixture, "Rename replaces a file, and an empty directory by a directory") {
  REQUIRE(WriteFile(Path("a"), "a") == 0);
  REQUIRE(WriteFile(Path("b"), "b") == 0);
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  REQUIRE(Outcome(mkdir(Path("e").c_str(), 0755)) == 0);
  CHECK(Rename("a", "b") == 0);
  CHECK(ReadFile(Path("b")) == "a");
  CHECK(Outcome(access(Path("a").c_str(), F_OK)) == ENOENT);
  CHECK(Rename("b", "d") == EISDIR);
  CHECK(Rename("d", "b") == ENOTDIR);
  CHECK(Rename("d", "e") == 0);
  REQUIRE(WriteFile(Path("e/x"), "x") == 0);
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  CHECK(Rename("d", "e") == ENOTEMPTY);
  CHECK(Rename("e", "e/inside") == EINVAL);
  CHECK(Rename("e", "d/moved") == 0);
  CHECK(ReadFile(Path("d/moved/x")) == "x");
}

TEST_CASE_METHOD(NamesFixture, "Rename can refuse to replace") {
  REQUIRE(WriteFile(Path("a"), "a") == 0);
  REQUIRE(WriteFile(Path("b"), "b") == 0);
  CHECK(Rename("a", "b", RENAME_NOREPLACE) == EEXIST);
  CHECK(ReadFile(Path("b")) == "b");
  CHECK(Rename("a", "c", RENAME_NOREPLACE) == 0);
  CHECK(ReadFile(Path("c")) == "a");
}

TEST_CASE_METHOD(NamesFixture, "Rename can exchange a file and a directory") {
  REQUIRE(WriteFile(Path("a"), "file") == 0);
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  REQUIRE(Outcome(mkdir(Path("d/sub").c_str(), 0755)) == 0);
  CHECK(Rename("a", "d/sub", RENAME_EXCHANGE) == 0);
  CHECK(S_ISDIR(StatOf(Path("a")).st_mode));
  CHECK(ReadFile(Path("d/sub")) == "file");
  CHECK(StatOf(Path("d")).st_nlink == 2);
  CHECK(Rename("a", "missing", RENAME_EXCHANGE) == ENOENT);
}

TEST_CASE_METHOD(NamesFixture, "Whiteouts are not supported") {
  REQUIRE(WriteFile(Path("a"), "a") == 0);
  CHECK(Rename("a", "b", RENAME_WHITEOUT) == EINVAL);
  CHECK(ReadFile(Path("a")) == "a");
}

}  // namespace
}  // namespace siltfs::testing
