// Attributes through the kernel: modes, owners, times, space.
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

constexpr uid_t kNobody = 65534;

struct AttributesFixture {
  MemoryFileSystem fs;
  MountOptions options = [] {
    MountOptions made;
    made.allow_other = true;
    return made;
  }();
  MountedFileSystem mount{fs, options};

  std::string Path(const std::string& name) const { return mount / name; }
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

TEST_CASE_METHOD(AttributesFixture, "Mode and owner are kept") {
  REQUIRE(WriteFile(Path("a"), "") == 0);
  REQUIRE(Outcome(chmod(Path("a").c_str(), 04751)) == 0);
  CHECK(StatOf(Path("a")).st_mode == (S_IFREG | 04751));
  REQUIRE(Outcome(chown(Path("a").c_str(), 12, 34)) == 0);
  CHECK(StatOf(Path("a")).st_uid == 12);
  CHECK(StatOf(Path("a")).st_gid == 34);
  REQUIRE(Outcome(chown(Path("a").c_str(), static_cast<uid_t>(-1), 35)) == 0);
  CHECK(StatOf(Path("a")).st_uid == 12);
  CHECK(StatOf(Path("a")).st_gid == 35);
  mount.DropCaches();
  CHECK(StatOf(Path("a")).st_gid == 35);
}

TEST_CASE_METHOD(AttributesFixture, "Times are kept to the nanosecond, also before 1970") {
  REQUIRE(WriteFile(Path("a"), "x") == 0);
  const timespec times[2] = {{.tv_sec = 1'234'567'890, .tv_nsec = 123'456'789},
                             {.tv_sec = -5, .tv_nsec = 999'999'999}};
  REQUIRE(Outcome(utimensat(AT_FDCWD, Path("a").c_str(), times, 0)) == 0);
  mount.DropCaches();
  const struct stat stat = StatOf(Path("a"));
  CHECK(stat.st_atim.tv_sec == 1'234'567'890);
  CHECK(stat.st_atim.tv_nsec == 123'456'789);
  CHECK(stat.st_mtim.tv_sec == -5);
  CHECK(stat.st_mtim.tv_nsec == 999'999'999);
}

TEST_CASE_METHOD(AttributesFixture, "A time can be set to the present time") {
  REQUIRE(WriteFile(Path("a"), "") == 0);
  const timespec past[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  REQUIRE(Outcome(utimensat(AT_FDCWD, Path("a").c_str(), past, 0)) == 0);
  const timespec now[2] = {{.tv_sec = 0, .tv_nsec = UTIME_NOW},
                           {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
  REQUIRE(Outcome(utimensat(AT_FDCWD, Path("a").c_str(), now, 0)) == 0);
  CHECK(StatOf(Path("a")).st_atim.tv_sec > 1'000'000'000);
  CHECK(StatOf(Path("a")).st_mtim.tv_sec == 1);
}

TEST_CASE_METHOD(AttributesFixture,
                 "A write changes the modification time, and a rename does not") {
  REQUIRE(WriteFile(Path("a"), "x") == 0);
  const timespec past[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  REQUIRE(Outcome(utimensat(AT_FDCWD, Path("a").c_str(), past, 0)) == 0);
  REQUIRE(Outcome(rename(Path("a").c_str(), Path("b").c_str())) == 0);
  CHECK(StatOf(Path("b")).st_mtim.tv_sec == 1);
  Descriptor file(Path("b"), O_WRONLY);
  REQUIRE(WriteAt(file.get(), 0, AsBytes("y")) == 0);
  REQUIRE(file.Close() == 0);
  CHECK(StatOf(Path("b")).st_mtim.tv_sec > 1'000'000'000);
  mount.DropCaches();
  CHECK(StatOf(Path("b")).st_mtim.tv_sec > 1'000'000'000);
}

TEST_CASE_METHOD(AttributesFixture, "Permissions are enforced") {
  REQUIRE(Outcome(chmod(mount.path().c_str(), 0755)) == 0);
  REQUIRE(WriteFile(Path("private"), "secret") == 0);
  REQUIRE(Outcome(chmod(Path("private").c_str(), 0600)) == 0);
  REQUIRE(WriteFile(Path("public"), "open") == 0);
  const std::string closed = Path("private");
  const std::string open_to_all = Path("public");
  CHECK(AsNobody([&] { return open(closed.c_str(), O_RDONLY) < 0 ? errno : 0; }) == EACCES);
  CHECK(AsNobody([&] { return open(open_to_all.c_str(), O_RDONLY) < 0 ? errno : 0; }) == 0);
  CHECK(AsNobody([&] { return open(open_to_all.c_str(), O_WRONLY) < 0 ? errno : 0; }) == EACCES);
  CHECK(AsNobody([&] { return unlink(open_to_all.c_str()) < 0 ? errno : 0; }) == EACCES);
}

TEST_CASE_METHOD(AttributesFixture,
                 "Another user's write, truncation or opening for truncation removes set-user-id") {
  const std::string path = Path("suid");
  const auto make = [&] {
    REQUIRE(WriteFile(path, "program") == 0);
    REQUIRE(Outcome(chmod(path.c_str(), 06777)) == 0);
  };
  make();
  CHECK(AsNobody([&] { return write(open(path.c_str(), O_WRONLY), "x", 1) == 1 ? 0 : errno; }) ==
        0);
  CHECK(StatOf(path).st_mode == (S_IFREG | 0777));
  make();
  CHECK(AsNobody([&] { return truncate(path.c_str(), 1) == 0 ? 0 : errno; }) == 0);
  CHECK(StatOf(path).st_mode == (S_IFREG | 0777));
  make();
  CHECK(AsNobody([&] { return open(path.c_str(), O_WRONLY | O_TRUNC) >= 0 ? 0 : errno; }) == 0);
  CHECK(StatOf(path).st_mode == (S_IFREG | 0777));
  mount.DropCaches();
  CHECK(StatOf(path).st_mode == (S_IFREG | 0777));
}

TEST_CASE_METHOD(AttributesFixture, "A change of owner removes set-user-id") {
  REQUIRE(WriteFile(Path("suid"), "program") == 0);
  REQUIRE(Outcome(chmod(Path("suid").c_str(), 06755)) == 0);
  REQUIRE(Outcome(chown(Path("suid").c_str(), 1, 1)) == 0);
  CHECK(StatOf(Path("suid")).st_mode == (S_IFREG | 0755));
}

// Calls statx; also asks for the birth time by default.
struct statx StatxOf(const std::string& path, unsigned mask = STATX_BASIC_STATS | STATX_BTIME) {
  struct statx statx = {};
  REQUIRE(::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, mask, &statx) == 0);
  return statx;
}

TEST_CASE_METHOD(AttributesFixture, "The birth time is reported, and never changes") {
  REQUIRE(WriteFile(Path("a"), "x") == 0);
  const int64_t born = fs.GetAttributes(StatOf(Path("a")).st_ino)->btime;
  REQUIRE(born > 0);
  const timespec times[2] = {{.tv_sec = 5, .tv_nsec = 6}, {.tv_sec = -7, .tv_nsec = 8}};
  REQUIRE(Outcome(utimensat(AT_FDCWD, Path("a").c_str(), times, 0)) == 0);
  REQUIRE(Outcome(rename(Path("a").c_str(), Path("b").c_str())) == 0);
  const bool forgotten = GENERATE(false, true);
  if (forgotten) mount.DropCaches();
  const struct statx told = StatxOf(Path("b"));
  CHECK((told.stx_mask & STATX_BTIME) != 0);
  CHECK(told.stx_btime.tv_sec * 1'000'000'000 + told.stx_btime.tv_nsec == born);
  CHECK(told.stx_mtime.tv_sec == -7);
  CHECK(told.stx_mtime.tv_nsec == 8);
}

TEST_CASE_METHOD(AttributesFixture, "Attributes are the same with and without the birth time") {
  REQUIRE(WriteFile(Path("file"), std::string(5000, 'x')) == 0);
  REQUIRE(Outcome(chown(Path("file").c_str(), 12, 34)) == 0);
  REQUIRE(Outcome(mknod(Path("device").c_str(), S_IFCHR | 0640, makedev(300, 70000))) == 0);
  REQUIRE(Outcome(symlink("file", Path("link").c_str())) == 0);
  for (const char* name : {"file", "device", "link", "."}) {
    INFO(name);
    mount.DropCaches();
    const struct statx told = StatxOf(Path(name));
    mount.DropCaches();
    const struct stat stat = StatOf(Path(name));
    CHECK(told.stx_ino == stat.st_ino);
    CHECK(told.stx_mode == stat.st_mode);
    CHECK(told.stx_nlink == stat.st_nlink);
    CHECK(told.stx_uid == stat.st_uid);
    CHECK(told.stx_gid == stat.st_gid);
    CHECK(told.stx_size == static_cast<uint64_t>(stat.st_size));
    CHECK(told.stx_blocks == static_cast<uint64_t>(stat.st_blocks));
    CHECK(told.stx_blksize == static_cast<uint32_t>(stat.st_blksize));
    CHECK(makedev(told.stx_rdev_major, told.stx_rdev_minor) == stat.st_rdev);
    CHECK(told.stx_atime.tv_sec == stat.st_atim.tv_sec);
    CHECK(told.stx_ctime.tv_nsec == stat.st_ctim.tv_nsec);
    CHECK(told.stx_mtime.tv_nsec == stat.st_mtim.tv_nsec);
  }
}

TEST_CASE_METHOD(AttributesFixture, "statvfs reports the sizes and limits of the file system") {
  struct statvfs space = {};
  REQUIRE(statvfs(mount.path().c_str(), &space) == 0);
  CHECK(space.f_frsize == 4096);
  CHECK(space.f_blocks * space.f_frsize == uint64_t{1} << 40);
  CHECK(space.f_bavail > 0);
  CHECK(space.f_files > space.f_ffree);
  CHECK(space.f_namemax == kMaxNameBytes);
}

TEST_CASE("A mount for one user is closed to others") {
  MemoryFileSystem fs;
  MountedFileSystem mount(fs);
  const std::string path = mount.path();
  CHECK(AsNobody([&] { return access(path.c_str(), F_OK) == 0 ? 0 : errno; }) == EACCES);
}

TEST_CASE("A read-only mount refuses to write") {
  MemoryFileSystem fs;
  MountOptions options;
  options.read_only = true;
  MountedFileSystem mount(fs, options);
  CHECK(WriteFile(mount / "a", "") == EROFS);
  CHECK(Outcome(mkdir((mount / "d").c_str(), 0755)) == EROFS);
  CHECK(mount.MountLine().find(" ro,") != std::string::npos);
}

}  // namespace
}  // namespace siltfs::testing
