// Clones of trees: what they keep, what they share, and what they refuse.
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "fs/interface/entry_store.h"
#include "fs/interface/posix_acl.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/acl_text.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Fixture {
  StoreFixture store;
  FileSystem* fs = &store.Open();

  InodeNumber At(std::string_view path) { return RequireInode(*fs, path); }
  Attributes Stat(std::string_view path) { return *fs->GetAttributes(At(path)); }
  Result<CloneOutcome> TryClone(InodeNumber source, InodeNumber parent, std::string_view name) {
    return fs->entries().Clone({.source = source, .parent = parent, .name = name});
  }
  CloneOutcome Clone(std::string_view source, std::string_view name) {
    const auto cloned = TryClone(At(source), kRootInode, name);
    REQUIRE_OK(cloned);
    return *cloned;
  }
  InodeNumber File(InodeNumber parent, std::string_view name, ByteView data) {
    const InodeNumber inode = MakeFile(*fs, parent, name);
    REQUIRE_OK(fs->OpenFile(inode, false));
    REQUIRE_OK(fs->Write(inode, 0, data));
    fs->ReleaseFile(inode);
    return inode;
  }
  void Link(std::string_view path, InodeNumber parent, std::string_view name) {
    const auto linked = fs->Link(At(path), parent, name);
    REQUIRE_OK(linked);
    fs->Forget(linked->inode, 1);
  }
  void Node(InodeNumber parent, std::string_view name, uint32_t mode, uint64_t device) {
    const auto made = fs->MakeNode(parent, name, mode, device, kCaller);
    REQUIRE_OK(made);
    fs->Forget(made->inode, 1);
  }

  // A tree with everything that an inode can have.
  void MakeTree() {
    const InodeNumber tree = MakeDir(*fs, kRootInode, "tree");
    const InodeNumber sub = MakeDir(*fs, tree, "sub");
    MakeDir(*fs, sub, "empty");
    File(tree, "small", RandomBytes(1, 100));
    File(tree, "large", RandomBytes(2, 3'000'000));
    File(sub, "gone", RandomBytes(3, 10));
    File(sub, "last", RandomBytes(4, 70'000));
    REQUIRE_OK(fs->Unlink(sub, "gone"));  // leaves a gap in the cookies
    Link("tree/small", sub, "second");
    Link("tree/small", sub, "third");
    Link("tree/large", kRootInode, "outside");
    Link("tree/large", sub, "inside");
    const auto symlink = fs->MakeSymlink(tree, "symlink", "sub/last", kCaller);
    REQUIRE_OK(symlink);
    fs->Forget(symlink->inode, 1);
    Node(tree, "fifo", 0010640, 0);
    Node(tree, "device", 0020600, 0x103);
    const InodeNumber sparse = MakeFile(*fs, tree, "sparse");
    REQUIRE_OK(fs->OpenFile(sparse, false));
    REQUIRE_OK(fs->Write(sparse, 50'000'000, RandomBytes(5, 5'000)));
    fs->ReleaseFile(sparse);
    REQUIRE_OK(fs->SetXattr(tree, "user.of-tree", "1", XattrMode::kSet));
    REQUIRE_OK(fs->SetXattr(At("tree/small"), "user.a", "value", XattrMode::kSet));
    REQUIRE_OK(
        fs->SetXattr(At("tree/small"), "trusted.b", std::string(3'000, 'v'), XattrMode::kSet));
    const std::string acl = AclFromText("u::rw-,u:77:r--,g::r--,m::rw-,o::---");
    REQUIRE_OK(fs->SetXattr(sub, kDefaultAclName, acl, XattrMode::kSet));
    REQUIRE_OK(fs->SetXattr(At("tree/sub/last"), kAccessAclName, acl, XattrMode::kSet));
    AttributeChange change;
    change.mode = 04751;
    change.uid = 12;
    change.gid = 34;
    change.atime = 1'111'111'111;
    change.mtime = -2'222'222'222;
    REQUIRE_OK(fs->SetAttributes(At("tree/large"), change).status());
    change.mode = 02770;
    REQUIRE_OK(fs->SetAttributes(sub, change).status());
  }

  // Everything that a clone keeps, as text. Inodes are named in the order in which they are met.
  void Describe(InodeNumber inode, std::map<InodeNumber, size_t>& met, std::string& text) {
    const Attributes a = *fs->GetAttributes(inode);
    const auto [number, first] = met.emplace(inode, met.size());
    text += fmt::format("{} {:o} {} {} {} {} {} {} {} {}\n", number->second, a.mode, a.links, a.uid,
                        a.gid, a.device, a.size, a.allocated_bytes, a.atime, a.mtime);
    if (!first) return;
    const auto names = fs->ListXattrs(inode);
    REQUIRE_OK(names);
    for (const std::string& name : std::set<std::string>(names->begin(), names->end()))
      text += fmt::format("{}={}\n", name, *fs->GetXattr(inode, name));
    const uint32_t type = a.mode & 0170000;
    if (type == 0120000) text += *fs->ReadLink(inode) + "\n";
    if (type == 0100000) {
      const auto content = ReadFile(*fs, inode);
      REQUIRE_OK(content);
      text += AsText(*content);
    }
    if (type != 0040000) return;
    std::vector<std::tuple<std::string, InodeNumber, uint64_t>> entries;
    REQUIRE_OK(fs->ReadDirectory(inode, 2, [&](const DirectoryRecord& record) {
      entries.emplace_back(record.name, record.inode, record.cookie);
      return true;
    }));
    for (const auto& [name, child, cookie] : entries) {
      text += fmt::format("{} {}: ", name, cookie);
      Describe(child, met, text);
    }
  }
  std::string Describe(std::string_view path) {
    std::map<InodeNumber, size_t> met;
    std::string text;
    Describe(At(path), met, text);
    return text;
  }
  StoreCount CloseAndCount() {
    store.Close();
    return RecountStore(store.path());
  }
};

TEST_CASE_METHOD(Fixture, "a clone has the content, attributes and links of its source") {
  MakeTree();
  REQUIRE_OK(fs->Unlink(kRootInode, "outside"));
  const uint64_t stored = store.Stats().added_bytes;
  const std::string source = Describe("tree");
  const CloneOutcome cloned = Clone("tree", "clone");
  CHECK(cloned.totals.files == 7);
  CHECK(cloned.totals.directories == 3);
  CHECK(cloned.inode == At("clone"));
  CHECK(Describe("clone") == source);
  CHECK(Describe("tree") == source);
  CHECK(store.Stats().added_bytes == stored);
  CHECK(store.Stats().files == 14);
  CHECK(Stat("").links == 4);
  store.Reopen();
  fs = &store.fs();
  CHECK(Describe("clone") == source);
  CHECK(CloseAndCount().directories == 7);
}

TEST_CASE_METHOD(Fixture,
                 "a clone is the same, however few records and directories are in memory") {
  MakeTree();
  InodeNumber deep = At("tree");
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 3; ++j) MakeDir(*fs, deep, fmt::format("d{}", j));
    File(deep, "file", RandomBytes(static_cast<uint64_t>(100 + i), 20));
    deep = At(fmt::format("tree{}", std::string("/d1/d1/d1/d1/d1").substr(0, 3 * (i + 1u))));
  }
  REQUIRE_OK(fs->Unlink(kRootInode, "outside"));
  const std::string source = Describe("tree");
  int number = 0;
  for (const size_t bytes : {size_t{1}, size_t{700}, size_t{20'000}, size_t{8} << 20}) {
    for (const size_t directories : {size_t{0}, size_t{1}, size_t{4}, size_t{1'000}}) {
      CAPTURE(bytes, directories);
      CloneRequest request{.source = At("tree"), .parent = kRootInode};
      const std::string name = fmt::format("clone{}", ++number);
      request.name = name;
      request.batch_bytes = bytes;
      request.most_directories = directories;
      REQUIRE_OK(fs->entries().Clone(request));
      CHECK(Describe(name) == source);
    }
  }
  store.Reopen();
  fs = &store.fs();
  for (; number > 0; --number) CHECK(Describe(fmt::format("clone{}", number)) == source);
  CHECK(CloseAndCount().files == 17 * 12);
}

TEST_CASE_METHOD(Fixture, "a file with names outside of the tree has the number of names inside") {
  MakeTree();
  Clone("tree", "clone");
  CHECK(Stat("tree/large").links == 3);
  CHECK(Stat("clone/large").links == 2);
  CHECK(At("clone/large") == At("clone/sub/inside"));
  CHECK(At("outside") == At("tree/large"));
  CloseAndCount();
}

TEST_CASE_METHOD(Fixture, "links are kept, however few files with several names fit into memory") {
  const InodeNumber a = MakeDir(*fs, kRootInode, "tree");
  const InodeNumber b = MakeDir(*fs, a, "b");
  const InodeNumber out = MakeDir(*fs, kRootInode, "out");
  for (int i = 0; i < 40; ++i) {
    const std::string name = fmt::format("f{}", i);
    File(a, name, RandomBytes(static_cast<uint64_t>(i), 50));
    if (i % 2 == 0) Link("tree/" + name, b, name);
    if (i % 3 == 0) Link("tree/" + name, out, name);
    if (i % 5 == 0) Link("tree/" + name, b, name + "too");
  }
  const size_t batch_bytes = GENERATE(as<size_t>(), 1'000, 8u << 20);
  for (const size_t most : {1, 3, 7, 1000}) {
    CAPTURE(most, batch_bytes);
    const std::string name = fmt::format("clone{}", most);
    REQUIRE_OK(fs->entries().Clone({.source = a,
                                    .parent = kRootInode,
                                    .name = name,
                                    .most_links = most,
                                    .batch_bytes = batch_bytes}));
    for (int i = 0; i < 40; ++i) {
      const std::string file = fmt::format("{}/f{}", name, i);
      CAPTURE(i);
      CHECK(Stat(file).links == 1u + (i % 2 == 0) + (i % 5 == 0));
      if (i % 2 == 0) CHECK(At(file) == At(fmt::format("{}/b/f{}", name, i)));
      if (i % 5 == 0) CHECK(At(file) == At(fmt::format("{}/b/f{}too", name, i)));
    }
  }
  CHECK(CloseAndCount().files == 5 * 40);
}

TEST_CASE_METHOD(Fixture, "a clone has writes that were acknowledged and not committed") {
  const InodeNumber tree = MakeDir(*fs, kRootInode, "tree");
  REQUIRE_OK(fs->SyncAll());
  const Bytes data = RandomBytes(1, 5'000);
  const InodeNumber file = MakeFile(*fs, tree, "open");
  REQUIRE_OK(fs->OpenFile(file, false));
  REQUIRE_OK(fs->Write(file, 10, data));  // stays in the overlay while the file is open
  Clone("tree", "clone");
  const auto content = ReadFile(*fs, At("clone/open"));
  REQUIRE_OK(content);
  CHECK(content->size() == 5'010);
  CHECK(*content == *ReadFile(*fs, file));
  // Source and clone then change by themselves.
  REQUIRE_OK(fs->Write(file, 0, RandomBytes(2, 3'000)));
  const InodeNumber copy = At("clone/open");
  CHECK(*ReadFile(*fs, copy) == *content);
  REQUIRE_OK(fs->OpenFile(copy, false));
  REQUIRE_OK(fs->Write(copy, 5'010, RandomBytes(3, 200'000)));
  fs->ReleaseFile(copy);
  fs->ReleaseFile(file);
  CHECK(ReadFile(*fs, file)->size() == 5'010);
  CHECK(ReadFile(*fs, copy)->size() == 205'010);
  CloseAndCount();
}

TEST_CASE_METHOD(Fixture, "a clone of a clone is whole without the others") {
  MakeTree();
  const std::string source = Describe("tree/sub");
  Clone("tree/sub", "one");
  Clone("one", "two");
  const auto remove_all = [&](InodeNumber directory, const auto& self) -> void {
    for (const std::string& name : ListNames(*fs, directory)) {
      const auto child = fs->Lookup(directory, name);
      REQUIRE_OK(child);
      fs->Forget(child->inode, 1);
      if ((child->mode & 0170000) != 0040000) {
        REQUIRE_OK(fs->Unlink(directory, name));
        continue;
      }
      self(child->inode, self);
      REQUIRE_OK(fs->RemoveDirectory(directory, name));
    }
  };
  const std::string one = Describe("one");
  remove_all(At("tree"), remove_all);
  REQUIRE_OK(fs->RemoveDirectory(kRootInode, "tree"));
  REQUIRE_OK(fs->Unlink(kRootInode, "outside"));
  REQUIRE_OK(fs->maintenance().CollectGarbage(false));
  CHECK(Describe("one") == one);
  remove_all(At("one"), remove_all);
  REQUIRE_OK(fs->RemoveDirectory(kRootInode, "one"));
  REQUIRE_OK(fs->maintenance().CollectGarbage(false));
  CHECK(Describe("two") == one);
  CHECK(CloseAndCount().directories == 3);
}

TEST_CASE_METHOD(Fixture, "a file, a symbolic link and a device are cloned alone") {
  MakeTree();
  for (const std::string name : {"large", "symlink", "device", "sparse"}) {
    const CloneOutcome cloned = Clone("tree/" + name, name);
    CHECK(cloned.totals.files == 1);
    CHECK(cloned.totals.directories == 0);
    CHECK(Stat(name).links == 1);
    CHECK(Stat(name).mode == Stat("tree/" + name).mode);
  }
  CHECK(*ReadFile(*fs, At("large")) == *ReadFile(*fs, At("tree/large")));
  CHECK(*fs->ReadLink(At("symlink")) == "sub/last");
  CloseAndCount();
}

TEST_CASE_METHOD(Fixture, "a clone of an imported file is as unchanged as its source") {
  const Bytes data = RandomBytes(1, 9'000);
  const ExtentImage extent{0, data};
  MakeDir(*fs, kRootInode, "d");
  EntryImage image{.parent = At("d"), .name = "file", .mode = 0100640, .size = 9'000, .mtime = 8};
  image.extents = {&extent, 1};
  image.source = {.inode = 1, .ctime = 9, .size = 9'000, .mtime = 8};
  const Result<PutOutcome> put = fs->entries().Put({&image, 1})[0];
  REQUIRE_OK(put);
  Clone("d", "clone");
  image.extents = {};
  image.parent = At("clone");
  const auto offered = fs->entries().Offer(image, 0, false);
  REQUIRE_OK(offered);
  CHECK(offered->effect == PutEffect::kUnchanged);
  // A file that was changed since its import stays a changed one.
  // The clock has coarse steps, and only a later ctime shows a change.
  const auto imported = Stat("d/file").ctime;
  while (Stat("d/file").ctime == imported) {
    AttributeChange change;
    change.mode = 0600;
    REQUIRE_OK(fs->SetAttributes(At("d/file"), change).status());
    change.mode = 0640;
    REQUIRE_OK(fs->SetAttributes(At("d/file"), change).status());
  }
  Clone("d", "again");
  image.parent = At("again");
  CHECK(fs->entries().Offer(image, 0, false)->effect == PutEffect::kNeeded);
}

TEST_CASE_METHOD(Fixture, "impossible clones are refused and change nothing") {
  MakeTree();
  const InodeNumber tree = At("tree");
  REQUIRE_CODE(TryClone(tree, kRootInode, "outside"), kAlreadyExists);
  REQUIRE_CODE(TryClone(tree, tree, "in"), kInvalidArgument);
  REQUIRE_CODE(TryClone(tree, At("tree/sub/empty"), "in"), kInvalidArgument);
  REQUIRE_CODE(TryClone(kRootInode, kRootInode, "in"), kInvalidArgument);
  REQUIRE_CODE(TryClone(kRootInode, tree, "in"), kInvalidArgument);
  REQUIRE_CODE(TryClone(tree, At("outside"), "in"), kNotADirectory);
  REQUIRE_CODE(TryClone(tree, kRootInode, "a/b"), kInvalidArgument);
  REQUIRE_CODE(TryClone(12'345'678, kRootInode, "in"), kNotFound);
  CHECK(ListNames(*fs, kRootInode) == std::vector<std::string>{"tree", "outside"});
  CHECK(store.Stats().directories == 4);
  CloseAndCount();
  store.Open(true);
  fs = &store.fs();
  REQUIRE_CODE(TryClone(tree, kRootInode, "in"), kReadOnly);
}

TEST_CASE_METHOD(Fixture,
                 "a clone that is stopped, or that may not have an inode, leaves nothing") {
  MakeTree();
  const Status stop(StatusCode::kInterrupted, "stopped");
  CloneRequest request{.source = At("tree"), .parent = kRootInode, .name = "clone"};
  uint64_t calls = 0;
  request.on_progress = [&](const CloneTotals& totals) {
    ++calls;
    CHECK(totals.files == 7);
    // Nothing is to be seen yet.
    CHECK(ListNames(*fs, kRootInode) == std::vector<std::string>{"tree", "outside"});
    CHECK(store.Stats().files == 7);
    for (InodeNumber inode = 2; inode < 400; ++inode) {
      const auto attributes = fs->GetAttributes(inode);
      if (attributes.ok()) CHECK(attributes->inode < At("tree") + 30);
    }
    return stop;
  };
  REQUIRE_CODE(fs->entries().Clone(request), kInterrupted);
  CHECK(calls == 1);
  // The same while records are loaded, and after that.
  for (const uint64_t last : {1, 2, 4, 100}) {
    request.batch_bytes = 1'000;
    calls = 0;
    request.on_progress = [&](const CloneTotals&) {
      CHECK(store.Stats().files == 7);
      CHECK(ListNames(*fs, kRootInode) == std::vector<std::string>{"tree", "outside"});
      return ++calls == last ? stop : Status::Ok();
    };
    if (last == 100) {
      request.on_progress = [&](const CloneTotals& totals) {
        return totals.directories == 3 ? stop : Status::Ok();
      };
    }
    REQUIRE_CODE(fs->entries().Clone(request), kInterrupted);
  }
  request.on_progress = {};
  request.admit = [](const ClonedInode& inode) {
    return inode.uid == 12 ? Status(StatusCode::kNotPermitted, "no") : Status::Ok();
  };
  REQUIRE_CODE(fs->entries().Clone(request), kNotPermitted);
  request.admit = {};
  request.admit_xattr = [](std::string_view name) {
    return name == "trusted.b" ? Status(StatusCode::kNotPermitted, "no") : Status::Ok();
  };
  REQUIRE_CODE(fs->entries().Clone(request), kNotPermitted);
  CHECK(CloseAndCount().files == 7);  // and no record is left
}

TEST_CASE_METHOD(Fixture, "the name may be taken, and the directory removed, during a clone") {
  MakeTree();
  const InodeNumber into = MakeDir(*fs, kRootInode, "into");
  CloneRequest request{.source = At("tree"), .parent = into, .name = "clone"};
  request.on_progress = [&](const CloneTotals&) {
    MakeFile(*fs, into, "clone");
    return Status::Ok();
  };
  REQUIRE_CODE(fs->entries().Clone(request), kAlreadyExists);
  REQUIRE_OK(fs->Unlink(into, "clone"));
  request.on_progress = [&](const CloneTotals&) { return fs->RemoveDirectory(kRootInode, "into"); };
  REQUIRE_CODE(fs->entries().Clone(request), kStale);
  CHECK(CloseAndCount().files == 7);
}

TEST_CASE_METHOD(Fixture, "changes of the source during a clone are not in the clone") {
  MakeTree();
  const std::string source = Describe("tree/sub");
  CloneRequest request{.source = At("tree/sub"), .parent = kRootInode, .name = "clone"};
  request.on_progress = [&](const CloneTotals&) {
    REQUIRE_OK(fs->Unlink(At("tree/sub"), "last"));
    File(At("tree/sub"), "new", RandomBytes(9, 100));
    return fs->SyncAll();
  };
  REQUIRE_OK(fs->entries().Clone(request));
  CHECK(ListNames(*fs, At("clone")) ==
        std::vector<std::string>{"empty", "last", "second", "third", "inside"});
  CHECK(ReadFile(*fs, At("clone/last"))->size() == 70'000);
  CloseAndCount();
}

}  // namespace
}  // namespace siltfs::testing
