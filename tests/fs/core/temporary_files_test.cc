// Files made without a name: used, named, forgotten, and left by a crash.
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

Attributes Stat(FileSystem& fs, InodeNumber inode) {
  auto attributes = fs.GetAttributes(inode);
  REQUIRE_OK(attributes);
  return *attributes;
}

struct Fixture {
  StoreFixture store;
  FileSystem& fs = store.Open();

  InodeNumber Make(InodeNumber directory = kRootInode) {
    auto made = fs.MakeTemporaryFile(directory, 0640, kCaller);
    REQUIRE_OK(made);
    return made->inode;
  }
  void LetGo(InodeNumber inode) {
    fs.ReleaseFile(inode);
    fs.Forget(inode, 1);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a temporary file is open, has no name, and ends with its last use") {
  const Attributes before = Stat(fs, kRootInode);
  auto made = fs.MakeTemporaryFile(kRootInode, 0640, kCaller);
  REQUIRE_OK(made);
  REQUIRE(made->mode == 0100640);
  REQUIRE(made->links == 0);
  REQUIRE(made->uid == kCaller.uid);
  const InodeNumber file = made->inode;
  const Bytes data = RandomBytes(1, 300'000);
  REQUIRE_OK(fs.Write(file, 0, data));
  REQUIRE_OK(fs.SetXattr(file, "user.x", "value", XattrMode::kSet));
  REQUIRE((*ReadFile(fs, file) == data));
  REQUIRE(ListNames(fs, kRootInode).empty());
  REQUIRE(Stat(fs, kRootInode).mtime == before.mtime);
  REQUIRE(Stat(fs, kRootInode).ctime == before.ctime);
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
  REQUIRE(store.Stats().files == 0);
  REQUIRE(store.Stats().logical_bytes == 0);
  store.Close();
  const StoreCount count = RecountStore(store.path());
  REQUIRE(count.files == 0);
  REQUIRE(count.orphans == 0);
  REQUIRE(count.xattrs == 0);
}

TEST_CASE_METHOD(Fixture, "a linked temporary file is a file like others") {
  const InodeNumber dir = MakeDir(fs, kRootInode, "d");
  const InodeNumber file = Make();
  const Bytes data = RandomBytes(1, 300'000);
  REQUIRE_OK(fs.Write(file, 0, data));
  REQUIRE_OK(fs.Link(file, dir, "a"));
  REQUIRE(Stat(fs, file).links == 1);
  REQUIRE_OK(fs.Link(file, kRootInode, "b"));
  REQUIRE(Stat(fs, file).links == 2);
  fs.Forget(file, 2);
  REQUIRE_OK(fs.Unlink(kRootInode, "b"));
  LetGo(file);
  REQUIRE(Stat(fs, file).links == 1);
  REQUIRE(*Resolve(fs, "d/a") == file);
  REQUIRE(store.Stats().files == 1);
  store.Close();
  const StoreCount count = RecountStore(store.path());
  REQUIRE(count.orphans == 0);
  REQUIRE(count.overlay_extents == 0);  // the file was folded when it was released
  store.Open();
  REQUIRE((*ReadFile(store.fs(), file) == data));
  REQUIRE_OK(store.fs().Unlink(dir, "a"));
  REQUIRE_CODE(store.fs().GetAttributes(file), kStale);
}

TEST_CASE_METHOD(Fixture, "only an open file that never had a name can be given its first name") {
  const InodeNumber used = Make();
  fs.ReleaseFile(used);
  REQUIRE_CODE(fs.Link(used, kRootInode, "closed"), kNotFound);
  const InodeNumber named = Make();
  REQUIRE_OK(fs.Link(named, kRootInode, "named"));
  REQUIRE_OK(fs.Unlink(kRootInode, "named"));
  REQUIRE_CODE(fs.Link(named, kRootInode, "again"), kNotFound);
  auto created = fs.CreateFile(kRootInode, "a", 0644, kCaller);
  REQUIRE_OK(created);
  REQUIRE_OK(fs.Unlink(kRootInode, "a"));
  REQUIRE_CODE(fs.Link(created->inode, kRootInode, "b"), kNotFound);
  REQUIRE(ListNames(fs, kRootInode).empty());
  fs.Forget(used, 1);
  fs.Forget(named, 1);
  LetGo(named);
  LetGo(created->inode);
  REQUIRE(store.Stats().files == 0);
  store.Close();
  REQUIRE(RecountStore(store.path()).orphans == 0);
}

TEST_CASE_METHOD(Fixture, "a temporary file is made in a directory, with the directory's group") {
  REQUIRE_CODE(fs.MakeTemporaryFile(MakeFile(fs, kRootInode, "f"), 0644, kCaller), kNotADirectory);
  auto removed = fs.MakeDirectory(kRootInode, "removed", 0755, kCaller);
  REQUIRE_OK(removed);
  REQUIRE_OK(fs.RemoveDirectory(kRootInode, "removed"));
  REQUIRE_CODE(fs.MakeTemporaryFile(removed->inode, 0644, kCaller), kNotFound);
  auto shared = fs.MakeDirectory(kRootInode, "shared", 02775, {.uid = 1, .gid = 77});
  REQUIRE_OK(shared);
  REQUIRE(Stat(fs, Make(shared->inode)).gid == 77);
}

TEST_CASE_METHOD(Fixture, "a temporary file survives a crash only if it was linked and synced") {
  const InodeNumber nameless = Make();
  REQUIRE_OK(fs.Write(nameless, 0, RandomBytes(1, 300'000)));
  const InodeNumber linked = Make();
  const Bytes data = RandomBytes(2, 300'000);
  REQUIRE_OK(fs.Write(linked, 0, data));
  REQUIRE_OK(fs.Fsync(linked));
  REQUIRE_OK(fs.Link(linked, kRootInode, "linked"));
  REQUIRE_OK(fs.Fsync(linked));
  const InodeNumber late = Make();
  REQUIRE_OK(fs.SyncAll());
  REQUIRE_OK(fs.Link(late, kRootInode, "late"));  // the name is not committed
  store.Crash();
  REQUIRE(RecountStore(store.path()).orphans == 2);
  store.Open();
  REQUIRE(ListNames(store.fs(), kRootInode) == std::vector<std::string>{"linked"});
  REQUIRE((*ReadFile(store.fs(), linked) == data));
  REQUIRE_CODE(store.fs().GetAttributes(nameless), kStale);
  REQUIRE_CODE(store.fs().GetAttributes(late), kStale);
  store.Close();
  const StoreCount count = RecountStore(store.path());
  REQUIRE(count.orphans == 0);
  REQUIRE(count.files == 1);
}

TEST_CASE_METHOD(Fixture, "on a failed store temporary files are neither made nor linked") {
  const InodeNumber file = Make();
  REQUIRE_OK(fs.Write(file, 0, RandomBytes(1, 300'000)));
  store.env().Fail(FaultEnv::Call::kSync, "segments", StatusCode::kIoError);
  REQUIRE_FALSE(fs.SyncAll().ok());
  store.env().Heal();
  REQUIRE_CODE(fs.MakeTemporaryFile(kRootInode, 0644, kCaller), kReadOnly);
  REQUIRE_CODE(fs.Link(file, kRootInode, "a"), kReadOnly);
  REQUIRE(Stat(fs, file).links == 0);
  REQUIRE(ListNames(fs, kRootInode).empty());
  LetGo(file);
}

TEST_CASE_METHOD(Fixture, "a refused link leaves a temporary file unchanged") {
  const InodeNumber file = Make();
  MakeFile(fs, kRootInode, "taken");
  REQUIRE_CODE(fs.Link(file, kRootInode, "taken"), kAlreadyExists);
  REQUIRE(Stat(fs, file).links == 0);
  REQUIRE_OK(fs.Link(file, kRootInode, "free"));
  REQUIRE(Stat(fs, file).links == 1);
}

}  // namespace siltfs::testing
