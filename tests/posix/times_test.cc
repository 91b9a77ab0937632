// Tests which calls set which times, and the precision of times.
#include <sys/xattr.h>

#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

int64_t Nanoseconds(const struct timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

struct Times {
  int64_t access, modification, change;
  explicit Times(const std::string& path) {
    const struct stat stat = StatOf(path);
    access = Nanoseconds(stat.st_atim);
    modification = Nanoseconds(stat.st_mtim);
    change = Nanoseconds(stat.st_ctim);
  }
};

struct Clock : OnTheFileSystem {
  static constexpr int64_t kLongAgo = 1'000'000'000'123'456'789;

  // Sets the modification and access times to long ago. Then waits until new times are later than
  // the file's change time. The kernel sets times of files, and the file system sets times of
  // directories. The kernel's clock may be ahead by a part of a tick, so both clocks must have
  // advanced.
  Times Age(const std::string& name) {
    Set(name, kLongAgo, kLongAgo);
    const Times aged(Path(name));
    const std::string other = Path(".clock");
    const std::string stamped = Path(".clock.directory");
    const Descriptor file(other, O_RDWR | O_CREAT);
    static_cast<void>(mkdir(stamped.c_str(), 0700));
    for (bool passed = false; !passed;) {
      REQUIRE(WriteAt(file.get(), 0, AsBytes("tick")) == 0);
      passed = Times(other).modification > aged.change;
      REQUIRE(Outcome(chmod(stamped.c_str(), 0700)) == 0);
      passed = passed && Times(stamped).change > aged.change;
    }
    return aged;
  }
  void Set(const std::string& name, int64_t access, int64_t modification) const {
    const struct timespec times[2] = {{access / 1'000'000'000, access % 1'000'000'000},
                                      {modification / 1'000'000'000, modification % 1'000'000'000}};
    REQUIRE(Outcome(utimensat(AT_FDCWD, Path(name).c_str(), times, AT_SYMLINK_NOFOLLOW)) == 0);
  }
  // Returns which times of `name` the call `act` sets: "m" (modification), "c" (change), both or
  // none.
  std::string Stamped(const std::string& name, const std::function<int()>& act) {
    const Times before = Age(name);
    REQUIRE(act() == 0);
    const Times after(Path(name));
    std::string stamped;
    if (after.modification != before.modification) {
      // Compare with `>` and the old change time, because both clocks are coarse: one time may be a
      // tick behind the other.
      CHECK(after.modification > before.change);
      stamped += 'm';
    }
    if (after.change != before.change) {
      CHECK(after.change > before.change);
      stamped += 'c';
    }
    DropCaches();
    const Times stored(Path(name));
    CHECK(stored.modification == after.modification);
    CHECK(stored.change == after.change);
    return stamped;
  }
};

TEST_CASE_METHOD(Clock, "Times are kept to the nanosecond, before 1970 and after 2038, too") {
  REQUIRE(WriteFile(Path("file"), "") == 0);
  REQUIRE(Outcome(symlink("file", Path("link").c_str())) == 0);
  for (const char* name : {"file", "link"}) {
    for (const int64_t time : {int64_t{0}, int64_t{1}, kLongAgo, int64_t{4'102'444'800'999'999'999},
                               int64_t{8'589'934'592'000'000'001}}) {
      Set(name, time, time + 5);
      DropCaches();
      CHECK(Times(Path(name)).access == time);
      CHECK(Times(Path(name)).modification == time + 5);
    }
  }
  const struct timespec moon[2] = {{-14'182'940, 123'456'789}, {-1, 999'999'999}};
  REQUIRE(Outcome(utimensat(AT_FDCWD, Path("file").c_str(), moon, 0)) == 0);
  DropCaches();
  CHECK(StatOf(Path("file")).st_atim.tv_sec == -14'182'940);
  CHECK(StatOf(Path("file")).st_atim.tv_nsec == 123'456'789);
  CHECK(StatOf(Path("file")).st_mtim.tv_sec == -1);
  CHECK(StatOf(Path("file")).st_mtim.tv_nsec == 999'999'999);
}

TEST_CASE_METHOD(Clock, "A file's change time is not before its birth time") {
  // If siltfs took birth times from a finer clock than the kernel's, most new files would have a
  // change time before their birth time. A tick of the kernel's clock between the two times hides
  // this, so one file is not enough.
  for (int i = 0; i < 50; ++i) {
    const std::string path = Path("new" + std::to_string(i));
    REQUIRE(WriteFile(path, "content") == 0);
    struct statx about = {};
    REQUIRE(statx(AT_FDCWD, path.c_str(), AT_STATX_FORCE_SYNC, STATX_BASIC_STATS | STATX_BTIME,
                  &about) == 0);
    if ((about.stx_mask & STATX_BTIME) == 0) return;  // the kernel does not ask for birth times
    const auto nanoseconds = [](const struct statx_timestamp& time) {
      return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    };
    CHECK(nanoseconds(about.stx_btime) <= nanoseconds(about.stx_mtime));
    CHECK(nanoseconds(about.stx_btime) <= nanoseconds(about.stx_ctime));
    CHECK(nanoseconds(about.stx_mtime) <= nanoseconds(about.stx_ctime));
  }
}

TEST_CASE_METHOD(Clock, "One time can be kept, or set to now") {
  REQUIRE(WriteFile(Path("file"), "") == 0);
  const Times aged = Age("file");
  const struct timespec omit_access[2] = {{0, UTIME_OMIT}, {5, 6}};
  REQUIRE(Outcome(utimensat(AT_FDCWD, Path("file").c_str(), omit_access, 0)) == 0);
  CHECK(Times(Path("file")).access == kLongAgo);
  CHECK(Times(Path("file")).modification == 5'000'000'006);
  CHECK(Times(Path("file")).change > aged.change);
  const struct timespec access_now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  REQUIRE(Outcome(utimensat(AT_FDCWD, Path("file").c_str(), access_now, 0)) == 0);
  CHECK(Times(Path("file")).access > aged.change);
  CHECK(Times(Path("file")).modification == 5'000'000'006);
  const Times before(Path("file"));
  const struct timespec nothing[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
  REQUIRE(Outcome(utimensat(AT_FDCWD, Path("file").c_str(), nothing, 0)) == 0);
  CHECK(Times(Path("file")).change == before.change);
  const struct timespec nonsense[2] = {{0, 1'000'000'000}, {0, 0}};
  CHECK(Outcome(utimensat(AT_FDCWD, Path("file").c_str(), nonsense, 0)) == EINVAL);
}

TEST_CASE_METHOD(Clock, "Changes of a file's content set its modification and change times") {
  const std::string path = Path("file");
  REQUIRE(WriteFile(path, "content") == 0);
  const Descriptor file(path, O_RDWR);
  CHECK(Stamped("file", [&] { return WriteAt(file.get(), 3, AsBytes("x")); }) == "mc");
  CHECK(Stamped("file", [&] { return Outcome(ftruncate(file.get(), 3)); }) == "mc");
  CHECK(Stamped("file", [&] { return Outcome(ftruncate(file.get(), 3)); }) == "mc");
  CHECK(Stamped("file", [&] { return Outcome(truncate(path.c_str(), 100)); }) == "mc");
  CHECK(Stamped("file", [&] { return Descriptor(path, O_WRONLY | O_TRUNC).error(); }) == "mc");
  CHECK(Stamped("file", [&] { return Outcome(fallocate(file.get(), 0, 0, 5000)); }) == "mc");
  CHECK(Stamped("file", [&] {
          return Outcome(fallocate(file.get(), FALLOC_FL_ZERO_RANGE, 0, 100));
        }) == "mc");
  CHECK(Stamped("file", [&] {
          return Outcome(
              fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
        }) == "mc");
  REQUIRE(WriteFile(Path("source"), "some bytes") == 0);
  const Descriptor source(Path("source"), O_RDONLY);
  CHECK(Stamped("file", [&] {
          return Outcome(copy_file_range(source.get(), nullptr, file.get(), nullptr, 5, 0));
        }) == "mc");
}

TEST_CASE_METHOD(Clock, "An empty write and a read set neither modification nor change time") {
  REQUIRE(WriteFile(Path("file"), "content") == 0);
  const Descriptor file(Path("file"), O_RDWR);
  CHECK(Stamped("file", [&] { return Outcome(write(file.get(), "", 0)); }).empty());
  CHECK(Stamped("file", [&] { return ReadFile(Path("file")) == "content" ? 0 : 1; }).empty());
  CHECK(Stamped("file", [&] { return Outcome(fsync(file.get())); }).empty());
}

TEST_CASE_METHOD(Clock, "Changes of attributes and names set only the change time") {
  const std::string path = Path("file");
  REQUIRE(WriteFile(path, "content") == 0);
  CHECK(Stamped("file", [&] { return Outcome(chmod(path.c_str(), 0600)); }) == "c");
  CHECK(Stamped("file", [&] { return Outcome(chown(path.c_str(), 12, 13)); }) == "c");
  CHECK(Stamped("file", [&] { return Outcome(setxattr(path.c_str(), "user.a", "v", 1, 0)); }) ==
        "c");
  CHECK(Stamped("file", [&] { return Outcome(removexattr(path.c_str(), "user.a")); }) == "c");
  CHECK(Stamped("file", [&] { return Outcome(link(path.c_str(), Path("link").c_str())); }) == "c");
  CHECK(Stamped("file", [&] { return Outcome(unlink(Path("link").c_str())); }) == "c");
}

TEST_CASE_METHOD(
    Clock, "A new, moved or removed name sets the times of its directory, and of a moved object") {
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  REQUIRE(Outcome(mkdir(Path("e").c_str(), 0755)) == 0);
  const auto stamps = [&](const std::function<int()>& act) { return Stamped("d", act); };
  const std::string a = Path("d/a");
  const std::string b = Path("d/b");
  CHECK(stamps([&] { return WriteFile(a, ""); }) == "mc");
  CHECK(stamps([&] { return Outcome(link(a.c_str(), b.c_str())); }) == "mc");
  CHECK(stamps([&] { return Outcome(unlink(a.c_str())); }) == "mc");
  CHECK(stamps([&] { return Outcome(rename(b.c_str(), a.c_str())); }) == "mc");
  CHECK(stamps([&] { return Outcome(mkdir(b.c_str(), 0755)); }) == "mc");
  CHECK(stamps([&] { return Outcome(rmdir(b.c_str())); }) == "mc");
  CHECK(stamps([&] { return Outcome(symlink("x", b.c_str())); }) == "mc");
  CHECK(stamps([&] { return Outcome(mkfifo(Path("d/c").c_str(), 0600)); }) == "mc");
  CHECK(stamps([&] { return Outcome(rename(a.c_str(), Path("e/a").c_str())); }) == "mc");
  CHECK(stamps([&] { return Outcome(rename(Path("e/a").c_str(), a.c_str())); }) == "mc");
  CHECK(Stamped("e", [&] { return Outcome(rename(a.c_str(), Path("e/a").c_str())); }) == "mc");
  REQUIRE(Outcome(link(Path("e/a").c_str(), Path("other").c_str())) == 0);
  CHECK(Stamped("other", [&] { return Outcome(rename(Path("e/a").c_str(), a.c_str())); }) == "c");
  CHECK(stamps([&] { return WriteFile(a, "into a file that is there"); }).empty());
}

TEST_CASE_METHOD(Clock, "A failed call sets no times") {
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  REQUIRE(WriteFile(Path("d/a"), "") == 0);
  REQUIRE(Outcome(mkdir(Path("d/full").c_str(), 0755)) == 0);
  REQUIRE(WriteFile(Path("d/full/a"), "") == 0);
  CHECK(Stamped("d", [&] {
          const bool refused = Outcome(mkdir(Path("d/a").c_str(), 0755)) == EEXIST &&
                               Outcome(rmdir(Path("d/full").c_str())) == ENOTEMPTY &&
                               Outcome(unlink(Path("d/missing").c_str())) == ENOENT &&
                               Outcome(link(Path("d/a").c_str(), Path("d/full").c_str())) == EEXIST;
          return refused ? 0 : 1;
        }).empty());
}

TEST_CASE_METHOD(Clock, "All times of a new directory are the present time") {
  REQUIRE(WriteFile(Path("old"), "") == 0);
  const Times old = Age("old");
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  const Times directory_times(Path("d"));
  CHECK(directory_times.access == directory_times.modification);
  CHECK(directory_times.access == directory_times.change);
  CHECK(directory_times.change > old.change);
}

}  // namespace
}  // namespace siltfs::testing
