// rename(2) and renameat2(2).
#include <dirent.h>
#include <linux/fs.h>
#include <stdio.h>

#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Renames : OnTheFileSystem {
  int Rename(const std::string& from, const std::string& to, unsigned flags = 0) const {
    return Outcome(renameat2(AT_FDCWD, Path(from).c_str(), AT_FDCWD, Path(to).c_str(), flags));
  }
  void MakeDirectory(const std::string& name) const {
    REQUIRE(Outcome(mkdir(Path(name).c_str(), 0755)) == 0);
  }
  bool Exists(const std::string& name) const {
    struct stat stat = {};
    return lstat(Path(name).c_str(), &stat) == 0;
  }
  ino_t Inode(const std::string& name) const { return StatOf(Path(name)).st_ino; }
  // Returns the inode number of ".." in the listing, which comes from the file system. A stat of
  // ".." would not test it, because the kernel answers this call from its own caches.
  ino_t Parent(const std::string& name) const {
    DIR* stream = opendir(Path(name).c_str());
    REQUIRE(stream != nullptr);
    ino_t parent = 0;
    while (const dirent* entry = readdir(stream)) {
      if (std::string(entry->d_name) == "..") parent = entry->d_ino;
    }
    closedir(stream);
    return parent;
  }
};

TEST_CASE_METHOD(Renames, "A rename replaces a file of another directory") {
  MakeDirectory("d");
  REQUIRE(WriteFile(Path("a"), "moved") == 0);
  REQUIRE(WriteFile(Path("d/b"), "replaced") == 0);
  const ino_t inode = Inode("a");
  CHECK(Rename("a", "d/b") == 0);
  CHECK_FALSE(Exists("a"));
  CHECK(Inode("d/b") == inode);
  DropCaches();
  CHECK_FALSE(Exists("a"));
  CHECK(Inode("d/b") == inode);
  CHECK(ReadFile(Path("d/b")) == "moved");
}

TEST_CASE_METHOD(Renames, "A rename removes one name of the replaced file, its other names stay") {
  REQUIRE(WriteFile(Path("a"), "a") == 0);
  REQUIRE(WriteFile(Path("b"), "b") == 0);
  REQUIRE(Outcome(link(Path("b").c_str(), Path("c").c_str())) == 0);
  CHECK(Rename("a", "b") == 0);
  CHECK(ReadFile(Path("c")) == "b");
  CHECK(StatOf(Path("c")).st_nlink == 1);
}

TEST_CASE_METHOD(Renames, "Between two names of one file a rename does nothing") {
  REQUIRE(WriteFile(Path("a"), "a") == 0);
  REQUIRE(Outcome(link(Path("a").c_str(), Path("b").c_str())) == 0);
  CHECK(Rename("a", "b") == 0);
  CHECK(Exists("a"));
  CHECK(Exists("b"));
  CHECK(Rename("a", "a") == 0);
  CHECK(StatOf(Path("a")).st_nlink == 2);
}

TEST_CASE_METHOD(Renames, "Directories replace empty directories only") {
  MakeDirectory("a");
  REQUIRE(WriteFile(Path("a/file"), "inside") == 0);
  MakeDirectory("empty");
  MakeDirectory("full");
  MakeDirectory("full/sub");
  REQUIRE(WriteFile(Path("file"), "") == 0);
  CHECK(Rename("a", "full") == ENOTEMPTY);
  CHECK(Rename("a", "file") == ENOTDIR);
  CHECK(Rename("file", "empty") == EISDIR);
  CHECK(Rename("a", "missing/a") == ENOENT);
  CHECK(Rename("missing", "a") == ENOENT);
  CHECK(Rename("a", "file/a") == ENOTDIR);
  CHECK(Rename("a", "empty") == 0);
  CHECK(ReadFile(Path("empty/file")) == "inside");
  CHECK_FALSE(Exists("a"));
}

TEST_CASE_METHOD(Renames, "A directory cannot be moved into itself at any depth") {
  MakeDirectory("a");
  MakeDirectory("a/b");
  MakeDirectory("a/b/c");
  CHECK(Rename("a", "a/new") == EINVAL);
  CHECK(Rename("a", "a/b/c/new") == EINVAL);
  CHECK(Rename("a", "a/b/c") == EINVAL);
  CHECK(Rename("a/b/c", "a") == ENOTEMPTY);
  CHECK(Rename("a", "a/b/c", RENAME_EXCHANGE) == EINVAL);
  CHECK(Rename("a/b/c", "a", RENAME_EXCHANGE) == EINVAL);
  CHECK(Rename("a/b/c", "c") == 0);
  CHECK(StatOf(Path("a/b")).st_nlink == 2);
}

TEST_CASE_METHOD(Renames, "A moved directory's parent is the new one") {
  MakeDirectory("a");
  MakeDirectory("a/b");
  MakeDirectory("c");
  REQUIRE(Rename("a/b", "c/b") == 0);
  CHECK(Parent("c/b") == Inode("c"));
  DropCaches();
  CHECK(Parent("c/b") == Inode("c"));
  CHECK(StatOf(Path("a")).st_nlink == 2);
  CHECK(StatOf(Path("c")).st_nlink == 3);
}

TEST_CASE_METHOD(Renames, "NOREPLACE refuses every kind of target") {
  REQUIRE(WriteFile(Path("a"), "a") == 0);
  REQUIRE(WriteFile(Path("file"), "") == 0);
  MakeDirectory("directory");
  REQUIRE(Outcome(symlink("nowhere", Path("link").c_str())) == 0);
  for (const char* target : {"file", "directory", "link", "a"}) {
    CHECK(Rename("a", target, RENAME_NOREPLACE) == EEXIST);
  }
  CHECK(Rename("a", "new", RENAME_NOREPLACE) == 0);
  CHECK(ReadFile(Path("new")) == "a");
}

TEST_CASE_METHOD(Renames, "EXCHANGE swaps two files") {
  MakeDirectory("d");
  REQUIRE(WriteFile(Path("a"), "a") == 0);
  REQUIRE(WriteFile(Path("d/b"), "b") == 0);
  CHECK(Rename("a", "d/b", RENAME_EXCHANGE) == 0);
  DropCaches();
  CHECK(ReadFile(Path("a")) == "b");
  CHECK(ReadFile(Path("d/b")) == "a");
  CHECK(Rename("a", "missing", RENAME_EXCHANGE) == ENOENT);
  CHECK(Rename("a", "d/b", RENAME_EXCHANGE | RENAME_NOREPLACE) == EINVAL);
}

TEST_CASE_METHOD(Renames, "EXCHANGE swaps full directories across parents") {
  MakeDirectory("p");
  MakeDirectory("p/one");
  MakeDirectory("p/one/sub");
  MakeDirectory("q");
  MakeDirectory("q/two");
  REQUIRE(WriteFile(Path("p/one/file"), "one") == 0);
  REQUIRE(WriteFile(Path("q/two/file"), "two") == 0);
  CHECK(Rename("p/one", "q/two", RENAME_EXCHANGE) == 0);
  DropCaches();
  CHECK(ReadFile(Path("p/one/file")) == "two");
  CHECK(ReadFile(Path("q/two/file")) == "one");
  CHECK(Exists("q/two/sub"));
  CHECK(Parent("p/one") == Inode("p"));
  CHECK(Parent("q/two") == Inode("q"));
  CHECK(StatOf(Path("p")).st_nlink == 3);
  CHECK(StatOf(Path("q")).st_nlink == 3);
}

TEST_CASE_METHOD(Renames, "EXCHANGE swaps a file and a directory, link counts follow") {
  MakeDirectory("p");
  MakeDirectory("p/d");
  REQUIRE(WriteFile(Path("f"), "file") == 0);
  CHECK(Rename("f", "p/d", RENAME_EXCHANGE) == 0);
  CHECK(StatOf(Path("p")).st_nlink == 2);
  CHECK(S_ISDIR(StatOf(Path("f")).st_mode));
  CHECK(ReadFile(Path("p/d")) == "file");
}

TEST_CASE_METHOD(Renames, "The special names cannot be renamed") {
  MakeDirectory("d");
  MakeDirectory("e");
  CHECK(Rename("d/.", "new") == EBUSY);
  CHECK(Rename("d/..", "new") == EBUSY);
  CHECK(Rename("d", "e/.") == EBUSY);
  REQUIRE(WriteFile(Path("file"), "") == 0);
  CHECK(Rename("file/", "new") == ENOTDIR);
  CHECK(Rename("file", "new/") == ENOTDIR);
  CHECK(Rename("d/", "new/") == 0);
}

TEST_CASE_METHOD(Renames, "Two processes with conflicting renames leave a sound tree") {
  MakeDirectory("a");
  MakeDirectory("b");
  MakeDirectory("a/x");
  MakeDirectory("b/y");
  const auto work = [this](const char* from, const char* to, const char* back) {
    return [this, from, to, back] {
      for (int i = 0; i < 300; ++i) {
        for (const int outcome : {Rename(from, to), Rename(to, from), Rename(from, back)}) {
          if (outcome != 0 && outcome != EINVAL && outcome != ENOENT && outcome != ENOTEMPTY)
            return outcome;
        }
        Rename(back, from);
      }
      return 0;
    };
  };
  ChildProcess one(work("a", "b/y/a", "b/a"));
  ChildProcess other(work("b", "a/x/b", "a/b"));
  CHECK(one.Wait() == 0);
  CHECK(other.Wait() == 0);
  DropCaches();
  CHECK((Exists("a") || Exists("b")));
  CHECK(((Exists("a/x")) || Exists("b/a/x") || Exists("b/y/a/x")));
  CHECK(((Exists("b/y")) || Exists("a/b/y") || Exists("a/x/b/y")));
}

}  // namespace
}  // namespace siltfs::testing
