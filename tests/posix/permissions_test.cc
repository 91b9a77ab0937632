// Permissions: access by other users, sticky and set-group-id directories, changes of modes and
// owners.
#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Users : OnTheFileSystem {
  mode_t Mode(const std::string& name) const { return StatOf(Path(name)).st_mode & 07777; }
  void MakeFile(const std::string& name, uid_t uid, gid_t gid, mode_t mode) const {
    REQUIRE(WriteFile(Path(name), "content") == 0);
    Own(name, uid, gid, mode);
  }
  void MakeDirectory(const std::string& name, uid_t uid, gid_t gid, mode_t mode) const {
    REQUIRE(Outcome(mkdir(Path(name).c_str(), 0700)) == 0);
    Own(name, uid, gid, mode);
  }
  void Own(const std::string& name, uid_t uid, gid_t gid, mode_t mode) const {
    REQUIRE(Outcome(chown(Path(name).c_str(), uid, gid)) == 0);
    REQUIRE(Outcome(chmod(Path(name).c_str(), mode)) == 0);
  }
  int Open(const std::string& name, int flags) const {
    return Descriptor(Path(name), flags).error();
  }
};

TEST_CASE_METHOD(Users, "Reading and writing follow owner, group and others") {
  MakeFile("file", kAlice, kUsers, 0640);
  CHECK(As(kAlice, kUsers, [&] { return Open("file", O_RDWR); }) == 0);
  CHECK(As(kBob, kUsers, [&] { return Open("file", O_RDONLY); }) == 0);
  CHECK(As(kBob, kUsers, [&] { return Open("file", O_WRONLY); }) == EACCES);
  CHECK(As(kBob, kBob, [&] { return Open("file", O_RDONLY); }) == EACCES);
  CHECK(As(kBob, kBob, [&] { return Outcome(access(Path("file").c_str(), F_OK)); }) == 0);
  CHECK(As(kBob, kBob, [&] { return Outcome(access(Path("file").c_str(), R_OK)); }) == EACCES);
  CHECK(As(kBob, kBob, [&] { return Outcome(truncate(Path("file").c_str(), 0)); }) == EACCES);
  // The first matching class (owner, group, others) decides. If it has no access, another class
  // does not give access.
  MakeFile("odd", kAlice, kUsers, 0077);
  CHECK(As(kAlice, kUsers, [&] { return Open("odd", O_RDONLY); }) == EACCES);
  CHECK(As(kBob, kUsers, [&] { return Open("odd", O_RDWR); }) == 0);
}

TEST_CASE_METHOD(Users,
                 "A change of the mode takes effect at once for a user that has read it before") {
  MakeFile("file", kAlice, kUsers, 0644);
  CHECK(As(kBob, kBob, [&] { return Open("file", O_RDONLY); }) == 0);
  REQUIRE(Outcome(chmod(Path("file").c_str(), 0600)) == 0);
  CHECK(As(kBob, kBob, [&] { return Open("file", O_RDONLY); }) == EACCES);
}

TEST_CASE_METHOD(Users, "Directories: x to pass, r to list, w and x to change") {
  MakeDirectory("d", kAlice, kUsers, 0700);
  MakeFile("d/file", kBob, kBob, 0644);
  const auto bob = [&](const std::function<int()>& body) { return As(kBob, kBob, body); };
  CHECK(bob([&] { return Open("d/file", O_RDONLY); }) == EACCES);
  REQUIRE(Outcome(chmod(Path("d").c_str(), 0711)) == 0);
  CHECK(bob([&] { return Open("d/file", O_RDONLY); }) == 0);
  CHECK(bob([&] { return Open("d", O_RDONLY | O_DIRECTORY); }) == EACCES);
  CHECK(bob([&] { return Outcome(unlink(Path("d/file").c_str())); }) == EACCES);
  CHECK(bob([&] { return Open("d/new", O_WRONLY | O_CREAT); }) == EACCES);
  CHECK(bob([&] { return Outcome(mkdir(Path("d/new").c_str(), 0755)); }) == EACCES);
  CHECK(bob([&] { return Outcome(symlink("x", Path("d/new").c_str())); }) == EACCES);
  CHECK(bob([&] { return Outcome(rename(Path("d/file").c_str(), Path("f").c_str())); }) == EACCES);
  REQUIRE(Outcome(chmod(Path("d").c_str(), 0773)) == 0);
  CHECK(bob([&] { return Outcome(link(Path("d/file").c_str(), Path("d/l").c_str())); }) == 0);
  CHECK(bob([&] { return Outcome(unlink(Path("d/file").c_str())); }) == 0);
}

TEST_CASE_METHOD(Users, "In a sticky directory users remove only their own files") {
  MakeDirectory("sticky", 0, 0, 01777);
  MakeFile("sticky/alices", kAlice, kUsers, 0666);
  MakeFile("sticky/bobs", kBob, kUsers, 0666);
  MakeDirectory("sticky/alices-directory", kAlice, kUsers, 0777);
  const auto bob = [&](const std::function<int()>& body) { return As(kBob, kUsers, body); };
  const std::string alices = Path("sticky/alices");
  const std::string bobs = Path("sticky/bobs");
  CHECK(bob([&] { return Outcome(unlink(alices.c_str())); }) == EPERM);
  CHECK(bob([&] { return Outcome(rename(alices.c_str(), Path("sticky/x").c_str())); }) == EPERM);
  CHECK(bob([&] { return Outcome(rename(bobs.c_str(), alices.c_str())); }) == EPERM);
  CHECK(bob([&] { return Outcome(rmdir(Path("sticky/alices-directory").c_str())); }) == EPERM);
  CHECK(ReadFile(alices) == "content");
  CHECK(bob([&] { return Outcome(rename(bobs.c_str(), Path("sticky/x").c_str())); }) == 0);
  CHECK(As(kAlice, kUsers, [&] { return Outcome(unlink(alices.c_str())); }) == 0);
  // The owner of the directory may remove everything.
  Own("sticky", kBob, kUsers, 01777);
  CHECK(bob([&] { return Outcome(rmdir(Path("sticky/alices-directory").c_str())); }) == 0);
}

TEST_CASE_METHOD(Users, "New files belong to their creator, with the umask applied") {
  MakeDirectory("d", 0, 0, 0777);
  REQUIRE(As(kAlice, kUsers, [&] {
            umask(027);
            if (open(Path("d/file").c_str(), O_CREAT | O_WRONLY, 0666) < 0) return errno;
            if (mkdir(Path("d/sub").c_str(), 0777) != 0) return errno;
            if (mkfifo(Path("d/fifo").c_str(), 0666) != 0) return errno;
            return Outcome(symlink("x", Path("d/link").c_str()));
          }) == 0);
  for (const char* name : {"d/file", "d/sub", "d/fifo", "d/link"}) {
    CHECK(StatOf(Path(name)).st_uid == kAlice);
    CHECK(StatOf(Path(name)).st_gid == kUsers);
  }
  CHECK(Mode("d/file") == 0640);
  CHECK(Mode("d/sub") == 0750);
  CHECK(Mode("d/fifo") == 0640);
  CHECK(Mode("d/link") == 0777);
}

TEST_CASE_METHOD(Users, "In a set-group-id directory its group is inherited") {
  MakeDirectory("d", 0, kUsers, 02777);
  REQUIRE(As(kAlice, kAlice, [&] {
            if (open(Path("d/file").c_str(), O_CREAT | O_WRONLY, 0666) < 0) return errno;
            if (mkfifo(Path("d/fifo").c_str(), 0666) != 0) return errno;
            if (symlink("x", Path("d/link").c_str()) != 0) return errno;
            return Outcome(mkdir(Path("d/sub").c_str(), 0755));
          }) == 0);
  for (const char* name : {"d/file", "d/fifo", "d/link", "d/sub"}) {
    CHECK(StatOf(Path(name)).st_uid == kAlice);
    CHECK(StatOf(Path(name)).st_gid == kUsers);
  }
  CHECK(Mode("d/file") == 0666);
  CHECK(Mode("d/sub") == 02755);
}

TEST_CASE_METHOD(Users,
                 "Only the owner changes the mode, and the set-group-id bit only if in the group") {
  MakeFile("file", kAlice, kUsers, 0644);
  const std::string path = Path("file");
  CHECK(As(kBob, kUsers, [&] { return Outcome(chmod(path.c_str(), 0666)); }) == EPERM);
  CHECK(As(kAlice, kUsers, [&] { return Outcome(chmod(path.c_str(), 06755)); }) == 0);
  CHECK(Mode("file") == 06755);
  CHECK(As(kAlice, kAlice, [&] { return Outcome(chmod(path.c_str(), 02755)); }) == 0);
  CHECK(Mode("file") == 0755);  // the owner is not in the file's group
  CHECK(Outcome(chmod(path.c_str(), 01644)) == 0);
  CHECK(Mode("file") == 01644);
}

TEST_CASE_METHOD(Users, "Only the superuser gives files away") {
  MakeFile("file", kAlice, kUsers, 0644);
  const std::string path = Path("file");
  CHECK(As(kAlice, kUsers, [&] { return Outcome(chown(path.c_str(), kBob, -1U)); }) == EPERM);
  CHECK(As(kAlice, kUsers, [&] { return Outcome(chown(path.c_str(), -1U, kBob)); }) == EPERM);
  CHECK(As(kBob, kUsers, [&] { return Outcome(chown(path.c_str(), -1U, kUsers)); }) == EPERM);
  CHECK(As(kAlice, kAlice, [&] { return Outcome(chown(path.c_str(), kAlice, kAlice)); }) == 0);
  CHECK(StatOf(path).st_gid == kAlice);
  CHECK(Outcome(chown(path.c_str(), kBob, -1U)) == 0);
  CHECK(StatOf(path).st_uid == kBob);
  CHECK(StatOf(path).st_gid == kAlice);
  REQUIRE(Outcome(symlink("file", Path("link").c_str())) == 0);
  CHECK(Outcome(lchown(Path("link").c_str(), kAlice, kUsers)) == 0);
  CHECK(StatOf(Path("link")).st_uid == kAlice);
  CHECK(StatOf(path).st_uid == kBob);
}

TEST_CASE_METHOD(Users, "A change of owner removes the set-id bits") {
  for (const bool root : {false, true}) {
    const std::string name = root ? "by-root" : "by-owner";
    MakeFile(name, kAlice, kUsers, 06755);
    const auto change = [&] { return Outcome(chown(Path(name).c_str(), kAlice, kUsers)); };
    CHECK((root ? change() : As(kAlice, kUsers, change)) == 0);
    CHECK(Mode(name) == 0755);
  }
  // Without x for the group, the set-group-id bit gives no rights. So the bit may stay.
  MakeFile("lockable", kAlice, kUsers, 02644);
  CHECK(Outcome(chown(Path("lockable").c_str(), kBob, -1U)) == 0);
  CHECK((Mode("lockable") & 04777) == 0644);
}

TEST_CASE_METHOD(Users, "A write by another user removes the set-id bits") {
  const auto bob = [&](const std::string& name, const std::function<int(int)>& change) {
    MakeFile(name, kAlice, kUsers, 06777);
    CHECK(As(kBob, kBob, [&] {
            const Descriptor file(Path(name), O_RDWR);
            return file.error() != 0 ? file.error() : change(file.get());
          }) == 0);
    CHECK(Mode(name) == 0777);
    DropCaches();
    CHECK(Mode(name) == 0777);
  };
  bob("written", [](int fd) { return WriteAt(fd, 3, AsBytes("x")); });
  bob("truncated", [](int fd) { return Outcome(ftruncate(fd, 2)); });
  bob("allocated", [](int fd) { return Outcome(fallocate(fd, 0, 0, 10'000)); });
  bob("opened", [&](int) { return Open("opened", O_WRONLY | O_TRUNC); });
}

TEST_CASE_METHOD(Users, "Write access without ownership allows setting times only to now") {
  MakeFile("file", kAlice, kUsers, 0666);
  const std::string path = Path("file");
  const auto set = [&](const struct timespec* times) {
    return Outcome(utimensat(AT_FDCWD, path.c_str(), times, 0));
  };
  const struct timespec past[2] = {{1000, 0}, {1000, 0}};
  CHECK(As(kBob, kBob, [&] { return set(past); }) == EPERM);
  CHECK(As(kBob, kBob, [&] { return set(nullptr); }) == 0);
  CHECK(As(kAlice, kUsers, [&] { return set(past); }) == 0);
  REQUIRE(Outcome(chmod(path.c_str(), 0644)) == 0);
  CHECK(As(kBob, kBob, [&] { return set(nullptr); }) == EACCES);
}

}  // namespace
}  // namespace siltfs::testing
