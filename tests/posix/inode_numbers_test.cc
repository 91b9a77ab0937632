// An inode number identifies one file permanently.
#include <set>

#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

TEST_CASE_METHOD(OnTheFileSystem, "A number is never given to a second file", "[siltfs]") {
  std::set<ino_t> numbers;
  for (int i = 0; i < 300; ++i) {
    REQUIRE(WriteFile(Path("file"), "x") == 0);
    CHECK(numbers.insert(StatOf(Path("file")).st_ino).second);
    REQUIRE(Outcome(unlink(Path("file").c_str())) == 0);
    REQUIRE(Outcome(mkdir(Path("directory").c_str(), 0755)) == 0);
    CHECK(numbers.insert(StatOf(Path("directory")).st_ino).second);
    REQUIRE(Outcome(rmdir(Path("directory").c_str())) == 0);
    if (i % 100 == 0) DropCaches();
  }
}

TEST_CASE_METHOD(OnTheFileSystem, "A file keeps its number until it is removed") {
  REQUIRE(WriteFile(Path("file"), "x") == 0);
  const ino_t number = StatOf(Path("file")).st_ino;
  REQUIRE(WriteFile(Path("file"), "another content") == 0);
  CHECK(StatOf(Path("file")).st_ino == number);
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  REQUIRE(Outcome(rename(Path("file").c_str(), Path("d/moved").c_str())) == 0);
  CHECK(StatOf(Path("d/moved")).st_ino == number);
  REQUIRE(Outcome(link(Path("d/moved").c_str(), Path("again").c_str())) == 0);
  REQUIRE(Outcome(unlink(Path("d/moved").c_str())) == 0);
  DropCaches();
  CHECK(StatOf(Path("again")).st_ino == number);
}

TEST_CASE_METHOD(OnTheFileSystem, "All files are on one device and have different numbers") {
  REQUIRE(WriteFile(Path("a"), "") == 0);
  REQUIRE(WriteFile(Path("b"), "") == 0);
  CHECK(StatOf(Path("a")).st_ino != StatOf(Path("b")).st_ino);
  CHECK(StatOf(Path("a")).st_dev == StatOf(directory.path()).st_dev);
  CHECK(StatOf(Path("a")).st_dev == StatOf(FileSystemRoot()).st_dev);
}

}  // namespace
}  // namespace siltfs::testing
