// Access control lists: the kernel enforces them, and the core stores them.
#include <grp.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <cstdlib>
#include <set>

#include "tests/fs/core/store_fixture.h"
#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/acl_text.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kAccess = "system.posix_acl_access";
constexpr const char* kDefault = "system.posix_acl_default";

// Users and groups have the same numbers. They do not exist on the system.
constexpr uid_t kOwner = 4001;
constexpr uid_t kFriend = 4002;
constexpr uid_t kStranger = 4003;
constexpr gid_t kTeam = 4100;

MountOptions ForAll(bool no_xattrs = false) {
  MountOptions options;
  options.allow_other = true;
  options.no_xattrs = no_xattrs;
  return options;
}

// Runs `act` in a child process as `user`, whose group has the same number. If `extra` is not 0, it
// is an additional group. Returns what `act` returns, an errno. `act` may only make system calls.
template <typename Action>
int As(uid_t user, gid_t extra, Action act) {
  const pid_t child = fork();
  if (child == 0) {
    const bool changed =
        setgroups(extra == 0 ? 0 : 1, &extra) == 0 && setgid(user) == 0 && setuid(user) == 0;
    _exit(changed ? act() : 255);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}
template <typename Action>
int As(uid_t user, Action act) {
  return As(user, 0, act);
}

class Mounted {
 public:
  explicit Mounted(bool no_xattrs = false)
      : mount_(store_.Open(), ForAll(no_xattrs), Descriptors::kShared) {
    REQUIRE(Outcome(chmod(mount_.path().c_str(), 0777)) == 0);
  }

  std::string operator/(const std::string& name) const { return mount_ / name; }
  MountedFileSystem& mount() { return mount_; }

 private:
  StoreFixture store_;
  MountedFileSystem mount_;
};

int SetAcl(const std::string& path, const char* name, std::string_view text) {
  const std::string value = AclFromText(text);
  return Outcome(setxattr(path.c_str(), name, value.data(), value.size(), 0));
}

// Returns the list as text, or "none" without a list.
std::string GetAcl(const std::string& path, const char* name) {
  char value[4096];
  const ssize_t size = getxattr(path.c_str(), name, value, sizeof value);
  if (size < 0 && errno == ENODATA) return "none";
  REQUIRE(size >= 0);
  return AclToText({value, static_cast<size_t>(size)});
}

std::set<std::string> Names(const char* list, ssize_t size) {
  std::set<std::string> names;
  for (const char* at = list; at < list + size; at += std::char_traits<char>::length(at) + 1)
    names.insert(at);
  return names;
}

mode_t ModeOf(const std::string& path) { return StatOf(path).st_mode & 07777; }

struct Fixture : Mounted {
  std::string file = *this / "file";

  Fixture() {
    REQUIRE(WriteFile(file, "secret") == 0);
    REQUIRE(Outcome(chown(file.c_str(), kOwner, kOwner)) == 0);
    REQUIRE(Outcome(chmod(file.c_str(), 0600)) == 0);
  }
  int OpenAs(uid_t user, gid_t extra, int flags) const {
    return As(user, extra, [&] { return open(file.c_str(), flags) < 0 ? errno : 0; });
  }
  int OpenAs(uid_t user, int flags) const { return OpenAs(user, 0, flags); }
};

TEST_CASE_METHOD(Fixture, "A named user gets the rights of the list, and no other user does") {
  REQUIRE(OpenAs(kFriend, O_RDONLY) == EACCES);
  REQUIRE(SetAcl(file, kAccess, "u::rw-,u:4002:r--,g::---,m::r--,o::---") == 0);
  CHECK(OpenAs(kFriend, O_RDONLY) == 0);
  CHECK(OpenAs(kFriend, O_RDWR) == EACCES);
  CHECK(OpenAs(kOwner, O_RDWR) == 0);
  CHECK(OpenAs(kStranger, O_RDONLY) == EACCES);
  CHECK(ModeOf(file) == 0640);  // the group bits show the mask
  mount().DropCaches();
  CHECK(OpenAs(kFriend, O_RDONLY) == 0);
  CHECK(OpenAs(kStranger, O_RDONLY) == EACCES);
  CHECK(GetAcl(file, kAccess) == "u::rw-,u:4002:r--,g::---,m::r--,o::---");
}

TEST_CASE_METHOD(Fixture, "A named group gets the rights of the list") {
  REQUIRE(SetAcl(file, kAccess, "u::rw-,g::---,g:4100:rw-,m::rw-,o::---") == 0);
  CHECK(OpenAs(kStranger, kTeam, O_RDWR) == 0);
  CHECK(OpenAs(kStranger, O_RDONLY) == EACCES);
  // The owning group has no access although the mode's group bits say so.
  CHECK(ModeOf(file) == 0660);
  CHECK(OpenAs(kStranger, kOwner, O_RDONLY) == EACCES);
}

TEST_CASE_METHOD(Fixture,
                 "The mask limits named users and groups, and a new mode changes the mask") {
  REQUIRE(SetAcl(file, kAccess, "u::rw-,u:4002:rw-,g::---,m::r--,o::---") == 0);
  CHECK(OpenAs(kFriend, O_RDWR) == EACCES);
  CHECK(OpenAs(kFriend, O_RDONLY) == 0);
  REQUIRE(Outcome(chmod(file.c_str(), 0660)) == 0);
  CHECK(OpenAs(kFriend, O_RDWR) == 0);
  CHECK(GetAcl(file, kAccess) == "u::rw-,u:4002:rw-,g::---,m::rw-,o::---");
  REQUIRE(Outcome(chmod(file.c_str(), 0614)) == 0);
  // The friend has no access although others have it. (With 0604 Linux would not read the list at
  // all.)
  CHECK(OpenAs(kFriend, O_RDONLY) == EACCES);
  CHECK(OpenAs(kStranger, O_RDONLY) == 0);
  CHECK(GetAcl(file, kAccess) == "u::rw-,u:4002:rw-,g::---,m::--x,o::r--");
}

TEST_CASE_METHOD(Fixture, "A list can be removed") {
  REQUIRE(SetAcl(file, kAccess, "u::rw-,u:4002:rw-,g::r--,m::rw-,o::---") == 0);
  SECTION("by a list that is equivalent to a mode, as setfacl -b does") {
    REQUIRE(SetAcl(file, kAccess, "u::rw-,g::r--,o::---") == 0);
    CHECK(ModeOf(file) == 0640);
  }
  SECTION("by its removal") { REQUIRE(Outcome(removexattr(file.c_str(), kAccess)) == 0); }
  SECTION("by a list without entries") { REQUIRE(SetAcl(file, kAccess, "") == 0); }
  CHECK(GetAcl(file, kAccess) == "none");
  CHECK(OpenAs(kFriend, O_RDWR) == EACCES);
  CHECK(Outcome(removexattr(file.c_str(), kAccess)) == 0);  // not an error without a list, as on
                                                            // ext4
  char list[256];
  CHECK(listxattr(file.c_str(), list, sizeof list) == 0);
}

TEST_CASE_METHOD(Fixture,
                 "Only the owner may set a list, and only a valid one in the right place") {
  const std::string list = AclFromText("u::rw-,u:4002:rw-,g::---,m::rw-,o::---");
  const auto set = [&] {
    return setxattr(file.c_str(), kAccess, list.data(), list.size(), 0) < 0 ? errno : 0;
  };
  CHECK(As(kStranger, set) == EPERM);
  CHECK(As(kOwner, set) == 0);
  CHECK(SetAcl(file, kAccess, "u::rw-,u:4002:rw-,g::---,o::---") == EINVAL);
  CHECK(SetAcl(file, kDefault, "u::rw-,g::---,o::---") == EACCES);
  REQUIRE(Outcome(symlink("file", (*this / "link").c_str())) == 0);
  CHECK(Outcome(lsetxattr((*this / "link").c_str(), kAccess, list.data(), list.size(), 0)) ==
        EOPNOTSUPP);
}

TEST_CASE_METHOD(Fixture, "A list with the kernel's maximum of entries is kept and enforced") {
  const auto list_of = [](int named) {
    std::string text = "u::rw-";
    for (int i = 0; i < named; ++i) text += fmt::format(",u:{}:r--", kFriend + 1 + named - i);
    return text + ",u:4002:r--,g::---,m::r--,o::---";
  };
  const int most = (4096 - 4) / 8 - 5;
  REQUIRE(SetAcl(file, kAccess, list_of(most)) == 0);
  mount().DropCaches();
  CHECK(GetAcl(file, kAccess) == list_of(most));
  CHECK(OpenAs(kFriend, O_RDONLY) == 0);
  CHECK(OpenAs(kFriend - 2, O_RDONLY) == EACCES);
}

TEST_CASE_METHOD(Fixture, "Lists are listed among the attributes, so that copies include them") {
  const std::string directory = *this / "d";
  REQUIRE(Outcome(mkdir(directory.c_str(), 0755)) == 0);
  REQUIRE(SetAcl(directory, kAccess, "u::rwx,u:4002:rwx,g::r-x,m::rwx,o::---") == 0);
  REQUIRE(SetAcl(directory, kDefault, "u::rwx,g::r-x,o::---") == 0);
  REQUIRE(Outcome(setxattr(directory.c_str(), "user.other", "1", 1, 0)) == 0);
  char list[256];
  const ssize_t size = listxattr(directory.c_str(), list, sizeof list);
  CHECK(Names(list, size) == std::set<std::string>{kAccess, kDefault, "user.other"});
  // Copies every value to another directory, as cp -a does; the result is equal.
  const std::string copy = *this / "copy";
  REQUIRE(Outcome(mkdir(copy.c_str(), 0700)) == 0);
  for (const std::string& name : Names(list, size)) {
    char value[4096];
    const ssize_t bytes = getxattr(directory.c_str(), name.c_str(), value, sizeof value);
    REQUIRE(bytes >= 0);
    REQUIRE(Outcome(setxattr(copy.c_str(), name.c_str(), value, static_cast<size_t>(bytes), 0)) ==
            0);
  }
  mount().DropCaches();
  CHECK(ModeOf(copy) == 0770);
  CHECK(GetAcl(copy, kAccess) == GetAcl(directory, kAccess));
  CHECK(GetAcl(copy, kDefault) == GetAcl(directory, kDefault));
}

TEST_CASE_METHOD(Fixture, "A default list is inherited, and the umask is then ignored") {
  const std::string shared = *this / "shared";
  REQUIRE(Outcome(mkdir(shared.c_str(), 0777)) == 0);
  REQUIRE(SetAcl(shared, kDefault, "u::rwx,u:4002:rwx,g::r-x,m::rwx,o::---") == 0);
  const std::string made = shared + "/made";
  const std::string node = shared + "/node";
  const std::string directory = shared + "/directory";
  const std::string below = directory + "/below";
  REQUIRE(As(kOwner, [&] {
            umask(077);
            const bool all = close(open(made.c_str(), O_WRONLY | O_CREAT, 0666)) == 0 &&
                             mknod(node.c_str(), S_IFIFO | 0666, 0) == 0 &&
                             mkdir(directory.c_str(), 0777) == 0 &&
                             close(open(below.c_str(), O_WRONLY | O_CREAT, 0640)) == 0;
            return all ? 0 : errno;
          }) == 0);
  CHECK(ModeOf(made) == 0660);
  CHECK(GetAcl(made, kAccess) == "u::rw-,u:4002:rwx,g::r-x,m::rw-,o::---");
  CHECK(GetAcl(node, kAccess) == "u::rw-,u:4002:rwx,g::r-x,m::rw-,o::---");
  CHECK(ModeOf(directory) == 0770);
  CHECK(GetAcl(directory, kDefault) == "u::rwx,u:4002:rwx,g::r-x,m::rwx,o::---");
  CHECK(GetAcl(below, kAccess) == "u::rw-,u:4002:rwx,g::r-x,m::r--,o::---");
  file = made;
  CHECK(OpenAs(kFriend, O_RDWR) == 0);
  CHECK(OpenAs(kStranger, O_RDONLY) == EACCES);
  file = below;
  CHECK(OpenAs(kFriend, O_RDONLY) == 0);
  CHECK(OpenAs(kFriend, O_RDWR) == EACCES);
  mount().DropCaches();
  CHECK(OpenAs(kFriend, O_RDONLY) == 0);
  CHECK(OpenAs(kFriend, O_RDWR) == EACCES);
}

// Checks the modes of objects that a user with umask 027 makes in `directory`, each with all
// permissions.
void CheckUmask(const std::string& directory) {
  const std::string made = directory + "/made";
  const std::string node = directory + "/node";
  const std::string sub = directory + "/sub";
  const std::string link = directory + "/link";
  REQUIRE(As(kOwner, [&] {
            umask(027);
            const bool all = close(open(made.c_str(), O_WRONLY | O_CREAT, 0666)) == 0 &&
                             mknod(node.c_str(), S_IFIFO | 0666, 0) == 0 &&
                             mkdir(sub.c_str(), 0777) == 0 && symlink("made", link.c_str()) == 0;
            return all ? 0 : errno;
          }) == 0);
  CHECK(ModeOf(made) == 0640);
  CHECK(ModeOf(node) == 0640);
  CHECK(ModeOf(sub) == 0750);
  CHECK(ModeOf(link) == 0777);
}

TEST_CASE_METHOD(Fixture, "Without a default list the umask counts") {
  const std::string directory = *this / "d";
  REQUIRE(Outcome(mkdir(directory.c_str(), 0777)) == 0);
  CheckUmask(directory);
}

TEST_CASE("Without extended attributes there are no lists, and the umask counts") {
  Mounted mounted(/*no_xattrs=*/true);
  CheckUmask((mounted / ".").c_str());
  CHECK(SetAcl(mounted / "made", kAccess, "u::rw-,u:4002:rw-,g::---,m::rw-,o::---") == EOPNOTSUPP);
  CHECK(GetAcl(mounted / "made", kAccess) == "none");
}

TEST_CASE("A mount without extended attributes ignores a stored default list") {
  StoreFixture store;
  store.Open();
  REQUIRE_OK(store.fs().SetXattr(kRootInode, kDefault,
                                 AclFromText("u::rwx,u:4002:rwx,g::---,m::rwx,o::rwx"),
                                 XattrMode::kSet));
  {
    MountedFileSystem mount(store.fs(), ForAll(/*no_xattrs=*/true));
    REQUIRE(Outcome(chmod(mount.path().c_str(), 0777)) == 0);
    CheckUmask(mount.path());
  }
}

TEST_CASE_METHOD(Fixture, "Setting a list removes set-group-ID if the caller is not in the group") {
  const std::string list = AclFromText("u::rwx,u:4002:r-x,g::r-x,m::r-x,o::---");
  const auto set = [&] {
    return setxattr(file.c_str(), kAccess, list.data(), list.size(), 0) < 0 ? errno : 0;
  };
  const auto make = [&] {
    REQUIRE(Outcome(chown(file.c_str(), kOwner, kTeam)) == 0);
    REQUIRE(Outcome(chmod(file.c_str(), 02750)) == 0);
    REQUIRE(ModeOf(file) == 02750);
  };
  make();
  CHECK(As(kOwner, set) == 0);
  CHECK(ModeOf(file) == 0750);
  make();
  CHECK(As(kOwner, kTeam, set) == 0);  // a member of the group
  CHECK(ModeOf(file) == 02750);
  make();
  CHECK(set() == 0);  // root
  CHECK(ModeOf(file) == 02750);
}

}  // namespace
}  // namespace siltfs::testing
