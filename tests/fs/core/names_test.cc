// Names, links, removal and directory walks.
#include <fmt/format.h>

#include <map>
#include <set>

#include "fs/interface/entry_store.h"
#include "store/base/random.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kSetGid = 02000;

Attributes Stat(FileSystem& fs, InodeNumber inode) {
  auto attributes = fs.GetAttributes(inode);
  REQUIRE_OK(attributes);
  return *attributes;
}

}  // namespace

TEST_CASE("names are valid as in POSIX") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const std::string longest(kMaxNameBytes, 'n');
  const std::string too_long(kMaxNameBytes + 1, 'n');
  for (std::string_view name : {"", ".", "..", "a/b"}) {
    INFO("name \"" << name << "\"");
    REQUIRE_CODE(fs.CreateFile(kRootInode, name, 0644, kCaller), kInvalidArgument);
    REQUIRE_CODE(fs.MakeDirectory(kRootInode, name, 0755, kCaller), kInvalidArgument);
  }
  REQUIRE_CODE(fs.CreateFile(kRootInode, too_long, 0644, kCaller), kNameTooLong);
  REQUIRE_CODE(fs.Lookup(kRootInode, too_long), kNameTooLong);
  REQUIRE_CODE(fs.Unlink(kRootInode, too_long), kNameTooLong);
  const InodeNumber file = MakeFile(fs, kRootInode, longest);
  REQUIRE(*Resolve(fs, longest) == file);
  REQUIRE_CODE(fs.Link(file, kRootInode, too_long), kNameTooLong);
  // All other names are valid, with any bytes.
  for (std::string_view name : {" ", "\xff\xfe", "a\nb", "...", "-"})
    MakeFile(fs, kRootInode, name);
  REQUIRE(ListNames(fs, kRootInode) ==
          std::vector<std::string>{longest, " ", "\xff\xfe", "a\nb", "...", "-"});
  store.Close();
  RecountStore(store.path());
}

TEST_CASE("a name is taken until it is removed") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = MakeFile(fs, kRootInode, "a");
  REQUIRE_CODE(fs.CreateFile(kRootInode, "a", 0644, kCaller), kAlreadyExists);
  REQUIRE_CODE(fs.MakeDirectory(kRootInode, "a", 0755, kCaller), kAlreadyExists);
  REQUIRE_CODE(fs.MakeSymlink(kRootInode, "a", "x", kCaller), kAlreadyExists);
  REQUIRE_CODE(fs.Link(file, kRootInode, "a"), kAlreadyExists);
  REQUIRE_CODE(fs.RemoveDirectory(kRootInode, "a"), kNotADirectory);
  REQUIRE_CODE(fs.Lookup(file, "x"), kNotADirectory);
  REQUIRE_CODE(fs.CreateFile(file, "x", 0644, kCaller), kNotADirectory);
  REQUIRE_CODE(fs.Unlink(file, "x"), kNotADirectory);
  REQUIRE_OK(fs.Unlink(kRootInode, "a"));
  REQUIRE_CODE(fs.Unlink(kRootInode, "a"), kNotFound);
  REQUIRE_CODE(fs.Lookup(kRootInode, "a"), kNotFound);
  REQUIRE(MakeFile(fs, kRootInode, "a") != file);  // inode numbers are not used again
}

// A directory that was made since the store was opened knows which names it lacks.
TEST_CASE("a new directory has each name that was entered in any way") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber other = MakeDir(fs, kRootInode, "other");
  const InodeNumber file = MakeFile(fs, other, "file");
  MakeFile(fs, other, "moved");
  MakeDir(fs, other, "subdirectory");
  const InodeNumber directory = MakeDir(fs, kRootInode, "new");
  std::set<std::string> names = {"directory", "linked", "moved", "subdirectory", "symlink", "put"};
  REQUIRE_CODE(fs.Lookup(directory, "linked"), kNotFound);
  REQUIRE_OK(fs.Link(file, directory, "linked"));
  REQUIRE_OK(fs.Rename(other, "moved", directory, "moved", RenameMode::kReplace));
  REQUIRE_OK(fs.Rename(other, "subdirectory", directory, "subdirectory", RenameMode::kNoReplace));
  REQUIRE_OK(fs.MakeSymlink(directory, "symlink", "target", kCaller));
  MakeDir(fs, directory, "directory");
  const EntryImage image{.parent = directory, .name = "put", .mode = 0120777, .target = "x"};
  const auto put = fs.entries().Put({&image, 1});
  REQUIRE_OK(put[0]);
  for (int i = 0; i < 1500; ++i) {
    const std::string name = fmt::format("file {}", i);
    MakeFile(fs, directory, name);
    if (i % 100 == 0 || i > 1400) names.insert(name);
    if (i % 3 == 0) REQUIRE_CODE(fs.Lookup(directory, name + "x"), kNotFound);
    if (i > 900 && i < 1100) REQUIRE_OK(Resolve(fs, "new/" + name));
  }
  for (const std::string& name : names) {
    INFO(name);
    REQUIRE_OK(Resolve(fs, "new/" + name));
    REQUIRE_CODE(fs.CreateFile(directory, name, 0644, kCaller), kAlreadyExists);
  }
  REQUIRE_OK(fs.Unlink(directory, "linked"));
  REQUIRE_CODE(fs.Lookup(directory, "linked"), kNotFound);
  MakeFile(fs, directory, "linked");
  REQUIRE_OK(Resolve(fs, "new/linked"));
  store.Close();
  RecountStore(store.path());
}

TEST_CASE("an inode number finds its inode and the parent, or reports that the inode is gone") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber outer = MakeDir(fs, kRootInode, "outer");
  const InodeNumber inner = MakeDir(fs, outer, "inner");
  const InodeNumber file = MakeFile(fs, inner, "file");
  const auto found = [&fs](InodeNumber number, std::string_view name) {
    auto attributes = fs.Lookup(number, name);
    REQUIRE_OK(attributes);
    return attributes->inode;
  };
  for (const InodeNumber number : {kRootInode, inner, file}) {
    REQUIRE(found(number, ".") == number);
    fs.Forget(number, 1);
  }
  REQUIRE(found(inner, "..") == outer);
  REQUIRE(found(outer, "..") == kRootInode);
  REQUIRE(found(kRootInode, "..") == kRootInode);
  fs.Forget(outer, 1);
  fs.Forget(kRootInode, 2);
  REQUIRE_CODE(fs.Lookup(file, ".."), kNotADirectory);
  REQUIRE_OK(fs.Rename(outer, "inner", kRootInode, "moved", RenameMode::kReplace));
  REQUIRE(found(inner, "..") == kRootInode);
  fs.Forget(kRootInode, 1);

  // Each call counts as a lookup, so the inode stays.
  REQUIRE_OK(fs.Lookup(file, "."));
  REQUIRE_OK(fs.Unlink(inner, "file"));
  REQUIRE(Stat(fs, file).links == 0);
  REQUIRE_CODE(fs.Lookup(file, "."), kStale);  // although the inode still exists while it is in use
  fs.Forget(file, 1);
  REQUIRE_CODE(fs.Lookup(file, "."), kStale);
  auto removed = fs.Lookup(inner, ".");
  REQUIRE_OK(removed);
  REQUIRE_OK(fs.RemoveDirectory(kRootInode, "moved"));
  REQUIRE_CODE(fs.Lookup(inner, "."), kStale);
  REQUIRE_CODE(fs.Lookup(inner, ".."), kNotFound);
  fs.Forget(inner, 1);
  const InodeNumber parent = MakeDir(fs, outer, "p");
  REQUIRE_OK(fs.Lookup(MakeDir(fs, parent, "q"), ".."));
  REQUIRE_OK(fs.RemoveDirectory(parent, "q"));
  REQUIRE_OK(fs.RemoveDirectory(outer, "p"));
  REQUIRE(Stat(fs, parent).links == 0);
  fs.Forget(parent, 1);
  REQUIRE_CODE(fs.GetAttributes(parent), kStale);
  store.Close();
  REQUIRE(RecountStore(store.path()).orphans == 0);
}

TEST_CASE("only an empty directory can be removed, and nothing can be made in it afterwards") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  auto made = fs.MakeDirectory(kRootInode, "d", 0755, kCaller);
  REQUIRE_OK(made);
  const InodeNumber dir = made->inode;
  MakeFile(fs, dir, "x");
  const InodeNumber outside = MakeFile(fs, kRootInode, "outside");
  REQUIRE(Stat(fs, kRootInode).links == 3);
  REQUIRE_CODE(fs.Unlink(kRootInode, "d"), kIsADirectory);
  REQUIRE_CODE(fs.RemoveDirectory(kRootInode, "d"), kNotEmpty);
  REQUIRE_OK(fs.Unlink(dir, "x"));
  REQUIRE_OK(fs.RemoveDirectory(kRootInode, "d"));
  REQUIRE(Stat(fs, kRootInode).links == 2);
  // The directory still exists as an inode, because the lookup by MakeDirectory is not forgotten.
  REQUIRE(Stat(fs, dir).links == 0);
  REQUIRE_CODE(fs.CreateFile(dir, "y", 0644, kCaller), kNotFound);
  REQUIRE_CODE(fs.MakeDirectory(dir, "y", 0755, kCaller), kNotFound);
  REQUIRE_CODE(fs.Link(outside, dir, "y"), kNotFound);
  REQUIRE(ListNames(fs, dir).empty());
  fs.Forget(dir, 1);
  REQUIRE_CODE(fs.GetAttributes(dir), kStale);
  store.Close();
  REQUIRE(RecountStore(store.path()).directories == 1);
}

TEST_CASE("hard links are one file") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber dir = MakeDir(fs, kRootInode, "d");
  const Bytes data = RandomBytes(1, 50'000);
  const InodeNumber file = WriteFile(fs, "a", data);
  REQUIRE_OK(fs.Link(file, dir, "b"));
  fs.Forget(file, 1);
  REQUIRE(Stat(fs, file).links == 2);
  REQUIRE(*Resolve(fs, "d/b") == file);
  REQUIRE_CODE(fs.Link(dir, kRootInode, "c"), kNotPermitted);
  REQUIRE_OK(fs.Unlink(kRootInode, "a"));
  REQUIRE((*ReadFile(fs, file) == data));
  store.Reopen();
  REQUIRE((*ReadFile(store.fs(), *Resolve(store.fs(), "d/b")) == data));
  REQUIRE(Stat(store.fs(), file).links == 1);
  store.Close();
  RecountStore(store.path());
}

TEST_CASE("a symbolic link keeps its target") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const std::string longest(4095, 't');
  REQUIRE_OK(fs.MakeSymlink(kRootInode, "long", longest, kCaller));
  REQUIRE_OK(fs.MakeSymlink(kRootInode, "dangling", "../nowhere", kCaller));
  REQUIRE_CODE(fs.MakeSymlink(kRootInode, "x", std::string(4096, 't'), kCaller), kNameTooLong);
  REQUIRE_CODE(fs.MakeSymlink(kRootInode, "x", "", kCaller), kNotFound);
  const InodeNumber file = MakeFile(fs, kRootInode, "file");
  REQUIRE_CODE(fs.ReadLink(file), kInvalidArgument);
  store.Reopen();
  REQUIRE(*store.fs().ReadLink(*Resolve(store.fs(), "long")) == longest);
  const InodeNumber dangling = *Resolve(store.fs(), "dangling");
  REQUIRE(*store.fs().ReadLink(dangling) == "../nowhere");
  REQUIRE(Stat(store.fs(), dangling).size == 10);
}

TEST_CASE("nodes keep their kind and device") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  REQUIRE_OK(fs.MakeNode(kRootInode, "fifo", 0010600, 0, kCaller));
  REQUIRE_OK(fs.MakeNode(kRootInode, "null", 0020666, 0x103, kCaller));
  REQUIRE_OK(fs.MakeNode(kRootInode, "socket", 0140777, 0, kCaller));
  REQUIRE_CODE(fs.MakeNode(kRootInode, "x", 0040755, 0, kCaller), kInvalidArgument);
  store.Reopen();
  REQUIRE(Stat(store.fs(), *Resolve(store.fs(), "fifo")).mode == 0010600);
  REQUIRE(Stat(store.fs(), *Resolve(store.fs(), "null")).device == 0x103);
  Bytes byte(1);
  REQUIRE_CODE(store.fs().Write(*Resolve(store.fs(), "fifo"), 0, byte), kInvalidArgument);
}

TEST_CASE("new entries get the group of a set-group-id directory, new directories also its bit") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  auto made = fs.MakeDirectory(kRootInode, "d", 0755 | kSetGid, {1000, 77});
  REQUIRE_OK(made);
  auto file = fs.CreateFile(made->inode, "file", 0644, {1000, 1000});
  REQUIRE_OK(file);
  REQUIRE(file->gid == 77);
  REQUIRE((file->mode & kSetGid) == 0);
  auto dir = fs.MakeDirectory(made->inode, "dir", 0700, {1000, 1000});
  REQUIRE_OK(dir);
  REQUIRE(dir->gid == 77);
  REQUIRE(dir->mode == (0040700 | kSetGid));
  auto deeper = fs.MakeNode(dir->inode, "deeper", 0010600, 0, {1000, 1000});
  REQUIRE(deeper->gid == 77);
}

TEST_CASE("a file without a name lives while it is open or looked up, and is then deleted") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  auto created = fs.CreateFile(kRootInode, "a", 0644, kCaller);
  REQUIRE_OK(created);
  const InodeNumber file = created->inode;
  const Bytes data = RandomBytes(1, 300'000);
  REQUIRE_OK(fs.Write(file, 0, data));
  REQUIRE_OK(fs.SetXattr(file, "user.x", "value", XattrMode::kSet));
  REQUIRE_OK(fs.Unlink(kRootInode, "a"));
  REQUIRE_CODE(fs.Lookup(kRootInode, "a"), kNotFound);

  // The file is read and written as before.
  REQUIRE((*ReadFile(fs, file) == data));
  const Bytes more = RandomBytes(2, 10'000);
  REQUIRE_OK(fs.Write(file, 100'000, more));
  REQUIRE_OK(fs.Fsync(file));
  Bytes got(10'000);
  REQUIRE_OK(fs.Read(file, 100'000, got));
  REQUIRE((got == more));
  REQUIRE(Stat(fs, file).links == 0);
  REQUIRE_CODE(fs.Link(file, kRootInode, "again"), kNotFound);
  REQUIRE(store.Stats().files == 1);

  SECTION("released, then forgotten") {
    fs.ReleaseFile(file);
    REQUIRE_OK(fs.GetAttributes(file));
    fs.Forget(file, 1);
  }
  SECTION("forgotten, then released") {
    fs.Forget(file, 1);
    REQUIRE_OK(fs.GetAttributes(file));
    fs.ReleaseFile(file);
  }
  REQUIRE_CODE(fs.GetAttributes(file), kStale);
  REQUIRE_CODE(fs.OpenFile(file, false), kStale);
  REQUIRE(store.Stats().files == 0);
  REQUIRE(store.Stats().logical_bytes == 0);
  REQUIRE(store.Stats().chunks_logical == 0);
  store.Close();
  const StoreCount count = RecountStore(store.path());
  REQUIRE(count.files == 0);
  REQUIRE(count.orphans == 0);
  REQUIRE(count.overlay_extents == 0);
  REQUIRE(count.xattrs == 0);
}

TEST_CASE("an unused file is deleted with its last name") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = WriteFile(fs, "a", RandomBytes(1, 100'000));
  REQUIRE_OK(fs.Unlink(kRootInode, "a"));
  REQUIRE_CODE(fs.GetAttributes(file), kStale);
  store.Close();
  REQUIRE(RecountStore(store.path()).files == 0);
}

TEST_CASE("the next mount removes files that were open without a name at a crash") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  auto created = fs.CreateFile(kRootInode, "a", 0644, kCaller);
  REQUIRE_OK(created);
  REQUIRE_OK(fs.Write(created->inode, 0, RandomBytes(1, 300'000)));
  REQUIRE_OK(fs.SetXattr(created->inode, "user.x", "value", XattrMode::kSet));
  auto directory = fs.MakeDirectory(kRootInode, "d", 0755, kCaller);
  REQUIRE_OK(directory);
  REQUIRE_OK(fs.Unlink(kRootInode, "a"));
  REQUIRE_OK(fs.RemoveDirectory(kRootInode, "d"));
  SECTION("a crash") {
    REQUIRE_OK(fs.SyncAll());
    store.Crash();
  }
  SECTION("an unmount") { store.Close(); }
  REQUIRE(RecountStore(store.path()).orphans == 2);
  store.Open();
  REQUIRE(store.Stats().files == 0);
  REQUIRE(store.Stats().directories == 1);
  store.Close();
  const StoreCount count = RecountStore(store.path());
  REQUIRE(count.orphans == 0);
  REQUIRE(count.files == 0);
  REQUIRE(count.overlay_extents == 0);
  REQUIRE(count.xattrs == 0);
}

TEST_CASE("a walk starts with the directory and its parent and follows the order of creation") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber dir = MakeDir(fs, kRootInode, "d");
  for (std::string_view name : {"c", "a", "b"}) MakeFile(fs, dir, name);
  std::vector<std::string> names;
  std::vector<uint64_t> cookies;
  std::vector<InodeNumber> inodes;
  REQUIRE_OK(fs.ReadDirectory(dir, 0, [&](const DirectoryRecord& record) {
    names.emplace_back(record.name);
    cookies.push_back(record.cookie);
    inodes.push_back(record.inode);
    REQUIRE(record.mode == (record.name[0] == '.' ? 0040000u : 0100000u));
    return true;
  }));
  REQUIRE(names == std::vector<std::string>{".", "..", "c", "a", "b"});
  REQUIRE(inodes[0] == dir);
  REQUIRE(inodes[1] == kRootInode);
  REQUIRE(std::is_sorted(cookies.begin(), cookies.end()));
  // From each cookie, the listing continues with the next entry, also after a remount.
  store.Reopen();
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<std::string> rest;
    REQUIRE_OK(store.fs().ReadDirectory(dir, cookies[i], [&rest](const DirectoryRecord& record) {
      rest.emplace_back(record.name);
      return true;
    }));
    REQUIRE(rest ==
            std::vector<std::string>(names.begin() + static_cast<ptrdiff_t>(i) + 1, names.end()));
  }
  REQUIRE_OK(store.fs().ReadDirectory(dir, ~uint64_t{0}, [](const DirectoryRecord&) {
    FAIL("there is no entry after the last place");
    return true;
  }));
  REQUIRE_CODE(store.fs().ReadDirectory(*Resolve(store.fs(), "d/a"), 0,
                                        [](const DirectoryRecord&) { return true; }),
               kNotADirectory);
}

TEST_CASE("a walk sees each lasting entry exactly once while other entries are made and removed") {
  const uint64_t seed = GENERATE(range(1, 5));
  INFO("seed " << seed);
  Random random(seed);
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber dir = MakeDir(fs, kRootInode, "d");
  for (int i = 0; i < 300; ++i)
    MakeFile(fs, dir, fmt::format("{}{}", i % 3 == 0 ? "stay" : "go", i));
  std::map<std::string, int> seen;
  uint64_t cookie = 0;
  int made = 0;
  for (;;) {
    size_t budget = 1 + random.Below(20);
    bool any = false;
    REQUIRE_OK(fs.ReadDirectory(dir, cookie, [&](const DirectoryRecord& record) {
      any = true;
      ++seen[std::string(record.name)];
      cookie = record.cookie;
      return --budget > 0;
    }));
    if (!any) break;
    for (int i = 0; i < 8; ++i) {
      const std::string name = fmt::format("go{}", random.Below(300));
      switch (random.Below(4)) {
        case 0:
          (void)fs.Unlink(dir, name).ok();
          break;
        case 1:
          if (made < 200) MakeFile(fs, dir, fmt::format("new{}", made++));
          break;
        case 2:
          (void)fs
              .Rename(dir, name, dir, fmt::format("go{}", random.Below(300)), RenameMode::kReplace)
              .ok();
          break;
        default:  // the name's inode changes, the name stays
          (void)fs
              .Rename(dir, name, dir, fmt::format("stay{}", random.Below(100) * 3),
                      RenameMode::kExchange)
              .ok();
      }
    }
    if (random.OneIn(10)) REQUIRE_OK(fs.SyncAll());
  }
  for (int i = 0; i < 300; i += 3) {
    INFO("name stay" << i);
    REQUIRE(seen[fmt::format("stay{}", i)] == 1);
  }
  store.Close();
  RecountStore(store.path());
}

TEST_CASE("a directory of 20,000 names is listed whole, walked from any place, and emptied") {
  constexpr int kNames = 20'000;
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber dir = MakeDir(fs, kRootInode, "d");
  for (int i = 0; i < kNames; ++i) {
    auto made = fs.MakeNode(dir, fmt::format("name-{}", i), 0100644, 0, kCaller);
    if (!made.ok()) FAIL(made.status().ToString());
    fs.Forget(made->inode, 1);
  }
  std::vector<std::pair<std::string, uint64_t>> walked;
  uint64_t cookie = 2;
  for (bool any = true; any;) {
    any = false;
    size_t budget = 128;
    REQUIRE_OK(fs.ReadDirectory(dir, cookie, [&](const DirectoryRecord& record) {
      any = true;
      walked.emplace_back(record.name, record.cookie);
      cookie = record.cookie;
      return --budget > 0;
    }));
  }
  REQUIRE(walked.size() == kNames);
  for (int i = 0; i < kNames; ++i)
    if (walked[static_cast<size_t>(i)].first != fmt::format("name-{}", i)) FAIL("at " << i);
  REQUIRE_OK(fs.ReadDirectory(dir, walked[15'000].second, [&](const DirectoryRecord& record) {
    REQUIRE(record.name == "name-15001");
    return false;
  }));
  store.Reopen();
  for (int i = 0; i < kNames; ++i) {
    Status gone = store.fs().Unlink(dir, fmt::format("name-{}", i));
    if (!gone.ok()) FAIL(gone.ToString());
  }
  REQUIRE_OK(store.fs().RemoveDirectory(kRootInode, "d"));
  store.Close();
  REQUIRE(RecountStore(store.path()).names == 0);
}

TEST_CASE("thousands of inodes pass through the table, and inodes in use keep their state") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  auto open = fs.CreateFile(kRootInode, "open", 0644, kCaller);
  REQUIRE_OK(open);
  const Bytes data = RandomBytes(1, 5000);
  REQUIRE_OK(fs.Write(open->inode, 0, data));
  REQUIRE_OK(fs.Unlink(kRootInode, "open"));
  fs.Forget(open->inode, 1);
  for (int i = 0; i < 5000; ++i) {  // more than the table holds
    auto made = fs.MakeNode(kRootInode, fmt::format("f{}", i), 0100644, 0, kCaller);
    if (!made.ok()) FAIL(made.status().ToString());
    fs.Forget(made->inode, 1);
  }
  REQUIRE((*ReadFile(fs, open->inode) == data));
  fs.ReleaseFile(open->inode);
  REQUIRE_CODE(fs.GetAttributes(open->inode), kStale);
  // fsync of a file that was written, closed and dropped from the table still syncs its data.
  const InodeNumber early = *Resolve(fs, "f0");
  REQUIRE_OK(fs.Fsync(early));
  store.Crash();
  store.Open();
  REQUIRE(ListNames(store.fs(), kRootInode).size() == 5000);
}

TEST_CASE("a failed rename does not keep a file from being folded when it is released") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = MakeFile(fs, kRootInode, "file");
  static_cast<void>(MakeDir(fs, kRootInode, "directory"));
  REQUIRE_OK(fs.OpenFile(file, false));
  REQUIRE_OK(fs.Write(file, 1000, Bytes(700, 'w')));
  REQUIRE_CODE(fs.Rename(kRootInode, "file", kRootInode, "directory", RenameMode::kReplace),
               kIsADirectory);
  SECTION("by its user") {
    fs.ReleaseFile(file);
    REQUIRE_OK(fs.SyncAll());
    store.Crash();
  }
  SECTION("by all, at an unmount") { store.Close(); }
  REQUIRE(RecountStore(store.path()).overlay_extents == 0);
}

}  // namespace siltfs::testing
