// Names and paths at their limits.
#include <limits.h>

#include <set>

#include <dirent.h>

#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

std::multiset<std::string> NamesIn(const std::string& path) {
  std::multiset<std::string> names;
  DIR* stream = opendir(path.c_str());
  if (stream == nullptr) throw std::runtime_error("opendir");
  while (const dirent* entry = readdir(stream)) names.insert(entry->d_name);
  closedir(stream);
  names.erase(".");
  names.erase("..");
  return names;
}

TEST_CASE_METHOD(OnTheFileSystem, "A name has up to 255 bytes, in every call that takes one") {
  const std::string longest(255, 'n');
  const std::string longer(256, 'n');
  const std::string good = Path(longest);
  const std::string bad = Path(longer);
  REQUIRE(WriteFile(Path("file"), "x") == 0);
  CHECK(WriteFile(good, "x") == 0);
  CHECK(NamesIn(directory.path()) == std::multiset<std::string>{"file", longest});
  CHECK(Outcome(rename(good.c_str(), Path("short").c_str())) == 0);
  CHECK(Outcome(rename(Path("short").c_str(), good.c_str())) == 0);
  CHECK(Outcome(unlink(good.c_str())) == 0);
  CHECK(WriteFile(bad, "x") == ENAMETOOLONG);
  CHECK(Outcome(mkdir(bad.c_str(), 0755)) == ENAMETOOLONG);
  CHECK(Outcome(mkfifo(bad.c_str(), 0600)) == ENAMETOOLONG);
  CHECK(Outcome(symlink("x", bad.c_str())) == ENAMETOOLONG);
  CHECK(Outcome(link(Path("file").c_str(), bad.c_str())) == ENAMETOOLONG);
  CHECK(Outcome(rename(Path("file").c_str(), bad.c_str())) == ENAMETOOLONG);
  CHECK(Outcome(rename(bad.c_str(), Path("x").c_str())) == ENAMETOOLONG);
  CHECK(Outcome(unlink(bad.c_str())) == ENAMETOOLONG);
  CHECK(Outcome(rmdir(bad.c_str())) == ENAMETOOLONG);
  CHECK(Outcome(access(bad.c_str(), F_OK)) == ENAMETOOLONG);
  CHECK(pathconf(directory.path().c_str(), _PC_NAME_MAX) == 255);
}

TEST_CASE_METHOD(OnTheFileSystem, "A name may hold every byte but a slash and a null") {
  std::multiset<std::string> expected;
  std::string all;
  for (int byte = 1; byte < 256; ++byte) {
    if (byte == '/') continue;
    const auto character = static_cast<char>(byte);
    all += character;
    if (character == '.') continue;
    expected.insert(std::string(1, character));
    REQUIRE(WriteFile(Path(std::string(1, character)), std::to_string(byte)) == 0);
  }
  REQUIRE(WriteFile(Path(all), "all") == 0);
  expected.insert(all);
  DropCaches();
  CHECK(NamesIn(directory.path()) == expected);
  CHECK(ReadFile(Path("\xff")) == "255");
  CHECK(ReadFile(Path("A")) == "65");
  CHECK(ReadFile(Path("a")) == "97");
  CHECK(ReadFile(Path(all)) == "all");
}

TEST_CASE_METHOD(OnTheFileSystem, "Names that differ only in Unicode normalization are different") {
  const std::string composed = "\xc3\xa9";     // e with acute accent
  const std::string decomposed = "e\xcc\x81";  // e, then the accent
  REQUIRE(WriteFile(Path(composed), "composed") == 0);
  REQUIRE(WriteFile(Path(decomposed), "decomposed") == 0);
  CHECK(ReadFile(Path(composed)) == "composed");
  CHECK(ReadFile(Path(decomposed)) == "decomposed");
}

TEST_CASE_METHOD(OnTheFileSystem, "A path has up to 4,095 bytes") {
  std::string path = directory.path();
  while (path.size() + 201 < PATH_MAX - 1) {
    path += "/" + std::string(200, 'd');
    REQUIRE(Outcome(mkdir(path.c_str(), 0755)) == 0);
  }
  path += "/";
  const std::string longest = path + std::string(PATH_MAX - 1 - path.size(), 'f');
  REQUIRE(longest.size() == PATH_MAX - 1);
  CHECK(WriteFile(longest, "deep") == 0);
  CHECK(ReadFile(longest) == "deep");
  CHECK(WriteFile(longest + "f", "deep") == ENAMETOOLONG);
  CHECK(Outcome(unlink(longest.c_str())) == 0);
}

TEST_CASE_METHOD(OnTheFileSystem, "A symbolic link holds up to 4,095 bytes") {
  for (const size_t size : {size_t{1}, size_t{255}, size_t{256}, size_t{4095}}) {
    const std::string target(size, 't');
    const std::string path = Path("link-" + std::to_string(size));
    REQUIRE(Outcome(symlink(target.c_str(), path.c_str())) == 0);
    DropCaches();
    std::string read(5000, ' ');
    CHECK(readlink(path.c_str(), read.data(), read.size()) == static_cast<ssize_t>(size));
    CHECK(read.substr(0, size) == target);
    CHECK(StatOf(path).st_size == static_cast<off_t>(size));
  }
  CHECK(Outcome(symlink(std::string(4096, 't').c_str(), Path("l").c_str())) == ENAMETOOLONG);
  CHECK(Outcome(symlink("", Path("l").c_str())) == ENOENT);
  char two[2];
  CHECK(readlink(Path("link-255").c_str(), two, 2) == 2);
}

TEST_CASE_METHOD(OnTheFileSystem, "Symbolic links may lead to links, up or in a circle") {
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  REQUIRE(WriteFile(Path("file"), "found") == 0);
  REQUIRE(Outcome(symlink("../file", Path("d/up").c_str())) == 0);
  REQUIRE(Outcome(symlink("d", Path("directory").c_str())) == 0);
  REQUIRE(Outcome(symlink("two", Path("one").c_str())) == 0);
  REQUIRE(Outcome(symlink("one", Path("two").c_str())) == 0);
  const Descriptor through(Path("directory/up"));
  const Bytes found = ReadAt(through.get(), 0, 5);
  CHECK(AsText(found) == "found");
  CHECK(Descriptor(Path("one")).error() == ELOOP);
  CHECK(Outcome(access(Path("one/below").c_str(), F_OK)) == ELOOP);
  CHECK(Descriptor(Path("directory/up"), O_RDONLY | O_NOFOLLOW).error() == ELOOP);
  CHECK(Descriptor(Path("one"), O_CREAT | O_EXCL | O_WRONLY).error() == EEXIST);
  for (int i = 0; i < 41; ++i) {
    const std::string next = i == 0 ? "file" : "chain-" + std::to_string(i - 1);
    REQUIRE(Outcome(symlink(next.c_str(), Path("chain-" + std::to_string(i)).c_str())) == 0);
  }
  CHECK(Descriptor(Path("chain-39")).error() == 0);
  CHECK(Descriptor(Path("chain-40")).error() == ELOOP);
}

TEST_CASE_METHOD(OnTheFileSystem, "Writing through a dangling link creates its target") {
  REQUIRE(Outcome(symlink("target", Path("link").c_str())) == 0);
  CHECK(Descriptor(Path("link")).error() == ENOENT);
  REQUIRE(WriteFile(Path("link"), "made") == 0);
  CHECK(ReadFile(Path("target")) == "made");
}

}  // namespace
}  // namespace siltfs::testing
