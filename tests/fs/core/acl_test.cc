// Access control lists and permission bits stay in step, across remounts and crashes.
#include <fmt/format.h>

#include "fs/interface/posix_acl.h"
#include "fs/open/store_layout.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/acl_text.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr Caller kMasked{.uid = 1000, .gid = 1000, .umask = 027};
// An access list for a directory that a group shares. Its mask grants everything.
constexpr const char* kShared = "u::rwx,u:1001:rwx,g::r-x,m::rwx,o::---";

struct Fixture {
  StoreFixture store;
  InodeNumber directory = 0;
  InodeNumber file = 0;

  Fixture() {
    store.env().SetClock(100);
    store.Open();
    directory = MakeDir(fs(), kRootInode, "d");
    file = MakeFile(fs(), kRootInode, "f");
    store.env().SetClock(200);
  }
  FileSystem& fs() { return store.fs(); }

  Status Set(InodeNumber inode, std::string_view name, std::string_view text,
             XattrMode mode = XattrMode::kSet) {
    return fs().SetXattr(inode, name, AclFromText(text), mode);
  }
  Status SetAccess(InodeNumber inode, std::string_view text) {
    return Set(inode, kAccessAclName, text);
  }
  Status SetDefault(InodeNumber inode, std::string_view text) {
    return Set(inode, kDefaultAclName, text);
  }
  // Returns the list as text, or "none" without a list.
  std::string Get(InodeNumber inode, std::string_view name) {
    auto value = fs().GetXattr(inode, name);
    if (value.status().Is(StatusCode::kNoAttribute)) return "none";
    REQUIRE_OK(value);
    return AclToText(*value);
  }
  std::string Access(InodeNumber inode) { return Get(inode, kAccessAclName); }
  std::string Default(InodeNumber inode) { return Get(inode, kDefaultAclName); }
  uint32_t Mode(InodeNumber inode) {
    auto attributes = fs().GetAttributes(inode);
    REQUIRE_OK(attributes);
    return attributes->mode;
  }
  void ChangeMode(InodeNumber inode, uint32_t mode) {
    AttributeChange change;
    change.mode = mode;
    REQUIRE_OK(fs().SetAttributes(inode, change));
  }
  InodeNumber Made(const Result<Attributes>& made) {
    REQUIRE_OK(made);
    fs().Forget(made->inode, 1);
    return made->inode;
  }
  InodeNumber Create(std::string_view name, uint32_t mode, Caller caller = kMasked) {
    const InodeNumber inode = Made(fs().CreateFile(directory, name, mode, caller));
    fs().ReleaseFile(inode);
    return inode;
  }
  InodeNumber MakeSubdirectory(std::string_view name, uint32_t mode) {
    return Made(fs().MakeDirectory(directory, name, mode, kMasked));
  }
  uint64_t CountedXattrs() {
    store.Close();
    const uint64_t xattrs = RecountStore(store.path()).xattrs;  // checks each inode's count, too
    store.Open();
    return xattrs;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "setting an access list sets the permission bits with it") {
  ChangeMode(file, 04600);
  REQUIRE_OK(SetAccess(file, "u::rw-,u:1001:rwx,g::---,m::r-x,o::--x"));
  REQUIRE(Mode(file) == 0104651);
  REQUIRE(fs().GetAttributes(file)->ctime == 200);
  REQUIRE(fs().GetAttributes(file)->mtime == 100);
  REQUIRE(CountedXattrs() == 1);
  REQUIRE(Mode(file) == 0104651);
  REQUIRE(Access(file) == "u::rw-,u:1001:rwx,g::---,m::r-x,o::--x");
  REQUIRE(*fs().ListXattrs(file) == std::vector<std::string>{std::string(kAccessAclName)});
  REQUIRE_OK(SetAccess(file, "u::r--,g::r--,m::r--,o::r--"));  // replaces
  REQUIRE(Mode(file) == 0104444);
  REQUIRE(CountedXattrs() == 1);
}

TEST_CASE_METHOD(Fixture, "a list and its permission bits reach the disk together or not at all") {
  REQUIRE_OK(fs().SyncAll());
  REQUIRE_OK(SetAccess(file, kShared));
  bool kept = GENERATE(false, true);
  if (kept) REQUIRE_OK(fs().Fsync(file));
  store.Crash();
  store.Open();
  REQUIRE(Access(file) == (kept ? kShared : "none"));
  REQUIRE(Mode(file) == (kept ? 0100770 : 0100644));
}

TEST_CASE_METHOD(Fixture, "an access list equivalent to permission bits is not stored") {
  REQUIRE_OK(SetAccess(file, "u::rwx,g::r-x,o::---"));
  REQUIRE(Mode(file) == 0100750);
  REQUIRE(Access(file) == "none");
  REQUIRE(CountedXattrs() == 0);
  REQUIRE_OK(SetAccess(file, kShared));
  REQUIRE(CountedXattrs() == 1);
  REQUIRE_OK(SetAccess(file, "u::rw-,g::r--,o::r--"));
  REQUIRE(Mode(file) == 0100644);
  REQUIRE(Access(file) == "none");
  REQUIRE(CountedXattrs() == 0);
}

TEST_CASE_METHOD(Fixture,
                 "removing an access list keeps the permission bits, and needs no list to exist") {
  REQUIRE_OK(SetAccess(file, kShared));
  REQUIRE_OK(fs().RemoveXattr(file, kAccessAclName));
  REQUIRE(Mode(file) == 0100770);
  REQUIRE(Access(file) == "none");
  REQUIRE_OK(fs().RemoveXattr(file, kAccessAclName));
  REQUIRE_OK(fs().RemoveXattr(directory, kDefaultAclName));
  REQUIRE(CountedXattrs() == 0);
}

TEST_CASE_METHOD(Fixture, "a malformed list changes nothing") {
  REQUIRE_OK(SetAccess(file, kShared));
  REQUIRE_CODE(SetAccess(file, "u::---,u:1:rwx,g::---,o::---"), kInvalidArgument);
  REQUIRE_CODE(fs().SetXattr(file, kAccessAclName, "", XattrMode::kSet), kInvalidArgument);
  REQUIRE_CODE(SetDefault(directory, "u::rwx"), kInvalidArgument);
  REQUIRE(Access(file) == kShared);
  REQUIRE(Mode(file) == 0100770);
  REQUIRE(Default(directory) == "none");
  REQUIRE(CountedXattrs() == 1);
}

TEST_CASE_METHOD(Fixture, "only directories have default lists, and links have none at all") {
  REQUIRE_CODE(SetDefault(file, kShared), kAccessDenied);
  const InodeNumber link = Made(fs().MakeSymlink(kRootInode, "l", "f", kMasked));
  REQUIRE_CODE(SetAccess(link, kShared), kUnsupported);
  REQUIRE_CODE(SetDefault(link, kShared), kUnsupported);
  REQUIRE(Mode(link) == 0120777);
  REQUIRE_OK(SetDefault(directory, "u::rwx,g::r-x,o::---"));  // stored although a mode is
                                                              // equivalent
  REQUIRE(Default(directory) == "u::rwx,g::r-x,o::---");
  REQUIRE(Mode(directory) == 040755);
}

TEST_CASE_METHOD(Fixture, "an access list clears the set-group-ID bit only on request") {
  ChangeMode(file, 02755);
  REQUIRE_OK(SetAccess(file, kShared));
  REQUIRE(Mode(file) == 0102770);
  SECTION("a list that is stored") {
    REQUIRE_OK(Set(file, kAccessAclName, kShared, XattrMode::kSetWithoutSetGid));
    REQUIRE(Mode(file) == 0100770);
  }
  SECTION("a list that is not stored") {
    REQUIRE_OK(Set(file, kAccessAclName, "u::rwx,g::r-x,o::---", XattrMode::kSetWithoutSetGid));
    REQUIRE(Mode(file) == 0100750);
  }
  SECTION("a default list does not clear it") {
    ChangeMode(directory, 02755);
    REQUIRE_OK(Set(directory, kDefaultAclName, kShared, XattrMode::kSetWithoutSetGid));
    REQUIRE(Mode(directory) == 042755);
  }
}

TEST_CASE_METHOD(Fixture, "changing permission bits changes the access list with them") {
  REQUIRE_OK(SetAccess(file, "u::rwx,u:1001:rwx,g::r-x,g:7:r--,m::rwx,o::---"));
  REQUIRE_OK(fs().SyncAll());
  ChangeMode(file, 04641);
  REQUIRE(Mode(file) == 0104641);
  REQUIRE(Access(file) == "u::rw-,u:1001:rwx,g::r-x,g:7:r--,m::r--,o::--x");
  REQUIRE(CountedXattrs() == 1);
  REQUIRE(Access(file) == "u::rw-,u:1001:rwx,g::r-x,g:7:r--,m::r--,o::--x");
  ChangeMode(file, 0777);
  store.Crash();  // neither mode nor list was committed
  store.Open();
  REQUIRE(Mode(file) == 0104641);
  REQUIRE(Access(file) == "u::rw-,u:1001:rwx,g::r-x,g:7:r--,m::r--,o::--x");
  AttributeChange owner;
  owner.uid = 5;
  REQUIRE_OK(fs().SetAttributes(file, owner));
  REQUIRE(Access(file) == "u::rw-,u:1001:rwx,g::r-x,g:7:r--,m::r--,o::--x");
}

TEST_CASE_METHOD(Fixture, "a default list is not touched by permission bits") {
  REQUIRE_OK(SetDefault(directory, kShared));
  ChangeMode(directory, 0700);
  REQUIRE(Default(directory) == kShared);
  REQUIRE(Access(directory) == "none");
}

TEST_CASE_METHOD(Fixture, "without a default list the umask applies") {
  if (GENERATE(false, true)) {
    REQUIRE_OK(fs().SetXattr(directory, "user.other", "", XattrMode::kSet));
  }
  REQUIRE(Mode(Create("a", 0666)) == 0100640);
  REQUIRE(Mode(MakeSubdirectory("s", 01777)) == 041750);
  REQUIRE(Mode(Made(fs().MakeNode(directory, "p", 0010666, 0, kMasked))) == 0010640);
  REQUIRE(Mode(Made(fs().MakeSymlink(directory, "l", "a", kMasked))) == 0120777);
  REQUIRE(Access(Made(fs().Lookup(directory, "a"))) == "none");
}

TEST_CASE_METHOD(Fixture, "new entries inherit a default list, which replaces the umask") {
  REQUIRE_OK(SetDefault(directory, kShared));
  if (GENERATE(false, true)) store.Reopen();
  const InodeNumber made = Create("a", 0666);
  REQUIRE(Mode(made) == 0100660);
  REQUIRE(Access(made) == "u::rw-,u:1001:rwx,g::r-x,m::rw-,o::---");
  REQUIRE(Default(made) == "none");

  const InodeNumber node = Made(fs().MakeNode(directory, "p", 0010664, 0, kMasked));
  REQUIRE(Mode(node) == 0010660);
  REQUIRE(Access(node) == "u::rw-,u:1001:rwx,g::r-x,m::rw-,o::---");

  const InodeNumber sub = MakeSubdirectory("s", 01755);
  REQUIRE(Mode(sub) == 041750);
  REQUIRE(Access(sub) == "u::rwx,u:1001:rwx,g::r-x,m::r-x,o::---");
  REQUIRE(Default(sub) == kShared);

  const InodeNumber link = Made(fs().MakeSymlink(directory, "l", "a", kMasked));
  REQUIRE(Mode(link) == 0120777);
  REQUIRE(Access(link) == "none");

  // A directory in `sub` inherits the same list. After a remount (CountedXattrs), so does a
  // directory in `below`.
  const InodeNumber below = Made(fs().MakeDirectory(sub, "t", 0777, kMasked));
  REQUIRE(Default(below) == kShared);
  REQUIRE(CountedXattrs() == 1 + 1 + 1 + 2 + 2);
  REQUIRE(Access(sub) == "u::rwx,u:1001:rwx,g::r-x,m::r-x,o::---");
  REQUIRE(Mode(Made(fs().MakeDirectory(below, "v", 0777, kMasked))) == 040770);
}

TEST_CASE_METHOD(Fixture, "a new entry stores no access list equivalent to its permission bits") {
  REQUIRE_OK(SetDefault(directory, "u::rwx,g::rwx,o::---"));
  const InodeNumber made = Create("a", 0664);
  REQUIRE(Mode(made) == 0100660);
  REQUIRE(Access(made) == "none");
  const InodeNumber sub = MakeSubdirectory("s", 0777);
  REQUIRE(Mode(sub) == 040770);
  REQUIRE(Access(sub) == "none");
  REQUIRE(Default(sub) == "u::rwx,g::rwx,o::---");
  REQUIRE(CountedXattrs() == 2);
}

TEST_CASE_METHOD(Fixture, "a new entry gets the current default list") {
  REQUIRE(Mode(Create("none yet", 0666)) == 0100640);
  REQUIRE_OK(SetDefault(directory, "u::rwx,g::rwx,o::rwx"));
  REQUIRE(Mode(Create("first", 0666)) == 0100666);
  REQUIRE_OK(SetDefault(directory, "u::rwx,g::---,o::---"));
  REQUIRE(Mode(Create("second", 0666)) == 0100600);
  REQUIRE_OK(fs().RemoveXattr(directory, kDefaultAclName));
  REQUIRE(Mode(Create("none any more", 0666)) == 0100640);
  REQUIRE_OK(fs().SetXattr(directory, "user.other", "", XattrMode::kSet));
  REQUIRE(Mode(Create("known to have none", 0666)) == 0100640);
  REQUIRE_OK(SetDefault(directory, "u::rwx,g::rwx,o::rwx"));
  REQUIRE(Mode(Create("last", 0666)) == 0100666);
}

TEST_CASE_METHOD(Fixture, "a default list is ignored if lists are not enforced") {
  REQUIRE_OK(SetDefault(directory, kShared));
  Caller caller = kMasked;
  caller.acls = false;
  const InodeNumber made = Create("a", 0666, caller);
  REQUIRE(Mode(made) == 0100640);
  REQUIRE(Access(made) == "none");
}

TEST_CASE_METHOD(Fixture,
                 "a set-group-ID directory passes on its group and the bit, and its default list") {
  ChangeMode(directory, 02777);
  AttributeChange owner;
  owner.gid = 77;
  REQUIRE_OK(fs().SetAttributes(directory, owner));
  REQUIRE_OK(SetDefault(directory, kShared));
  const InodeNumber sub = MakeSubdirectory("s", 0777);
  REQUIRE(Mode(sub) == 042770);
  REQUIRE(fs().GetAttributes(sub)->gid == 77);
}

namespace {

// Closes the store, writes the mutations to its metadata, and opens the store again.
void WriteByHand(StoreFixture& store, const std::vector<Mutation>& mutations) {
  store.Close();
  auto kv = OpenRocksDbStore(
      store.env(), {.path = MetadataPath(store.path()), .ledger_path = LedgerPath(store.path())});
  REQUIRE_OK(kv);
  REQUIRE_OK((*kv)->Write(mutations));
  REQUIRE_OK((*kv)->CloseCleanly());
  store.Open();
}

}  // namespace

TEST_CASE_METHOD(Fixture, "a directory without extended attributes is not searched for a list") {
  // The store becomes inconsistent: the directory has a default list, but its inode counts no
  // attributes.
  WriteByHand(store, {{XattrKey(directory, kDefaultAclName), AclFromText(kShared)}});
  REQUIRE(Mode(Create("a", 0666)) == 0100640);
}

TEST_CASE_METHOD(Fixture, "a damaged list is reported as such, and nothing is made or changed") {
  REQUIRE_OK(SetDefault(directory, kShared));
  REQUIRE_OK(SetAccess(file, kShared));
  WriteByHand(store, {{XattrKey(directory, kDefaultAclName), "damaged"},
                      {XattrKey(file, kAccessAclName), "damaged"}});
  REQUIRE_CODE(fs().CreateFile(directory, "a", 0644, kCaller), kCorruption);
  REQUIRE_CODE(fs().Lookup(directory, "a"), kNotFound);
  AttributeChange change;
  change.mode = 0600;
  REQUIRE_CODE(fs().SetAttributes(file, change), kCorruption);
  REQUIRE(Mode(file) == 0100770);
  REQUIRE_OK(SetAccess(file, "u::rw-,g::---,o::---"));  // a new list fixes it
  REQUIRE_OK(SetDefault(directory, kShared));
  REQUIRE(Mode(file) == 0100600);
  REQUIRE(Mode(Create("a", 0666)) == 0100660);
}

TEST_CASE_METHOD(Fixture, "extended attributes' names fit a listing of 64 KiB") {
  const auto name = [](int i) { return fmt::format("user.{:0>250}", i); };  // 255 bytes
  for (int i = 0; i < 256; ++i) REQUIRE_OK(fs().SetXattr(file, name(i), "", XattrMode::kSet));
  REQUIRE_CODE(fs().SetXattr(file, "user.x", "", XattrMode::kSet), kNoSpace);
  REQUIRE_CODE(SetAccess(file, kShared), kNoSpace);
  REQUIRE(Mode(file) == 0100644);
  REQUIRE_OK(SetAccess(file, "u::rwx,g::---,o::---"));  // not stored, so it needs no name
  REQUIRE(Mode(file) == 0100700);
  REQUIRE_OK(fs().SetXattr(file, name(7), "replaced", XattrMode::kSet));
  REQUIRE_OK(fs().RemoveXattr(file, name(7)));
  REQUIRE_OK(fs().SetXattr(file, "user.x", "", XattrMode::kSet));
  REQUIRE(fs().ListXattrs(file)->size() == 256);
  for (int i = 0; i < 300; ++i)
    REQUIRE_OK(fs().SetXattr(directory, fmt::format("user.{}", i), "", XattrMode::kSet));
}

}  // namespace siltfs::testing
