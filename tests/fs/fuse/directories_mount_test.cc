// Listings through the kernel, plain and with attributes.
#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

constexpr int kMany = 10'000;
constexpr Caller kCaller;

class Directory {
 public:
  explicit Directory(const std::string& path) : stream_(opendir(path.c_str())) {
    if (stream_ == nullptr) throw std::runtime_error("opendir " + path);
  }
  ~Directory() { closedir(stream_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  DIR* get() const { return stream_; }

 private:
  DIR* stream_;
};

std::vector<std::string> Names(const std::string& path) {
  const Directory directory(path);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory.get())) names.emplace_back(entry->d_name);
  return names;
}

struct DirectoriesFixture {
  MemoryFileSystem fs;

  // Makes files directly in the file system before the mount, so nothing is cached.
  void Fill(int count) {
    for (int i = 0; i < count; ++i) {
      const auto made =
          fs.MakeNode(kRootInode, fmt::format("file-{:05}", i), S_IFREG | 0644, 0, kCaller);
      REQUIRE_OK(made);
      fs.Forget(made->inode, 1);
    }
  }
};

TEST_CASE_METHOD(DirectoriesFixture,
                 "A directory lists each of 10,000 entries once, in the order of creation") {
  Fill(kMany);
  MountedFileSystem mount(fs);
  const std::vector<std::string> names = Names(mount.path());
  REQUIRE(names.size() == kMany + 2);
  CHECK(names[0] == ".");
  CHECK(names[1] == "..");
  CHECK(names[2] == "file-00000");
  CHECK(std::is_sorted(names.begin() + 2, names.end()));
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  CHECK(Names(mount.path()) == names);  // from the kernel's cache
}

TEST_CASE_METHOD(
    DirectoriesFixture,
    "A listing with attributes has all of them, and counts lookups exactly as the kernel does") {
  Fill(kMany);
  {
    MountedFileSystem mount(fs);
    int regular = 0;
    {
      const Directory directory(mount.path());
      while (const dirent* entry = readdir(directory.get())) {
        struct stat stat = {};
        REQUIRE(fstatat(dirfd(directory.get()), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) == 0);
        if (S_ISREG(stat.st_mode)) {
          ++regular;
          CHECK(stat.st_ino == entry->d_ino);
        }
      }
    }
    CHECK(regular == kMany);
    CHECK(fs.TotalLookups() >= kMany);
    // The counts drop to zero only if the kernel forgets exactly the lookups that it got.
    for (int round = 0; round < 100 && fs.TotalLookups() > 0; ++round) {
      mount.DropCaches();
      static_cast<void>(StatOf(mount.path()));
    }
    CHECK(fs.TotalLookups() == 0);
    CHECK(fs.InodeCount() == kMany + 1);
  }
}

TEST_CASE_METHOD(DirectoriesFixture, "Long and short names share replies, and none is left out") {
  // A short name may still fit a reply when the long name before it does not.
  std::set<std::string> made = {".", ".."};
  for (int i = 0; i < 2000; ++i) {
    const std::string name = i % 2 == 0 ? fmt::format("{:0255}", i) : fmt::format("{}", i);
    const auto node = fs.MakeNode(kRootInode, name, S_IFREG | 0644, 0, kCaller);
    REQUIRE_OK(node);
    fs.Forget(node->inode, 1);
    made.insert(name);
  }
  MountedFileSystem mount(fs);
  const std::vector<std::string> names = Names(mount.path());
  CHECK(names.size() == made.size());
  CHECK(std::set<std::string>(names.begin(), names.end()) == made);
}

TEST_CASE_METHOD(DirectoriesFixture, "A position in a listing can be found again") {
  Fill(500);
  MountedFileSystem mount(fs);
  const Directory directory(mount.path());
  for (int i = 0; i < 250; ++i) REQUIRE(readdir(directory.get()) != nullptr);
  const long place = telldir(directory.get());
  const std::string next = readdir(directory.get())->d_name;
  rewinddir(directory.get());
  CHECK(std::string(readdir(directory.get())->d_name) == ".");
  seekdir(directory.get(), place);
  CHECK(std::string(readdir(directory.get())->d_name) == next);
}

TEST_CASE_METHOD(DirectoriesFixture,
                 "A listing misses no entry if a program removes entries as it lists them") {
  Fill(3000);
  MountedFileSystem mount(fs);
  int removed = 0;
  {
    const Directory directory(mount.path());
    while (const dirent* entry = readdir(directory.get())) {
      if (entry->d_name[0] == '.') continue;
      REQUIRE(unlinkat(dirfd(directory.get()), entry->d_name, 0) == 0);
      ++removed;
    }
  }
  CHECK(removed == 3000);
  CHECK(Names(mount.path()).size() == 2);
}

TEST_CASE_METHOD(DirectoriesFixture,
                 "A cached listing shows entries made, renamed and removed since") {
  Fill(3);
  MountedFileSystem mount(fs);
  CHECK(Names(mount.path()).size() == 5);
  REQUIRE(WriteFile(mount / "new", "") == 0);
  REQUIRE(rename((mount / "file-00000").c_str(), (mount / "renamed").c_str()) == 0);
  REQUIRE(unlink((mount / "file-00001").c_str()) == 0);
  const auto names = Names(mount.path());
  CHECK(std::set<std::string>(names.begin(), names.end()) ==
        std::set<std::string>{".", "..", "file-00002", "new", "renamed"});
}

TEST_CASE_METHOD(DirectoriesFixture, "Entries have their type and number") {
  MountedFileSystem mount(fs);
  REQUIRE(WriteFile(mount / "file", "") == 0);
  REQUIRE(mkdir((mount / "directory").c_str(), 0755) == 0);
  REQUIRE(symlink("file", (mount / "link").c_str()) == 0);
  const Directory directory(mount.path());
  while (const dirent* entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    INFO(name);
    if (name == "file") CHECK(entry->d_type == DT_REG);
    if (name == "directory" || name == ".") CHECK(entry->d_type == DT_DIR);
    if (name == "link") CHECK(entry->d_type == DT_LNK);
    if (name != "..") CHECK(entry->d_ino == StatOf(mount / name).st_ino);
  }
}

TEST_CASE_METHOD(DirectoriesFixture, "A directory can be synced") {
  MountedFileSystem mount(fs);
  const Descriptor directory(mount.path(), O_RDONLY | O_DIRECTORY);
  CHECK(Outcome(fsync(directory.get())) == 0);
}

}  // namespace
}  // namespace siltfs::testing
