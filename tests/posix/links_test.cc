// Files with several names, and files without a name.
#include <sys/mman.h>

#include "store/base/random.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

Bytes SomeBytes(uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  return bytes;
}

struct Links : OnTheFileSystem {
  int Link(const std::string& from, const std::string& to) const {
    return Outcome(link(Path(from).c_str(), Path(to).c_str()));
  }
  int Unlink(const std::string& name) const { return Outcome(unlink(Path(name).c_str())); }
  int MakeDirectory(const std::string& name) const {
    return Outcome(mkdir(Path(name).c_str(), 0755));
  }
};

TEST_CASE_METHOD(Links, "All names of a file show the same file, across directories") {
  REQUIRE(WriteFile(Path("a"), "one") == 0);
  REQUIRE(MakeDirectory("d") == 0);
  REQUIRE(Link("a", "d/b") == 0);
  REQUIRE(Link("d/b", "c") == 0);
  REQUIRE(WriteFile(Path("d/b"), "another") == 0);
  REQUIRE(Outcome(chmod(Path("c").c_str(), 0600)) == 0);
  DropCaches();
  for (const char* name : {"a", "d/b", "c"}) {
    CHECK(ReadFile(Path(name)) == "another");
    CHECK(StatOf(Path(name)).st_nlink == 3);
    CHECK(StatOf(Path(name)).st_mode == (S_IFREG | 0600));
    CHECK(StatOf(Path(name)).st_ino == StatOf(Path("a")).st_ino);
  }
  REQUIRE(Unlink("a") == 0);
  REQUIRE(Unlink("d/b") == 0);
  CHECK(StatOf(Path("c")).st_nlink == 1);
  CHECK(ReadFile(Path("c")) == "another");
}

TEST_CASE_METHOD(Links, "Fifos and symbolic links can have several names, directories cannot") {
  REQUIRE(Outcome(mkfifo(Path("fifo").c_str(), 0600)) == 0);
  REQUIRE(Outcome(symlink("nowhere", Path("link").c_str())) == 0);
  REQUIRE(MakeDirectory("d") == 0);
  CHECK(Link("fifo", "fifo2") == 0);
  CHECK(StatOf(Path("fifo")).st_nlink == 2);
  CHECK(Link("link", "link2") == 0);
  CHECK(S_ISLNK(StatOf(Path("link2")).st_mode));
  CHECK(StatOf(Path("link2")).st_nlink == 2);
  CHECK(Link("d", "d2") == EPERM);
}

TEST_CASE_METHOD(Links, "A file that is unlinked while it is open can be read and written") {
  const Bytes data = SomeBytes(1, 500'000);
  Descriptor file(Path("a"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(file.get(), 0, data) == 0);
  REQUIRE(Unlink("a") == 0);
  CHECK(Outcome(access(Path("a").c_str(), F_OK)) == ENOENT);
  struct stat stat = {};
  REQUIRE(Outcome(fstat(file.get(), &stat)) == 0);
  CHECK(stat.st_nlink == 0);
  CHECK(stat.st_size == 500'000);
  DropCaches();
  CHECK(ReadAt(file.get(), 0, data.size() + 1) == data);
  REQUIRE(WriteAt(file.get(), 600'000, AsBytes("later")) == 0);
  REQUIRE(Outcome(ftruncate(file.get(), 700'000)) == 0);
  REQUIRE(Outcome(fchmod(file.get(), 0600)) == 0);
  REQUIRE(Outcome(fsync(file.get())) == 0);
  DropCaches();
  Bytes expected = data;
  expected.resize(700'000);
  std::copy_n(AsBytes("later").begin(), 5, expected.begin() + 600'000);
  CHECK(ReadAt(file.get(), 0, expected.size() + 1) == expected);
  CHECK(file.Close() == 0);
}

TEST_CASE_METHOD(Links, "A name made again is another file than the unlinked one") {
  REQUIRE(WriteFile(Path("a"), "old") == 0);
  const Descriptor old(Path("a"), O_RDWR);
  REQUIRE(Unlink("a") == 0);
  REQUIRE(WriteFile(Path("a"), "new") == 0);
  REQUIRE(WriteAt(old.get(), 0, AsBytes("OLD")) == 0);
  const Bytes read = ReadAt(old.get(), 0, 4);
  CHECK(AsText(read) == "OLD");
  DropCaches();
  CHECK(ReadFile(Path("a")) == "new");
}

TEST_CASE_METHOD(Links, "An unlinked file stays readable through a mapping") {
  const Bytes data = SomeBytes(2, 8192);
  Descriptor file(Path("a"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(file.get(), 0, data) == 0);
  void* map = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  REQUIRE(map != MAP_FAILED);
  REQUIRE(Unlink("a") == 0);
  REQUIRE(file.Close() == 0);
  DropCaches();
  auto* bytes = static_cast<uint8_t*>(map);
  CHECK(std::equal(data.begin(), data.end(), bytes));
  bytes[100] = 1;
  CHECK(Outcome(msync(map, 8192, MS_SYNC)) == 0);
  munmap(map, 8192);
}

TEST_CASE_METHOD(Links, "An open file can be renamed and moved, and can still be written to") {
  REQUIRE(MakeDirectory("d") == 0);
  Descriptor file(Path("a"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(file.get(), 0, AsBytes("before ")) == 0);
  REQUIRE(Outcome(rename(Path("a").c_str(), Path("d/b").c_str())) == 0);
  REQUIRE(WriteAt(file.get(), 7, AsBytes("after")) == 0);
  CHECK(ReadFile(Path("d/b")) == "before after");
  REQUIRE(file.Close() == 0);
  DropCaches();
  CHECK(ReadFile(Path("d/b")) == "before after");
}

TEST_CASE_METHOD(Links, "A file replaced by a rename stays usable through an open descriptor") {
  REQUIRE(WriteFile(Path("old"), "the old one") == 0);
  REQUIRE(WriteFile(Path("new"), "the new one") == 0);
  const Descriptor old(Path("old"), O_RDWR);
  REQUIRE(Outcome(rename(Path("new").c_str(), Path("old").c_str())) == 0);
  CHECK(ReadFile(Path("old")) == "the new one");
  REQUIRE(WriteAt(old.get(), 4, AsBytes("OLD")) == 0);
  DropCaches();
  const Bytes read = ReadAt(old.get(), 0, 100);
  CHECK(AsText(read) == "the OLD one");
  CHECK(ReadFile(Path("old")) == "the new one");
}

TEST_CASE_METHOD(Links, "A removed directory stays empty for a process that works in it") {
  REQUIRE(MakeDirectory("d") == 0);
  CHECK(InChild([&] {
          if (chdir(Path("d").c_str()) != 0) return 1;
          if (rmdir(Path("d").c_str()) != 0) return 2;
          if (open("file", O_CREAT | O_WRONLY, 0600) >= 0 || errno != ENOENT) return 3;
          if (mkdir("below", 0700) == 0 || errno != ENOENT) return 4;
          struct stat stat = {};
          if (::stat(".", &stat) != 0 || stat.st_nlink != 0) return 5;
          return 0;
        }) == 0);
}

TEST_CASE_METHOD(Links, "Link counts of directories follow their subdirectories") {
  REQUIRE(MakeDirectory("d") == 0);
  CHECK(StatOf(Path("d")).st_nlink == 2);
  REQUIRE(MakeDirectory("d/e") == 0);
  REQUIRE(MakeDirectory("d/f") == 0);
  REQUIRE(WriteFile(Path("d/g"), "") == 0);
  CHECK(StatOf(Path("d")).st_nlink == 4);
  REQUIRE(Outcome(rename(Path("d/e").c_str(), Path("d/f/e").c_str())) == 0);
  CHECK(StatOf(Path("d")).st_nlink == 3);
  CHECK(StatOf(Path("d/f")).st_nlink == 3);
  DropCaches();
  CHECK(StatOf(Path("d")).st_nlink == 3);
  CHECK(StatOf(Path("d/f")).st_nlink == 3);
}

}  // namespace
}  // namespace siltfs::testing
