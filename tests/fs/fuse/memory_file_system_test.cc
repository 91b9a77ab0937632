// Tests of the in-memory file system itself: properties that the mount tests cannot see through the
// kernel.
#include "tests/support/memory_file_system.h"

#include <sys/stat.h>

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr Caller kCaller{.uid = 1, .gid = 2};

struct Fixture {
  int64_t now = 1000;
  MemoryFileSystem fs{[this] { return now++; }};

  InodeNumber File(const std::string& name) {
    auto made = fs.MakeNode(kRootInode, name, S_IFREG | 0644, 0, kCaller);
    REQUIRE_OK(made);
    return made->inode;
  }
  InodeNumber Directory(InodeNumber parent, const std::string& name) {
    auto made = fs.MakeDirectory(parent, name, 0755, kCaller);
    REQUIRE_OK(made);
    return made->inode;
  }
};

TEST_CASE_METHOD(Fixture, "An inode without names exists while it is looked up or open") {
  const InodeNumber inode = File("a");
  REQUIRE_OK(fs.OpenFile(inode, false));
  REQUIRE_OK(fs.Unlink(kRootInode, "a"));
  REQUIRE_OK(fs.Write(inode, 0, AsBytes("still here")));
  fs.Forget(inode, 1);
  CHECK(fs.InodeCount() == 2);
  fs.ReleaseFile(inode);
  CHECK(fs.InodeCount() == 1);
  REQUIRE_CODE(fs.GetAttributes(inode), kStale);
}

TEST_CASE_METHOD(Fixture, "Inode numbers are not reused") {
  const InodeNumber first = File("a");
  REQUIRE_OK(fs.Unlink(kRootInode, "a"));
  fs.Forget(first, 1);
  CHECK(File("a") != first);
}

TEST_CASE_METHOD(Fixture, "A directory cannot move into itself") {
  const InodeNumber outer = Directory(kRootInode, "outer");
  const InodeNumber inner = Directory(outer, "inner");
  REQUIRE_CODE(fs.Rename(kRootInode, "outer", inner, "x", RenameMode::kReplace), kInvalidArgument);
  REQUIRE_CODE(fs.Rename(outer, "inner", kRootInode, "outer", RenameMode::kExchange),
               kInvalidArgument);
}

TEST_CASE_METHOD(Fixture, "Link counts follow moves of directories") {
  const InodeNumber one = Directory(kRootInode, "one");
  const InodeNumber two = Directory(kRootInode, "two");
  Directory(one, "child");
  CHECK(fs.GetAttributes(one)->links == 3);
  REQUIRE_OK(fs.Rename(one, "child", two, "child", RenameMode::kReplace));
  CHECK(fs.GetAttributes(one)->links == 2);
  CHECK(fs.GetAttributes(two)->links == 3);
  Directory(one, "empty");
  REQUIRE_OK(fs.Rename(two, "child", one, "empty", RenameMode::kReplace));
  CHECK(fs.GetAttributes(one)->links == 3);
  CHECK(fs.GetAttributes(two)->links == 2);
  CHECK(fs.GetAttributes(kRootInode)->links == 4);
}

TEST_CASE_METHOD(Fixture,
                 "A listing continues after a cookie although entries are made and removed") {
  for (const char* name : {"a", "b", "c", "d"}) File(name);
  uint64_t cookie = 0;
  std::string seen;
  const auto read = [&](size_t count) {
    REQUIRE_OK(fs.ReadDirectory(kRootInode, cookie, [&](const DirectoryRecord& record) {
      if (count-- == 0) return false;
      seen += record.name;
      cookie = record.cookie;
      return true;
    }));
  };
  read(4);
  CHECK(seen == "...ab");
  REQUIRE_OK(fs.Unlink(kRootInode, "b"));
  REQUIRE_OK(fs.Unlink(kRootInode, "c"));
  File("e");
  read(10);
  CHECK(seen == "...abde");
}

TEST_CASE_METHOD(Fixture, "Truncated data does not come back") {
  const InodeNumber inode = File("a");
  REQUIRE_OK(fs.Write(inode, 0, Bytes(5000, 7)));
  AttributeChange change;
  change.size = 100;
  REQUIRE_OK(fs.SetAttributes(inode, change));
  change.size = 5000;
  REQUIRE_OK(fs.SetAttributes(inode, change));
  Bytes back(6000);
  CHECK(*fs.Read(inode, 0, back) == 5000);
  CHECK(back[99] == 7);
  CHECK(back[100] == 0);
  CHECK(back[4999] == 0);
}

TEST_CASE_METHOD(Fixture, "Holes take no space") {
  const InodeNumber inode = File("a");
  REQUIRE_OK(fs.Write(inode, kMaxFileBytes - 10, Bytes(10, 1)));
  CHECK(fs.GetAttributes(inode)->size == kMaxFileBytes);
  CHECK(fs.GetAttributes(inode)->allocated_bytes <= MemoryFileSystem::kPageBytes);
  CHECK(fs.GetAttributes(inode)->allocated_bytes > 0);
  REQUIRE_CODE(fs.Write(inode, kMaxFileBytes, Bytes(1, 1)), kFileTooLarge);
}

TEST_CASE_METHOD(Fixture, "A temporary file exists while it is open, or permanently with a name") {
  const auto lost = fs.MakeTemporaryFile(kRootInode, 0600, kCaller);
  const auto kept = fs.MakeTemporaryFile(kRootInode, 0600, kCaller);
  REQUIRE_OK(lost);
  REQUIRE_OK(kept);
  CHECK(kept->links == 0);
  CHECK(fs.Link(kept->inode, kRootInode, "a")->links == 1);
  for (const InodeNumber inode : {lost->inode, kept->inode}) {
    fs.ReleaseFile(inode);
    fs.Forget(inode, 2);
  }
  CHECK(fs.InodeCount() == 2);
  CHECK(fs.Lookup(kRootInode, "a")->inode == kept->inode);
  const auto closed = fs.MakeTemporaryFile(kRootInode, 0600, kCaller);
  fs.ReleaseFile(closed->inode);
  REQUIRE_CODE(fs.Link(closed->inode, kRootInode, "b"), kNotFound);
}

TEST_CASE_METHOD(Fixture, "A number can be looked up as \".\", and its parent as \"..\"") {
  const InodeNumber directory = Directory(kRootInode, "d");
  const InodeNumber inode = File("a");
  CHECK(fs.Lookup(inode, ".")->inode == inode);
  CHECK(fs.LookupCount(inode) == 2);
  CHECK(fs.Lookup(directory, "..")->inode == kRootInode);
  REQUIRE_CODE(fs.Lookup(inode, ".."), kNotADirectory);
  REQUIRE_OK(fs.Unlink(kRootInode, "a"));
  REQUIRE_CODE(fs.Lookup(inode, "."), kStale);
}

TEST_CASE_METHOD(Fixture, "Privileges are removed as requested") {
  const InodeNumber inode = File("a");
  AttributeChange change;
  change.mode = 06755;
  REQUIRE_OK(fs.SetAttributes(inode, change));
  REQUIRE_OK(fs.SetXattr(inode, "security.capability", "x", XattrMode::kSet));
  REQUIRE_OK(fs.Write(inode, 0, Bytes(1), Privileges::kKeep));
  REQUIRE_OK(fs.GetXattr(inode, "security.capability"));
  REQUIRE_OK(fs.Write(inode, 0, Bytes(1), Privileges::kDropCapability));
  REQUIRE_CODE(fs.GetXattr(inode, "security.capability"), kNoAttribute);
  CHECK(fs.GetAttributes(inode)->mode == (S_IFREG | 06755));
  REQUIRE_OK(fs.SetXattr(inode, "security.capability", "x", XattrMode::kSet));
  REQUIRE_OK(fs.OpenFile(inode, /*truncate=*/true));
  REQUIRE_CODE(fs.GetXattr(inode, "security.capability"), kNoAttribute);
  CHECK(fs.GetAttributes(inode)->mode == (S_IFREG | 06755));
  fs.ReleaseFile(inode);
  REQUIRE_OK(fs.Write(inode, 0, Bytes(1), Privileges::kDropAll));
  CHECK(fs.GetAttributes(inode)->mode == (S_IFREG | 0755));
}

TEST_CASE_METHOD(Fixture, "A set-group-id directory passes its group on") {
  auto directory = fs.MakeDirectory(kRootInode, "shared", 02775, {.uid = 1, .gid = 77});
  REQUIRE_OK(directory);
  CHECK(fs.MakeNode(directory->inode, "file", S_IFREG | 0644, 0, kCaller)->gid == 77);
  const auto inner = fs.MakeDirectory(directory->inode, "inner", 0755, kCaller);
  CHECK(inner->gid == 77);
  CHECK((inner->mode & S_ISGID) != 0);
}

}  // namespace
}  // namespace siltfs::testing
