// Snapshots: what they keep while the live files change, how they are read, and what their removal
// frees.
#include "fs/interface/snapshots.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fs/interface/content_source.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/snapshot_inode.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "store/base/random.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Fixture {
  StoreFixture store;
  FileSystem* fs = &store.Open();

  InodeNumber At(std::string_view path) { return RequireInode(*fs, path); }
  void Create(std::string_view name) { REQUIRE_OK(fs->snapshots().Create(name)); }
  std::string Text(std::string_view path) {
    const auto bytes = ReadFile(*fs, At(path));
    REQUIRE_OK(bytes);
    return std::string(AsText(*bytes));
  }
  void Write(std::string_view name, std::string_view text) { WriteFile(*fs, name, AsBytes(text)); }
};

TEST_CASE("a snapshot keeps names, contents and attributes while all of them change") {
  Fixture f;
  FileSystem& fs = *f.fs;
  const InodeNumber directory = MakeDir(fs, kRootInode, "d");
  f.Write("changed", "old");
  f.Write("removed", "gone later");
  f.Write("moved", "elsewhere");
  REQUIRE_OK(fs.SetXattr(f.At("changed"), "user.a", "1", XattrMode::kSet));
  f.Create("before");

  f.Write("changed", "new");
  REQUIRE_OK(fs.SetXattr(f.At("changed"), "user.a", "2", XattrMode::kSet));
  REQUIRE_OK(fs.SetXattr(f.At("changed"), "user.b", "3", XattrMode::kSet));
  AttributeChange mode;
  mode.mode = 0600;
  REQUIRE_OK(fs.SetAttributes(f.At("changed"), mode));
  REQUIRE_OK(fs.Unlink(kRootInode, "removed"));
  REQUIRE_OK(fs.Rename(kRootInode, "moved", directory, "moved", RenameMode::kReplace));
  f.Write("added", "new");
  f.Create("after");
  REQUIRE_OK(fs.Unlink(kRootInode, "changed"));

  const bool reopened = GENERATE(false, true);
  if (reopened) {
    f.store.Reopen();
    f.fs = &f.store.fs();
  }
  const InodeNumber before = f.At(".snapshots/before");
  CHECK(ListNames(*f.fs, before) == std::vector<std::string>{"d", "changed", "removed", "moved"});
  CHECK(f.Text(".snapshots/before/changed") == "old");
  CHECK(f.Text(".snapshots/before/removed") == "gone later");
  CHECK(f.Text(".snapshots/before/moved") == "elsewhere");
  CHECK(ListNames(*f.fs, f.At(".snapshots/before/d")).empty());
  const InodeNumber changed = f.At(".snapshots/before/changed");
  CHECK(*f.fs->GetXattr(changed, "user.a") == "1");
  CHECK(f.fs->ListXattrs(changed)->size() == 1);
  CHECK((f.fs->GetAttributes(changed)->mode & 07777) != 0600);
  CHECK(ListNames(*f.fs, f.At(".snapshots/after")) ==
        std::vector<std::string>{"d", "changed", "added"});
  CHECK(f.Text(".snapshots/after/changed") == "new");
  CHECK(f.Text(".snapshots/after/d/moved") == "elsewhere");
  CHECK(*f.fs->GetXattr(f.At(".snapshots/after/changed"), "user.a") == "2");
}

TEST_CASE("a snapshot includes writes that were neither folded nor committed") {
  Fixture f;
  const InodeNumber file = MakeFile(*f.fs, kRootInode, "open");
  REQUIRE_OK(f.fs->OpenFile(file, false));
  const Bytes data = RandomBytes(1, 500'000);
  REQUIRE_OK(f.fs->Write(file, 0, data));
  REQUIRE_OK(f.fs->Write(file, 100, AsBytes("raw")));
  f.Create("s");
  REQUIRE_OK(f.fs->Write(file, 0, RandomBytes(2, 500'000)));
  f.fs->ReleaseFile(file);
  f.store.Crash();
  f.fs = &f.store.Open();
  Bytes expected = data;
  std::ranges::copy(std::string_view("raw"), expected.begin() + 100);
  CHECK(*ReadFile(*f.fs, f.At(".snapshots/s/open")) == expected);
}

TEST_CASE("an inode of a snapshot has a number of its own, and cannot be changed") {
  Fixture f;
  FileSystem& fs = *f.fs;
  MakeDir(fs, kRootInode, "d");
  f.Write("file", "text");
  f.Create("s");
  const InodeNumber file = f.At(".snapshots/s/file");
  const InodeNumber root = f.At(".snapshots/s");
  CHECK(file != f.At("file"));
  CHECK(SplitSnapshotInode(file).inode == f.At("file"));
  CHECK(fs.GetAttributes(file)->inode == file);
  REQUIRE_CODE(fs.Write(file, 0, AsBytes("x")), kReadOnly);
  REQUIRE_CODE(fs.SetAttributes(file, {}), kReadOnly);
  REQUIRE_CODE(fs.SetXattr(file, "user.a", "1", XattrMode::kSet), kReadOnly);
  REQUIRE_CODE(fs.RemoveXattr(file, "user.a"), kReadOnly);
  REQUIRE_CODE(fs.OpenFile(file, true), kReadOnly);
  REQUIRE_CODE(fs.CheckOpenForWriting(file), kReadOnly);
  REQUIRE_OK(fs.CheckOpenForWriting(f.At("file")));
  REQUIRE_CODE(fs.Unlink(root, "file"), kReadOnly);
  REQUIRE_CODE(fs.RemoveDirectory(root, "d"), kReadOnly);
  REQUIRE_CODE(fs.CreateFile(root, "new", 0644, kCaller), kReadOnly);
  REQUIRE_CODE(fs.MakeDirectory(root, "new", 0755, kCaller), kReadOnly);
  REQUIRE_CODE(fs.MakeSymlink(root, "new", "x", kCaller), kReadOnly);
  REQUIRE_CODE(fs.MakeTemporaryFile(root, 0600, kCaller), kReadOnly);
  REQUIRE_CODE(fs.Link(file, kRootInode, "new"), kReadOnly);
  REQUIRE_CODE(fs.Link(f.At("file"), root, "new"), kReadOnly);
  REQUIRE_CODE(fs.Rename(root, "file", kRootInode, "new", RenameMode::kReplace), kReadOnly);
  REQUIRE_CODE(fs.Rename(kRootInode, "file", root, "new", RenameMode::kReplace), kReadOnly);
  REQUIRE_CODE(fs.CopyRange(f.At("file"), 0, file, 0, 4), kReadOnly);
  REQUIRE_CODE(fs.Allocate(file, AllocateMode::kZero, 0, 4, true), kReadOnly);
  // The directory of snapshots is no entry that programs make or remove.
  REQUIRE_CODE(fs.MakeDirectory(kRootInode, ".snapshots", 0755, kCaller), kAlreadyExists);
  REQUIRE_CODE(fs.RemoveDirectory(kRootInode, ".snapshots"), kReadOnly);
  REQUIRE_CODE(fs.RemoveDirectory(kSnapshotDirectory, "s"), kReadOnly);
  REQUIRE_CODE(fs.MakeDirectory(kSnapshotDirectory, "t", 0755, kCaller), kReadOnly);
  CHECK(f.Text(".snapshots/s/file") == "text");
}

TEST_CASE("the directory of snapshots is hidden, visible or off") {
  Fixture f;
  f.Create("b");
  f.Create("a");
  CHECK(ListNames(*f.fs, kRootInode).empty());
  CHECK(ListNames(*f.fs, f.At(".snapshots")) == std::vector<std::string>{"b", "a"});
  CHECK(f.fs->Lookup(f.At(".snapshots/a"), "..")->inode == kSnapshotDirectory);
  CHECK(f.fs->Lookup(kSnapshotDirectory, "..")->inode == kRootInode);
  REQUIRE_CODE(f.fs->Lookup(kSnapshotDirectory, "c"), kNotFound);
  f.store.adjust = [](FileSystemOptions& options) {
    options.snapshot_directory = SnapshotDirectoryMode::kVisible;
  };
  f.store.Reopen();
  CHECK(ListNames(f.store.fs(), kRootInode) == std::vector<std::string>{".snapshots"});
  f.store.adjust = [](FileSystemOptions& options) {
    options.snapshot_directory = SnapshotDirectoryMode::kOff;
  };
  f.store.Reopen();
  CHECK(ListNames(f.store.fs(), kRootInode).empty());
  REQUIRE_CODE(Resolve(f.store.fs(), ".snapshots"), kNotFound);
  MakeDir(f.store.fs(), kRootInode, ".snapshots");
  CHECK(ListNames(f.store.fs(), kRootInode) == std::vector<std::string>{".snapshots"});
}

TEST_CASE("a listing of a directory continues after any cookie") {
  Fixture f;
  f.store.adjust = [](FileSystemOptions& options) {
    options.snapshot_directory = SnapshotDirectoryMode::kVisible;
  };
  f.store.Reopen();
  f.fs = &f.store.fs();
  f.Write("file", "");
  for (const char* name : {"a", "b", "c"}) f.Create(name);
  for (const InodeNumber directory : {kRootInode, kSnapshotDirectory, f.At(".snapshots/a")}) {
    std::vector<std::string> all;
    REQUIRE_OK(f.fs->ReadDirectory(directory, 0, [&](const DirectoryRecord& record) {
      all.emplace_back(record.name);
      return true;
    }));
    std::vector<std::string> one_by_one;
    uint64_t cookie = 0;
    for (size_t before = SIZE_MAX; before != one_by_one.size();) {
      before = one_by_one.size();
      REQUIRE_OK(f.fs->ReadDirectory(directory, cookie, [&](const DirectoryRecord& record) {
        one_by_one.emplace_back(record.name);
        cookie = record.cookie;
        return false;
      }));
    }
    CHECK(one_by_one == all);
  }
}

TEST_CASE("a snapshot alone can be opened for reading") {
  Fixture f;
  f.Write("file", "old");
  f.Create("s");
  f.Write("file", "new");
  f.store.Close();
  f.store.adjust = [](FileSystemOptions& options) { options.snapshot = "s"; };
  REQUIRE_CODE(f.store.TryOpen(false), kInvalidArgument);
  f.fs = &f.store.Open(true);
  CHECK(f.Text("file") == "old");
  CHECK(f.fs->GetAttributes(kRootInode)->inode == kRootInode);
  CHECK(f.fs->Lookup(kRootInode, "..")->inode == kRootInode);
  REQUIRE_CODE(Resolve(*f.fs, ".snapshots"), kNotFound);
  REQUIRE_CODE(f.fs->Unlink(kRootInode, "file"), kReadOnly);
  f.store.Close();
  f.store.adjust = [](FileSystemOptions& options) { options.snapshot = "t"; };
  REQUIRE_CODE(f.store.TryOpen(true), kAborted);
}

TEST_CASE("names of snapshots are those of directory entries, and unique") {
  Fixture f;
  Snapshots& snapshots = f.fs->snapshots();
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"),
        std::string("a\0b", 3), std::string(256, 'x')}) {
    REQUIRE_CODE(snapshots.Create(name), kInvalidArgument);
  }
  f.Create("a");
  REQUIRE_CODE(snapshots.Create("a"), kAlreadyExists);
  f.Create("b");
  REQUIRE_CODE(snapshots.Rename("a", "b"), kAlreadyExists);
  REQUIRE_CODE(snapshots.Rename("c", "d"), kNotFound);
  REQUIRE_CODE(snapshots.Rename("a", "x/y"), kInvalidArgument);
  REQUIRE_OK(snapshots.Rename("a", "c"));
  REQUIRE_CODE(snapshots.Remove("a"), kNotFound);
  f.store.Crash();
  FileSystem& again = f.store.Open();
  REQUIRE(again.snapshots().List().size() == 2);
  CHECK(again.snapshots().List()[0].name == "c");
  CHECK(again.snapshots().List()[1].name == "b");
  f.store.Close();
  FileSystem& read_only = f.store.Open(true);
  REQUIRE_CODE(read_only.snapshots().Create("d"), kReadOnly);
  REQUIRE_CODE(read_only.snapshots().Remove("b"), kReadOnly);
  REQUIRE_CODE(read_only.snapshots().Rename("b", "d"), kReadOnly);
}

TEST_CASE("a removed snapshot is gone at once, and its number is not used again") {
  Fixture f;
  f.Write("file", "old");
  f.Create("s");
  f.Write("file", "new");
  const InodeNumber file = f.At(".snapshots/s/file");
  REQUIRE_OK(f.fs->OpenFile(file, false));
  REQUIRE_OK(f.fs->snapshots().Remove("s"));
  Bytes out(3);
  REQUIRE_CODE(f.fs->Read(file, 0, out), kStale);
  REQUIRE_CODE(f.fs->GetAttributes(file), kStale);
  REQUIRE_CODE(Resolve(*f.fs, ".snapshots/s"), kNotFound);
  f.fs->ReleaseFile(file);
  f.Create("s");
  CHECK(f.At(".snapshots/s/file") != file);
  CHECK(f.Text(".snapshots/s/file") == "new");
  REQUIRE_CODE(f.fs->Read(file, 0, out), kStale);
  f.fs->Forget(file, 1);  // a late one from the kernel
}

TEST_CASE("garbage collection keeps what snapshots need, and frees it after their removal") {
  Fixture f;
  const Bytes whole = RandomBytes(1, 4'000'000);
  f.fs->Forget(WriteLargeFile(*f.fs, "whole", whole), 1);
  // Raw bytes and slices of an overlay count, too.
  const InodeNumber open = MakeFile(*f.fs, kRootInode, "open");
  REQUIRE_OK(f.fs->OpenFile(open, false));
  const Bytes stream = RandomBytes(2, 1'000'000);
  REQUIRE_OK(f.fs->Write(open, 0, stream));
  f.Create("s");
  f.fs->ReleaseFile(open);
  REQUIRE_OK(f.fs->Unlink(kRootInode, "whole"));
  REQUIRE_OK(f.fs->Unlink(kRootInode, "open"));
  REQUIRE_OK(f.fs->SyncAll());
  f.store.Crash();
  f.fs = &f.store.Open();  // seals the segments
  const uint64_t before = f.store.Stats().stored_bytes;
  REQUIRE_OK(f.fs->maintenance().CollectGarbage(false));
  CHECK(f.store.Stats().stored_bytes > before / 2);
  CHECK(*ReadFile(*f.fs, f.At(".snapshots/s/whole")) == whole);
  CHECK(*ReadFile(*f.fs, f.At(".snapshots/s/open")) == stream);
  REQUIRE_OK(f.fs->snapshots().Remove("s"));
  REQUIRE_OK(f.fs->snapshots().AwaitRemovals());
  REQUIRE_OK(f.fs->maintenance().CollectGarbage(false));
  CHECK(f.store.Stats().stored_bytes < before / 10);
}

TEST_CASE("the removal of a snapshot continues after a crash") {
  Fixture f;
  const Bytes data = RandomBytes(1, 2'000'000);
  WriteLargeFile(*f.fs, "file", data);
  f.Create("s");
  REQUIRE_OK(f.fs->Unlink(kRootInode, "file"));
  REQUIRE_OK(f.fs->snapshots().Remove("s"));
  f.store.Crash();
  f.fs = &f.store.Open();
  CHECK(f.fs->snapshots().List().empty());
  REQUIRE_OK(f.fs->snapshots().AwaitRemovals());
  REQUIRE_OK(f.fs->maintenance().CollectGarbage(false));
  CHECK(f.store.Stats().stored_bytes < 200'000);
}

TEST_CASE("a clone of a snapshot's tree is a writable copy of it") {
  Fixture f;
  const InodeNumber directory = MakeDir(*f.fs, kRootInode, "d");
  const InodeNumber file = MakeFile(*f.fs, directory, "file");
  REQUIRE_OK(f.fs->OpenFile(file, false));
  const Bytes data = RandomBytes(1, 300'000);
  REQUIRE_OK(f.fs->Write(file, 0, data));
  f.fs->ReleaseFile(file);
  f.Create("s");
  REQUIRE_OK(f.fs->Unlink(directory, "file"));
  const auto clone = [&](std::string_view source, std::string_view name) {
    return f.fs->entries().Clone(
        {.source = f.At(source), .parent = kRootInode, .name = std::string(name)});
  };
  REQUIRE_OK(clone(".snapshots/s/d", "back"));
  CHECK(*ReadFile(*f.fs, f.At("back/file")) == data);
  REQUIRE_OK(clone(".snapshots/s", "all"));
  CHECK(*ReadFile(*f.fs, f.At("all/d/file")) == data);
  REQUIRE_OK(f.fs->Unlink(f.At("back"), "file"));
  CHECK(f.store.Stats().files == 1);
  REQUIRE_CODE(clone(".snapshots", "none"), kInvalidArgument);
  REQUIRE_OK(f.fs->snapshots().Remove("s"));
  REQUIRE_OK(f.fs->snapshots().AwaitRemovals());
  REQUIRE_OK(f.fs->maintenance().CollectGarbage(false));
  CHECK(*ReadFile(*f.fs, f.At("all/d/file")) == data);
}

TEST_CASE("imports put nothing into snapshots, and no entry in the place of their directory") {
  Fixture f;
  MakeDir(*f.fs, kRootInode, "d");
  f.Create("s");
  EntryStore& entries = f.fs->entries();
  const auto image = [](InodeNumber parent, std::string_view name) {
    EntryImage made{.parent = parent, .name = name};
    made.mode = 0120777;
    made.target = "elsewhere";
    return made;
  };
  const std::vector<EntryImage> images{image(kRootInode, "good"), image(kRootInode, ".snapshots"),
                                       image(f.At(".snapshots/s"), "x"),
                                       image(kSnapshotDirectory, "y")};
  const auto outcomes = entries.Put(images);
  REQUIRE(outcomes.size() == 4);
  REQUIRE_OK(outcomes[0]);
  REQUIRE_CODE(outcomes[1], kAlreadyExists);
  REQUIRE_CODE(outcomes[2], kReadOnly);
  REQUIRE_CODE(outcomes[3], kReadOnly);
  REQUIRE_CODE(entries.Offer(images[1], 0, false), kAlreadyExists);
  REQUIRE_CODE(entries.Place(1, images[2]), kReadOnly);
  REQUIRE_CODE(entries.Link(f.At("good"), f.At(".snapshots/s"), "x"), kReadOnly);
  REQUIRE_CODE(entries.SetDirectory(f.At(".snapshots/s/d"), image(0, "")), kReadOnly);
  CHECK(ListNames(*f.fs, kRootInode) == std::vector<std::string>{"d", "good"});
}

TEST_CASE("an export reads the files of snapshots") {
  Fixture f;
  const Bytes data = RandomBytes(1, 300'000);
  WriteLargeFile(*f.fs, "file", data);
  f.Create("s");
  REQUIRE_OK(f.fs->Unlink(kRootInode, "file"));
  Bytes read(data.size());
  const auto reader = f.fs->contents().NewReader();
  const Status visited =
      f.fs->contents().Visit(f.At(".snapshots/s/file"), 0, [&](const ContentPiece& piece) {
        REQUIRE(piece.kind == ContentPiece::Kind::kChunk);
        REQUIRE_OK(
            reader->Read(piece.chunk, MutableByteView(read).subspan(piece.offset, piece.length)));
        return true;
      });
  REQUIRE_OK(visited);
  CHECK(read == data);
}

// The visible state of the root directory: names and contents.
std::map<std::string, std::string> StateOf(FileSystem& fs, InodeNumber root) {
  std::map<std::string, std::string> state;
  for (const std::string& name : ListNames(fs, root)) {
    const auto found = fs.Lookup(root, name);
    REQUIRE_OK(found);
    const auto bytes = ReadFile(fs, found->inode);
    REQUIRE_OK(bytes);
    state[name] = AsText(*bytes);
    fs.Forget(found->inode, 1);
  }
  return state;
}

TEST_CASE("any order of changes, snapshots and removals leaves every snapshot as it was") {
  const uint64_t seed = GENERATE(1, 2, 3, 4);
  Random random(seed);
  Fixture f;
  std::map<std::string, std::map<std::string, std::string>> wanted;
  for (int step = 0; step < 300; ++step) {
    const std::string name = fmt::format("f{}", random.Below(6));
    const std::string snapshot = fmt::format("s{}", random.Below(8));
    const uint64_t way = random.Below(20);
    if (way < 9) {
      f.Write(name, fmt::format("{} of step {}", std::string(random.Below(3000), 'x'), step));
    } else if (way < 12) {
      f.fs->Unlink(kRootInode, name).IgnoreError("perhaps there is no such file");
    } else if (way < 14) {
      f.fs->Rename(kRootInode, name, kRootInode, "f0", RenameMode::kReplace)
          .IgnoreError("perhaps there is no such file");
    } else if (way < 17) {
      if (f.fs->snapshots().Create(snapshot).ok()) wanted[snapshot] = StateOf(*f.fs, kRootInode);
    } else if (way == 17) {
      REQUIRE(f.fs->snapshots().Remove(snapshot).ok() == (wanted.erase(snapshot) > 0));
    } else if (way == 18) {
      REQUIRE_OK(f.fs->SyncAll());
      if (random.OneIn(2)) REQUIRE_OK(f.fs->snapshots().AwaitRemovals());
    } else if (random.OneIn(4)) {
      REQUIRE_OK(f.fs->maintenance().CollectGarbage(false));
    } else if (random.OneIn(3)) {
      f.store.Reopen();
      f.fs = &f.store.fs();
    }
    if (step % 10 != 9) continue;
    for (const auto& [kept, state] : wanted)
      REQUIRE(StateOf(*f.fs, f.At(".snapshots/" + kept)) == state);
  }
}

TEST_CASE("snapshots are made, read and removed while files are written") {
  Fixture f;
  for (int i = 0; i < 4; ++i) f.Write(fmt::format("f{}", i), "0");
  std::atomic<bool> stop = false;
  // Each round writes the files in order. So in any snapshot a file is at most one round behind the
  // file before it.
  std::thread writer([&] {
    for (int round = 1; !stop; ++round) {
      for (int i = 0; i < 4; ++i) f.Write(fmt::format("f{}", i), std::to_string(round));
    }
  });
  std::thread committer([&] {
    while (!stop) f.fs->SyncAll().IgnoreError("the file system is checked below");
  });
  for (int n = 0; n < 40; ++n) {
    const std::string name = fmt::format("s{}", n % 3);
    f.Create(name);
    const auto state = StateOf(*f.fs, f.At(".snapshots/" + name));
    CHECK(StateOf(*f.fs, f.At(".snapshots/" + name)) == state);
    for (int i = 1; i < 4; ++i) {
      const std::string& text = state.at(fmt::format("f{}", i));
      if (text.empty()) continue;  // truncated, and not yet written
      const std::string& earlier = state.at(fmt::format("f{}", i - 1));
      if (earlier.empty()) continue;
      const int behind = std::stoi(earlier) - std::stoi(text);
      CHECK((behind == 0 || behind == 1));
    }
    REQUIRE_OK(f.fs->snapshots().Remove(name));
  }
  stop = true;
  writer.join();
  committer.join();
  REQUIRE_OK(f.fs->snapshots().AwaitRemovals());
  f.store.Close();
}

}  // namespace
}  // namespace siltfs::testing
