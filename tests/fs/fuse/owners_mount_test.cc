// The mount options uid=, gid= and umask= through the kernel: what is shown, what is stored, and
// which rights count.
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

constexpr uid_t kShownUser = 4001;
constexpr gid_t kShownGroup = 4002;
constexpr uid_t kStranger = 4003;

MountOptions Showing(const OwnerMapping& owners) {
  MountOptions options;
  options.allow_other = true;
  options.owners = owners;
  return options;
}

// Runs `act` as `user`, whose group has the same number. Returns what `act` returns, an errno.
template <typename Action>
int As(uid_t user, Action act) {
  const pid_t child = fork();
  if (child == 0) _exit(setgid(user) == 0 && setuid(user) == 0 ? act() : 255);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int OpenOutcome(const std::string& path, int flags) {
  return open(path.c_str(), flags, 0600) < 0 ? errno : 0;
}

// A store whose root directory all users may change, with a file of user 12.
struct Stored {
  MemoryFileSystem fs;
  InodeNumber file = 0;

  Stored() {
    AttributeChange open_to_all;
    open_to_all.mode = 01777;
    REQUIRE_OK(fs.SetAttributes(kRootInode, open_to_all));
    auto made = fs.CreateFile(kRootInode, "file", 04751, {.uid = 12, .gid = 34});
    REQUIRE_OK(made);
    file = made->inode;
    fs.ReleaseFile(file);
  }
  Attributes Now(InodeNumber inode) {
    auto attributes = fs.GetAttributes(inode);
    REQUIRE_OK(attributes);
    return *attributes;
  }
  Attributes Named(const std::string& name) {
    auto attributes = fs.Lookup(kRootInode, name);
    REQUIRE_OK(attributes);
    fs.Forget(attributes->inode, 1);
    return *attributes;
  }
};

TEST_CASE("All files show the owners and the permission bits of the mount") {
  Stored stored;
  MountedFileSystem mount(stored.fs,
                          Showing({.uid = kShownUser, .gid = kShownGroup, .umask = 027}));
  REQUIRE(Outcome(mkdir((mount / "directory").c_str(), 0700)) == 0);
  REQUIRE(Outcome(symlink("file", (mount / "link").c_str())) == 0);
  const auto check = [&](const std::string& name, mode_t mode) {
    CAPTURE(name);
    const struct stat shown = StatOf(mount / name);
    CHECK(shown.st_mode == mode);
    CHECK(shown.st_uid == kShownUser);
    CHECK(shown.st_gid == kShownGroup);
    struct statx extended = {};
    REQUIRE(Outcome(statx(AT_FDCWD, (mount / name).c_str(), AT_SYMLINK_NOFOLLOW,
                          STATX_BASIC_STATS | STATX_BTIME, &extended)) == 0);
    CHECK(extended.stx_mode == mode);
    CHECK(extended.stx_uid == kShownUser);
    CHECK(extended.stx_gid == kShownGroup);
  };
  for (int round = 0; round < 2; ++round) {
    check(".", S_IFDIR | 0750);
    check("file", S_IFREG | 0750);
    check("directory", S_IFDIR | 0750);
    check("link", S_IFLNK | 0750);
    mount.DropCaches();
  }
  // The listing brings attributes, too.
  DIR* const listing = opendir(mount.path().c_str());
  REQUIRE(listing != nullptr);
  while (const dirent* entry = readdir(listing)) {
    if (std::string_view(entry->d_name) == "..") continue;
    CHECK(StatOf(mount / entry->d_name).st_uid == kShownUser);
  }
  closedir(listing);
}

TEST_CASE("Changes of owners and permission bits are stored and not shown") {
  Stored stored;
  MountedFileSystem mount(stored.fs,
                          Showing({.uid = kShownUser, .gid = kShownGroup, .umask = 022}));
  const std::string file = mount / "file";
  REQUIRE(Outcome(chmod(file.c_str(), 0640)) == 0);
  REQUIRE(Outcome(chown(file.c_str(), 56, 78)) == 0);
  CHECK(StatOf(file).st_mode == (S_IFREG | 0755));
  CHECK(StatOf(file).st_uid == kShownUser);
  CHECK(stored.Now(stored.file).mode == (S_IFREG | 0640));
  CHECK(stored.Now(stored.file).uid == 56);
  CHECK(stored.Now(stored.file).gid == 78);
  // The shown owner may change the mode, and no other user may.
  CHECK(As(kShownUser, [&] { return Outcome(chmod(file.c_str(), 0600)); }) == 0);
  CHECK(stored.Now(stored.file).mode == (S_IFREG | 0600));
  CHECK(As(56, [&] { return Outcome(chmod(file.c_str(), 0777)); }) == EPERM);
}

TEST_CASE("The shown owner cannot give a file the rights of its stored owner") {
  Stored stored;
  // As() gives the user this group, too. Without the group, the kernel clears set-group-ID.
  MountedFileSystem mount(stored.fs, Showing({.uid = kShownUser, .gid = kShownUser, .umask = {}}));
  const std::string file = mount / "file";
  CHECK(As(kShownUser, [&] { return Outcome(chmod(file.c_str(), 06755)); }) == 0);
  CHECK(stored.Now(stored.file).mode == (S_IFREG | 0755));
  REQUIRE(Outcome(chmod(file.c_str(), 06755)) == 0);  // the superuser can
  CHECK(stored.Now(stored.file).mode == (S_IFREG | 06755));
  const std::string directory = mount / "directory";
  REQUIRE(Outcome(mkdir(directory.c_str(), 0700)) == 0);
  CHECK(As(kShownUser, [&] { return Outcome(chmod(directory.c_str(), 02755)); }) == 0);
  CHECK(stored.Named("directory").mode == (S_IFDIR | 02755));
}

// Makes a file with these bits in a directory, which passes its group on.
int MakeOutcome(const std::string& path, mode_t mode) {
  const bool node = path.ends_with("node");
  if (node) return Outcome(mknod(path.c_str(), S_IFREG | mode, 0));
  return Outcome(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, mode) < 0 ? -1 : 0);
}

TEST_CASE("A new file does not get the rights of the group that its directory passes on") {
  Stored stored;
  const auto made = stored.fs.MakeDirectory(kRootInode, "shared", 02777, {.uid = 12, .gid = 34});
  REQUIRE_OK(made);
  AttributeChange passes_on;
  passes_on.mode = 02777;
  REQUIRE_OK(stored.fs.SetAttributes(made->inode, passes_on));
  OwnerMapping owners;
  SECTION("that seems to be the user's") { owners.gid = kShownUser; }
  SECTION("that is not seen to pass its group on") { owners.umask = 0; }
  MountedFileSystem mount(stored.fs, Showing(owners));
  for (const char* const name : {"file", "node"}) {
    CAPTURE(name);
    const std::string path = mount / "shared/" + name;
    REQUIRE(As(kShownUser, [&] { return MakeOutcome(path, 02755); }) == 0);
    const auto file = stored.fs.Lookup(made->inode, name);
    REQUIRE_OK(file);
    stored.fs.Forget(file->inode, 1);
    CHECK(file->gid == 34);
    CHECK(file->mode == (S_IFREG | 0755));
    REQUIRE(MakeOutcome(path + "-of-superuser-" + name, 02755) == 0);
    const auto trusted =
        stored.fs.Lookup(made->inode, name + ("-of-superuser-" + std::string(name)));
    REQUIRE_OK(trusted);
    stored.fs.Forget(trusted->inode, 1);
    CHECK(trusted->mode == (S_IFREG | 02755));
  }
}

TEST_CASE("A write removes set-id bits that are not shown") {
  Stored stored;
  AttributeChange privileged;
  privileged.mode = 06755;
  OwnerMapping owners;
  SECTION("of the owner") {
    owners.uid = kShownUser;
    privileged.mode = 04755;
  }
  SECTION("of both") { owners = {.uid = kShownUser, .gid = kShownUser, .umask = {}}; }
  SECTION("because all bits are replaced") { owners.umask = 0; }
  REQUIRE_OK(stored.fs.SetAttributes(stored.file, privileged));
  MountedFileSystem mount(stored.fs, Showing(owners));
  const std::string file = mount / "file";
  CHECK((StatOf(file).st_mode & S_ISUID) == 0);
  CHECK(As(kShownUser, [&] { return OpenOutcome(file, O_RDONLY); }) == 0);
  CHECK(stored.Now(stored.file).mode == (S_IFREG | *privileged.mode));
  const auto write = [&] {
    const int opened = open(file.c_str(), O_WRONLY);
    return Outcome(opened >= 0 && pwrite(opened, "evil", 4, 0) == 4 && fsync(opened) == 0 ? 0 : -1);
  };
  CHECK(As(kShownUser, write) == 0);
  CHECK(stored.Now(stored.file).mode == (S_IFREG | 0755));
  CHECK((StatOf(file).st_mode & (S_ISUID | S_ISGID)) == 0);
}

TEST_CASE("Permissions are those of the shown owners and bits") {
  Stored stored;
  AttributeChange closed;
  closed.mode = 0;
  REQUIRE_OK(stored.fs.SetAttributes(stored.file, closed));
  MountedFileSystem mount(stored.fs, Showing({.uid = kShownUser, .gid = {}, .umask = 077}));
  CHECK(As(kShownUser, [&] { return OpenOutcome(mount / "file", O_RDWR); }) == 0);
  CHECK(As(kStranger, [&] { return OpenOutcome(mount / "file", O_RDONLY); }) == EACCES);
  CHECK(As(12, [&] { return OpenOutcome(mount / "file", O_RDONLY); }) == EACCES);
}

TEST_CASE("A new file is stored with its real user and mode") {
  Stored stored;
  MountedFileSystem mount(stored.fs, Showing({.uid = kShownUser, .gid = kShownGroup, .umask = 0}));
  REQUIRE(As(kStranger, [&] { return OpenOutcome(mount / "new", O_WRONLY | O_CREAT); }) == 0);
  CHECK(StatOf(mount / "new").st_uid == kShownUser);
  CHECK(StatOf(mount / "new").st_mode == (S_IFREG | 0777));
  CHECK(stored.Named("new").uid == kStranger);
  CHECK(stored.Named("new").gid == kStranger);
  CHECK(stored.Named("new").mode == (S_IFREG | 0600));
}

TEST_CASE("A file does not run with the rights of an owner that it only seems to have") {
  Stored stored;
  AttributeChange privileged;
  privileged.mode = 06751;
  REQUIRE_OK(stored.fs.SetAttributes(stored.file, privileged));
  {
    MountedFileSystem mount(stored.fs, Showing({.uid = 0, .gid = {}, .umask = {}}));
    CHECK(StatOf(mount / "file").st_mode == (S_IFREG | 02751));
  }
  {
    MountedFileSystem mount(stored.fs, Showing({.uid = {}, .gid = 0, .umask = {}}));
    CHECK(StatOf(mount / "file").st_mode == (S_IFREG | 04751));
    CHECK(StatOf(mount / "file").st_uid == 12);
    CHECK(StatOf(mount / "file").st_gid == 0);
  }
  MountedFileSystem mount(stored.fs, Showing({.uid = {}, .gid = {}, .umask = 0}));
  CHECK(StatOf(mount / "file").st_mode == (S_IFREG | 0777));
}

}  // namespace
}  // namespace siltfs::testing
