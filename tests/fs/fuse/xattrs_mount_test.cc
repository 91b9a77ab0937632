// Extended attributes through the kernel.
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <set>

#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

struct XattrsFixture {
  MemoryFileSystem fs;
  MountedFileSystem mount{fs};
  std::string path = mount / "file";

  XattrsFixture() { REQUIRE(WriteFile(path, "") == 0); }

  int Set(const std::string& name, const std::string& value, int flags = 0) const {
    return Outcome(setxattr(path.c_str(), name.c_str(), value.data(), value.size(), flags));
  }
  std::string Get(const std::string& name) const {
    const ssize_t size = getxattr(path.c_str(), name.c_str(), nullptr, 0);
    REQUIRE(size >= 0);
    std::string value(static_cast<size_t>(size), ' ');
    REQUIRE(getxattr(path.c_str(), name.c_str(), value.data(), value.size()) == size);
    return value;
  }
};

TEST_CASE_METHOD(XattrsFixture,
                 "Values are returned unchanged: with zeros, empty, and of the largest size") {
  const std::string binary("a\0b\xff", 4);
  CHECK(Set("user.binary", binary) == 0);
  CHECK(Get("user.binary") == binary);
  CHECK(Set("user.empty", "") == 0);
  CHECK(Get("user.empty").empty());
  const std::string largest(kMaxXattrValueBytes, 'v');
  CHECK(Set("user.largest", largest) == 0);
  CHECK(Get("user.largest") == largest);
  CHECK(Set("user.too-large", largest + "v") == E2BIG);
}

TEST_CASE_METHOD(XattrsFixture, "A small buffer is an error") {
  REQUIRE(Set("user.a", "12345") == 0);
  char buffer[4];
  CHECK(Outcome(getxattr(path.c_str(), "user.a", buffer, sizeof buffer)) == ERANGE);
  CHECK(Outcome(listxattr(path.c_str(), buffer, sizeof buffer)) == ERANGE);
}

TEST_CASE_METHOD(XattrsFixture, "Creating and replacing can be required separately") {
  CHECK(Set("user.a", "1", XATTR_REPLACE) == ENODATA);
  CHECK(Set("user.a", "1", XATTR_CREATE) == 0);
  CHECK(Set("user.a", "2", XATTR_CREATE) == EEXIST);
  CHECK(Set("user.a", "3", XATTR_REPLACE) == 0);
  CHECK(Get("user.a") == "3");
}

TEST_CASE_METHOD(XattrsFixture, "Names are listed, and no longer after their removal") {
  REQUIRE(Set("user.one", "1") == 0);
  REQUIRE(Set("trusted.two", "2") == 0);
  char list[256];
  const ssize_t size = listxattr(path.c_str(), list, sizeof list);
  REQUIRE(size == listxattr(path.c_str(), nullptr, 0));
  std::set<std::string> names;
  for (const char* at = list; at < list + size; at += std::char_traits<char>::length(at) + 1)
    names.insert(at);
  CHECK(names == std::set<std::string>{"user.one", "trusted.two"});
  CHECK(Outcome(removexattr(path.c_str(), "user.one")) == 0);
  CHECK(Outcome(removexattr(path.c_str(), "user.one")) == ENODATA);
  CHECK(Outcome(getxattr(path.c_str(), "user.one", nullptr, 0)) == ENODATA);
}

TEST_CASE_METHOD(XattrsFixture, "A name may be 255 bytes long") {
  const std::string longest = "user." + std::string(250, 'n');
  CHECK(Set(longest, "x") == 0);
  CHECK(Get(longest) == "x");
  CHECK(Set(longest + "n", "x") == ERANGE);
}

TEST_CASE_METHOD(XattrsFixture, "Only the namespaces of xattr(7) exist") {
  for (const char* name : {"user.a", "trusted.a", "security.a"}) {
    INFO(name);
    CHECK(Set(name, "1") == 0);
    CHECK(Get(name) == "1");
    CHECK(Outcome(removexattr(path.c_str(), name)) == 0);
  }
  for (const char* name :
       {"system.a", "system.posix_acl", "system.posix_acl_access2", "other.a", "user", "a"}) {
    INFO(name);
    CHECK(Set(name, "1") == EOPNOTSUPP);
    CHECK(Outcome(getxattr(path.c_str(), name, nullptr, 0)) == EOPNOTSUPP);
    CHECK(Outcome(removexattr(path.c_str(), name)) == EOPNOTSUPP);
  }
  for (const char* name : {"user.", "trusted.", "security."}) {
    INFO(name);
    CHECK(Set(name, "1") == EINVAL);
  }
  CHECK(listxattr(path.c_str(), nullptr, 0) == 0);
}

TEST_CASE("Only root can use and see trusted attributes") {
  MemoryFileSystem fs;
  MountOptions options;
  options.allow_other = true;
  MountedFileSystem mount(fs, options);
  const std::string path = mount / "file";
  REQUIRE(WriteFile(path, "") == 0);
  REQUIRE(Outcome(chmod(path.c_str(), 0666)) == 0);
  for (const char* name : {"user.a", "trusted.b", "security.c", "user.trusted.d"})
    REQUIRE(Outcome(setxattr(path.c_str(), name, "1", 1, 0)) == 0);
  const ssize_t all = static_cast<ssize_t>(sizeof "user.a" + sizeof "trusted.b" +
                                           sizeof "security.c" + sizeof "user.trusted.d");
  CHECK(listxattr(path.c_str(), nullptr, 0) == all);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    char list[256];
    const ssize_t size = listxattr(path.c_str(), list, sizeof list);
    const ssize_t rest = all - static_cast<ssize_t>(sizeof "trusted.b");
    if (size != rest || listxattr(path.c_str(), nullptr, 0) != rest) _exit(2);
    if (memmem(list, static_cast<size_t>(size), "trusted.b", 9) != nullptr) _exit(3);
    if (getxattr(path.c_str(), "trusted.b", nullptr, 0) >= 0 || errno != ENODATA) _exit(4);
    if (setxattr(path.c_str(), "trusted.b", "2", 1, 0) == 0 || errno != EPERM) _exit(5);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("A mount without extended attributes has none") {
  MemoryFileSystem fs;
  MountOptions options;
  options.no_xattrs = true;
  MountedFileSystem mount(fs, options);
  const std::string path = mount / "file";
  REQUIRE(WriteFile(path, "") == 0);
  CHECK(Outcome(setxattr(path.c_str(), "user.a", "1", 1, 0)) == EOPNOTSUPP);
  CHECK(Outcome(getxattr(path.c_str(), "user.a", nullptr, 0)) == EOPNOTSUPP);
  CHECK(Outcome(listxattr(path.c_str(), nullptr, 0)) == EOPNOTSUPP);
}

}  // namespace
}  // namespace siltfs::testing
