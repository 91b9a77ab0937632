// Extended attributes in the namespace "user.".
#include <sys/xattr.h>

#include <set>

#include "store/base/random.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct AttributedFile : OnTheFileSystem {
  std::string path = Path("file");

  AttributedFile() { REQUIRE(WriteFile(path, "content") == 0); }

  int Set(const std::string& name, const std::string& value, int flags = 0) const {
    return Outcome(setxattr(path.c_str(), name.c_str(), value.data(), value.size(), flags));
  }
  std::string Get(const std::string& name) const {
    std::string value(70'000, '\0');
    const ssize_t size = getxattr(path.c_str(), name.c_str(), value.data(), value.size());
    if (size < 0) return "errno " + std::to_string(errno);
    value.resize(static_cast<size_t>(size));
    return value;
  }
  int Remove(const std::string& name) const {
    return Outcome(removexattr(path.c_str(), name.c_str()));
  }
  std::multiset<std::string> List() const {
    std::string list(65'536, '\0');
    const ssize_t size = listxattr(path.c_str(), list.data(), list.size());
    REQUIRE(size >= 0);
    std::multiset<std::string> names;
    for (size_t begin = 0; begin < static_cast<size_t>(size);) {
      const std::string name = list.c_str() + begin;
      begin += name.size() + 1;
      if (name.starts_with("user.")) names.insert(name);
    }
    return names;
  }
};

TEST_CASE_METHOD(AttributedFile, "Attributes are set, replaced, listed and removed") {
  CHECK(List().empty());
  CHECK(Set("user.a", "one") == 0);
  CHECK(Set("user.b", "") == 0);
  CHECK(Set("user.a", "another value") == 0);
  CHECK(Get("user.a") == "another value");
  CHECK(Get("user.b").empty());
  CHECK(List() == std::multiset<std::string>{"user.a", "user.b"});
  DropCaches();
  CHECK(Get("user.a") == "another value");
  CHECK(List() == std::multiset<std::string>{"user.a", "user.b"});
  CHECK(Remove("user.a") == 0);
  CHECK(Get("user.a") == "errno " + std::to_string(ENODATA));
  CHECK(Remove("user.a") == ENODATA);
  CHECK(List() == std::multiset<std::string>{"user.b"});
}

TEST_CASE_METHOD(AttributedFile, "Setting may require that the attribute is new, or exists") {
  CHECK(Set("user.a", "x", XATTR_REPLACE) == ENODATA);
  CHECK(Set("user.a", "one", XATTR_CREATE) == 0);
  CHECK(Set("user.a", "two", XATTR_CREATE) == EEXIST);
  CHECK(Get("user.a") == "one");
  CHECK(Set("user.a", "two", XATTR_REPLACE) == 0);
  CHECK(Get("user.a") == "two");
}

TEST_CASE_METHOD(AttributedFile, "Sizes can be queried, and too small a buffer gives ERANGE") {
  REQUIRE(Set("user.a", "0123456789") == 0);
  char buffer[10];
  CHECK(getxattr(path.c_str(), "user.a", nullptr, 0) == 10);
  CHECK(getxattr(path.c_str(), "user.a", buffer, 10) == 10);
  CHECK(Outcome(getxattr(path.c_str(), "user.a", buffer, 9)) == ERANGE);
  CHECK(listxattr(path.c_str(), nullptr, 0) >= 7);
  CHECK(Outcome(listxattr(path.c_str(), buffer, 3)) == ERANGE);
}

TEST_CASE_METHOD(AttributedFile, "Values hold every byte") {
  std::string value;
  for (int byte = 0; byte < 256; ++byte) value += static_cast<char>(byte);
  REQUIRE(Set("user.bytes", value) == 0);
  CHECK(Get("user.bytes") == value);
}

TEST_CASE_METHOD(AttributedFile, "A value has up to 64 KiB", "[siltfs]") {
  Bytes noise(65'536);
  Random(1).Fill(noise);
  const std::string value(AsText(noise));
  CHECK(Set("user.large", value) == 0);
  CHECK(Set("user.large2", value) == 0);
  CHECK(Set("user.larger", value + "x") == E2BIG);
  DropCaches();
  CHECK(Get("user.large") == value);
  CHECK(Get("user.large2") == value);
}

TEST_CASE_METHOD(AttributedFile, "A name has up to 255 bytes, and needs a known prefix") {
  const std::string longest = "user." + std::string(250, 'n');
  CHECK(Set(longest, "x") == 0);
  CHECK(Get(longest) == "x");
  CHECK(Set(longest + "n", "x") == ERANGE);
  CHECK(Set("nonsense", "x") == EOPNOTSUPP);
  CHECK(Set("other.a", "x") == EOPNOTSUPP);
  CHECK(List() == std::multiset<std::string>{longest});
}

TEST_CASE_METHOD(AttributedFile, "A file can have many attributes, and they do not change its size",
                 "[siltfs]") {
  std::multiset<std::string> expected;
  for (int i = 0; i < 500; ++i) {
    const std::string name = "user.attribute-" + std::to_string(i);
    REQUIRE(Set(name, std::string(static_cast<size_t>(i), 'v')) == 0);
    expected.insert(name);
  }
  CHECK(List() == expected);
  CHECK(Get("user.attribute-77") == std::string(77, 'v'));
  CHECK(ReadFile(path) == "content");
}

TEST_CASE_METHOD(AttributedFile, "Attributes belong to the file, not to its name") {
  REQUIRE(Set("user.a", "kept") == 0);
  REQUIRE(Outcome(link(path.c_str(), Path("link").c_str())) == 0);
  REQUIRE(Outcome(rename(path.c_str(), Path("moved").c_str())) == 0);
  path = Path("link");
  CHECK(Get("user.a") == "kept");
  path = Path("moved");
  CHECK(Get("user.a") == "kept");
  const Descriptor file(path, O_RDWR);
  REQUIRE(Outcome(unlink(path.c_str())) == 0);
  REQUIRE(Outcome(unlink(Path("link").c_str())) == 0);
  char buffer[10];
  CHECK(fgetxattr(file.get(), "user.a", buffer, sizeof buffer) == 4);
  CHECK(Outcome(fsetxattr(file.get(), "user.b", "x", 1, 0)) == 0);
}

TEST_CASE_METHOD(AttributedFile, "Directories have attributes, symbolic links do not") {
  REQUIRE(Outcome(symlink("file", Path("link").c_str())) == 0);
  CHECK(Outcome(lsetxattr(Path("link").c_str(), "user.a", "x", 1, 0)) == EPERM);
  CHECK(Outcome(setxattr(Path("link").c_str(), "user.a", "x", 1, 0)) == 0);
  CHECK(Get("user.a") == "x");
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  path = Path("d");
  CHECK(Set("user.a", "of a directory") == 0);
  CHECK(Get("user.a") == "of a directory");
}

TEST_CASE_METHOD(AttributedFile, "A user without write access may not set attributes") {
  REQUIRE(Set("user.a", "secret") == 0);
  REQUIRE(Outcome(chmod(path.c_str(), 0644)) == 0);
  CHECK(As(kBob, kBob, [&] { return Set("user.a", "x"); }) == EACCES);
  CHECK(As(kBob, kBob, [&] { return Get("user.a") == "secret" ? 0 : 1; }) == 0);
  CHECK(As(kBob, kBob, [&] { return Outcome(setxattr(path.c_str(), "trusted.a", "x", 1, 0)); }) ==
        EPERM);
  REQUIRE(Outcome(chmod(path.c_str(), 0600)) == 0);
  CHECK(As(kBob, kBob, [&] { return Outcome(getxattr(path.c_str(), "user.a", nullptr, 0)); }) ==
        EACCES);
}

}  // namespace
}  // namespace siltfs::testing
