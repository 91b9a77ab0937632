// Directories with many entries, and directories nested in many levels.
#include <dirent.h>

#include <set>

#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

TEST_CASE_METHOD(OnTheFileSystem, "A directory of 20,000 entries is listed and removed whole") {
  constexpr int kEntries = 20'000;
  const Descriptor parent(directory.path(), O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < kEntries; ++i) {
    const std::string name = "an entry with the number " + std::to_string(i);
    REQUIRE(Outcome(mknodat(parent.get(), name.c_str(), S_IFREG | 0600, 0)) == 0);
  }
  DropCaches();
  std::set<std::string> names;
  int listed = 0;
  DIR* stream = opendir(directory.path().c_str());
  REQUIRE(stream != nullptr);
  while (const dirent* entry = readdir(stream)) {
    if (entry->d_name[0] == '.') continue;
    ++listed;
    names.insert(entry->d_name);
  }
  closedir(stream);
  CHECK(listed == kEntries);
  CHECK(names.size() == static_cast<size_t>(kEntries));
  CHECK(names.contains("an entry with the number 0"));
  CHECK(names.contains("an entry with the number 19999"));
  CHECK(Outcome(rmdir(directory.path().c_str())) == ENOTEMPTY);
  for (const std::string& name : names) {
    REQUIRE(Outcome(unlinkat(parent.get(), name.c_str(), 0)) == 0);
  }
  CHECK(Outcome(rmdir(directory.path().c_str())) == 0);
}

TEST_CASE_METHOD(OnTheFileSystem, "A tree 300 levels deep is walked down and up") {
  constexpr int kLevels = 300;
  // The whole path is longer than PATH_MAX, so the test enters one directory after the other.
  const auto name = [](int level) { return "a directory on level " + std::to_string(level); };
  std::vector<int> open_levels = {open(directory.path().c_str(), O_RDONLY | O_DIRECTORY)};
  for (int level = 0; level < kLevels; ++level) {
    REQUIRE(Outcome(mkdirat(open_levels.back(), name(level).c_str(), 0755)) == 0);
    open_levels.push_back(openat(open_levels.back(), name(level).c_str(), O_RDONLY | O_DIRECTORY));
    REQUIRE(open_levels.back() >= 0);
  }
  const int file = openat(open_levels.back(), "bottom", O_CREAT | O_RDWR, 0600);
  REQUIRE(WriteAt(file, 0, AsBytes("deep down")) == 0);
  close(file);
  DropCaches();
  CHECK(InChild([&] {
          if (fchdir(open_levels.back()) != 0) return 1;
          if (ReadFile("bottom") != "deep down") return 2;
          for (int level = 0; level < kLevels; ++level) {
            if (chdir("..") != 0) return 3;
          }
          struct stat here = {};
          if (::stat(".", &here) != 0) return 4;
          return here.st_ino == StatOf(directory.path()).st_ino ? 0 : 5;
        }) == 0);
  CHECK(Outcome(renameat(open_levels[0], name(0).c_str(), open_levels[150], "inside")) == EINVAL);
  REQUIRE(Outcome(unlinkat(open_levels.back(), "bottom", 0)) == 0);
  for (int level = kLevels; level > 0; --level) {
    close(open_levels.back());
    open_levels.pop_back();
    REQUIRE(Outcome(unlinkat(open_levels.back(), name(level - 1).c_str(), AT_REMOVEDIR)) == 0);
  }
  close(open_levels.back());
  CHECK(StatOf(directory.path()).st_nlink == 2);
}

}  // namespace
}  // namespace siltfs::testing
