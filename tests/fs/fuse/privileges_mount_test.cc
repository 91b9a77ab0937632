// A change of a file removes its set-id bits and capabilities, through the kernel.
#include <sys/wait.h>
#include <sys/xattr.h>

#include <atomic>

#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

constexpr uid_t kNobody = 65534;
constexpr const char* kCapability = "security.capability";

// Counts the kernel's requests.
class CountingFileSystem final : public MemoryFileSystem {
 public:
  Result<std::string> GetXattr(InodeNumber inode, std::string_view name) override {
    ++xattr_reads;
    return MemoryFileSystem::GetXattr(inode, name);
  }
  Status Write(InodeNumber inode, uint64_t offset, ByteView data, Privileges privileges,
               WriteTimes times) override {
    ++writes;
    return MemoryFileSystem::Write(inode, offset, data, privileges, times);
  }
  std::atomic<int> xattr_reads{0};
  std::atomic<int> writes{0};
};

struct PrivilegesFixture {
  CountingFileSystem fs;
  MountOptions options = [] {
    MountOptions made;
    made.allow_other = true;
    return made;
  }();
  MountedFileSystem mount{fs, options};
  std::string path = mount / "program";

  void Make(mode_t mode) const {
    REQUIRE(WriteFile(path, "program") == 0);
    REQUIRE(Outcome(chmod(path.c_str(), mode)) == 0);
  }
  mode_t Mode() const { return StatOf(path).st_mode & 07777; }
  // Sets cap_net_raw like setcap(8), permitted and effective (linux/capability.h, revision 2).
  void GiveCapability() const {
    const std::string value("\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
    REQUIRE(Outcome(setxattr(path.c_str(), kCapability, value.data(), value.size(), 0)) == 0);
    REQUIRE(HasCapability());
  }
  bool HasCapability() const { return getxattr(path.c_str(), kCapability, nullptr, 0) > 0; }
};

// Runs `act` as a user without rights; returns its result (0 to 255). `act` may only make system
// calls.
template <typename Action>
int AsNobody(Action act) {
  const pid_t child = fork();
  if (child == 0) _exit(setgid(kNobody) == 0 && setuid(kNobody) == 0 ? act() : 255);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE_METHOD(PrivilegesFixture,
                 "Another user's write removes set-group-id only if the group may execute") {
  const char* const name = path.c_str();
  const auto write_to_it = [name] { return write(open(name, O_WRONLY), "x", 1) == 1 ? 0 : errno; };
  Make(06776);
  CHECK(AsNobody(write_to_it) == 0);
  CHECK(Mode() == 0776);
  Make(06766);
  CHECK(AsNobody(write_to_it) == 0);
  CHECK(Mode() == 02766);
  Make(06766);
  CHECK(AsNobody([name] { return truncate(name, 1) == 0 ? 0 : errno; }) == 0);
  CHECK(Mode() == 02766);
}

// Returns the mode that the kernel shows if only the mode is requested, as `stat -c %a` does. For
// stat(2), the kernel asks the file system again after each write, because the size and the blocks
// may have changed.
mode_t ModeAlone(const std::string& path) {
  struct statx about = {};
  REQUIRE(statx(AT_FDCWD, path.c_str(), 0, STATX_MODE, &about) == 0);
  return about.stx_mode & 07777;
}

TEST_CASE_METHOD(PrivilegesFixture,
                 "A write that clears set-id bits is visible at once, also after a recent stat") {
  Make(06777);
  const std::string source = mount / "source";
  REQUIRE(WriteFile(source, std::string(5000, 's')) == 0);
  REQUIRE(Outcome(chmod(source.c_str(), 0644)) == 0);
  REQUIRE(Mode() == 06777);
  REQUIRE(ModeAlone(path) == 06777);
  const char* const name = path.c_str();
  const char* const from = source.c_str();
  SECTION("a write") {
    REQUIRE(AsNobody([name] { return write(open(name, O_WRONLY), "x", 1) == 1 ? 0 : errno; }) == 0);
  }
  SECTION("an appending write") {
    REQUIRE(AsNobody([name] {
              return write(open(name, O_WRONLY | O_APPEND), "x", 1) == 1 ? 0 : errno;
            }) == 0);
  }
  SECTION("a write past the cache") {
    alignas(4096) static const uint8_t page[4096] = {};
    REQUIRE(AsNobody([name] {
              return write(open(name, O_WRONLY | O_DIRECT), page, 4096) == 4096 ? 0 : errno;
            }) == 0);
  }
  SECTION("a truncation") {
    REQUIRE(AsNobody([name] { return truncate(name, 1) == 0 ? 0 : errno; }) == 0);
  }
  SECTION("a truncation of an open file") {
    REQUIRE(AsNobody([name] { return ftruncate(open(name, O_WRONLY), 100) == 0 ? 0 : errno; }) ==
            0);
  }
  SECTION("opening for truncation") {
    REQUIRE(AsNobody([name] { return open(name, O_WRONLY | O_TRUNC) >= 0 ? 0 : errno; }) == 0);
  }
  SECTION("an allocation") {
    REQUIRE(AsNobody([name] {
              return fallocate(open(name, O_WRONLY), 0, 0, 10000) == 0 ? 0 : errno;
            }) == 0);
  }
  SECTION("a hole") {
    REQUIRE(AsNobody([name] {
              return fallocate(open(name, O_WRONLY), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                               4) == 0
                         ? 0
                         : errno;
            }) == 0);
  }
  SECTION("a copied range") {
    REQUIRE(AsNobody([name, from] {
              return copy_file_range(open(from, O_RDONLY), nullptr, open(name, O_WRONLY), nullptr,
                                     5000, 0) == 5000
                         ? 0
                         : errno;
            }) == 0);
  }
  SECTION("a new owner") { REQUIRE(Outcome(chown(name, 1, 1)) == 0); }
  CHECK(ModeAlone(path) == 0777);
  CHECK(Mode() == 0777);
}

TEST_CASE_METHOD(PrivilegesFixture,
                 "Another user's write is visible at once to processes that have the file open") {
  Make(04777);
  const Descriptor file(path);
  struct stat stat = {};
  REQUIRE(fstat(file.get(), &stat) == 0);
  REQUIRE((stat.st_mode & 07777) == 04777);
  const char* const name = path.c_str();
  REQUIRE(AsNobody([name] { return write(open(name, O_WRONLY), "x", 1) == 1 ? 0 : errno; }) == 0);
  REQUIRE(fstat(file.get(), &stat) == 0);
  CHECK((stat.st_mode & 07777) == 0777);
  CHECK(fs.GetAttributes(stat.st_ino)->mode == (S_IFREG | 0777));
}

TEST_CASE_METHOD(PrivilegesFixture,
                 "A caller that may set the bits may write without losing them") {
  Make(06755);
  REQUIRE(WriteFile(path, "another program") == 0);
  CHECK(Mode() == 06755);
  REQUIRE(Outcome(truncate(path.c_str(), 3)) == 0);
  CHECK(Mode() == 06755);
  mount.DropCaches();
  CHECK(Mode() == 06755);
}

TEST_CASE_METHOD(PrivilegesFixture,
                 "A change of owner removes set-group-id unless the group may not execute") {
  Make(06755);
  REQUIRE(Outcome(chown(path.c_str(), 1, 1)) == 0);
  CHECK(Mode() == 0755);
  Make(06745);
  REQUIRE(Outcome(chown(path.c_str(), 2, 2)) == 0);
  CHECK(Mode() == 02745);
  const std::string directory = mount / "d";
  REQUIRE(Outcome(mkdir(directory.c_str(), 0755)) == 0);
  REQUIRE(Outcome(chmod(directory.c_str(), 02755)) == 0);
  REQUIRE(Outcome(chown(directory.c_str(), 1, 1)) == 0);
  CHECK((StatOf(directory).st_mode & 07777) == 02755);
}

TEST_CASE_METHOD(PrivilegesFixture, "A write, a new size and a new owner remove a capability") {
  Make(0755);
  GiveCapability();
  SECTION("a write, before it is written back") {
    const Descriptor file(path, O_WRONLY);
    REQUIRE(WriteAt(file.get(), 0, AsBytes("x")) == 0);
    CHECK_FALSE(HasCapability());
  }
  SECTION("a write past the cache") {
    const Descriptor file(path, O_WRONLY | O_DIRECT);
    alignas(4096) static const uint8_t page[4096] = {};
    REQUIRE(WriteAt(file.get(), 0, page) == 0);
  }
  SECTION("a truncation") { REQUIRE(Outcome(truncate(path.c_str(), 1)) == 0); }
  SECTION("opening for truncation") { REQUIRE(WriteFile(path, "") == 0); }
  SECTION("an owner") { REQUIRE(Outcome(chown(path.c_str(), 1, 1)) == 0); }
  SECTION("a group") { REQUIRE(Outcome(chown(path.c_str(), static_cast<uid_t>(-1), 1)) == 0); }
  CHECK_FALSE(HasCapability());
  mount.DropCaches();
  CHECK_FALSE(HasCapability());
}

TEST_CASE_METHOD(PrivilegesFixture,
                 "A capability given after the last write survives its writeback") {
  Make(0755);
  Descriptor file(path, O_WRONLY);
  REQUIRE(WriteAt(file.get(), 0, AsBytes("a new program")) == 0);
  const int before = fs.writes;
  GiveCapability();
  REQUIRE(fs.writes == before);  // if not, the test shows nothing
  REQUIRE(Outcome(fsync(file.get())) == 0);
  REQUIRE(fs.writes > before);
  CHECK(HasCapability());
  REQUIRE(file.Close() == 0);
  mount.DropCaches();
  CHECK(HasCapability());
  CHECK(ReadFile(path) == "a new program");
}

TEST_CASE_METHOD(PrivilegesFixture,
                 "The kernel asks for a file's capability once, not with every write") {
  Descriptor file(path, O_WRONLY | O_CREAT);
  const std::string page(4096, 'x');
  for (uint64_t i = 0; i < 100; ++i) {
    REQUIRE(WriteAt(file.get(), i * page.size(), AsBytes(page)) == 0);
  }
  CHECK(fs.xattr_reads == 1);
  REQUIRE(Outcome(fsync(file.get())) == 0);
  for (uint64_t i = 0; i < 100; ++i) {
    REQUIRE(WriteAt(file.get(), i * page.size(), AsBytes(page)) == 0);
  }
  CHECK(fs.xattr_reads == 1);
}

}  // namespace siltfs::testing
