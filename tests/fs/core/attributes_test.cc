// Attributes, sizes, times and extended attributes.
#include <fmt/format.h>

#include <algorithm>

#include "fs/open/store_layout.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"
#include "fs/rocksdb/rocksdb_store.h"
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

Result<Attributes> Resize(FileSystem& fs, InodeNumber inode, uint64_t size) {
  AttributeChange change;
  change.size = size;
  return fs.SetAttributes(inode, change);
}

}  // namespace

TEST_CASE("attributes keep the values set, before and after a remount") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = MakeFile(fs, kRootInode, "a");
  AttributeChange change;
  change.mode = 04711;
  change.uid = 4'000'000'000;
  change.gid = 5;
  change.atime = -1'000'000'000;  // before 1970
  change.mtime = 4'102'444'800'123'456'789;
  change.ctime = 17;
  REQUIRE_OK(fs.SetAttributes(file, change));
  auto check = [&store, file] {
    const Attributes a = Stat(store.fs(), file);
    REQUIRE(a.mode == 0104711);
    REQUIRE(a.uid == 4'000'000'000);
    REQUIRE(a.gid == 5);
    REQUIRE(a.atime == -1'000'000'000);
    REQUIRE(a.mtime == 4'102'444'800'123'456'789);
    REQUIRE(a.ctime == 17);
  };
  check();
  store.Reopen();
  check();
  change = {};
  change.mode = 0170000 | 0600;  // the type must not change
  REQUIRE_OK(store.fs().SetAttributes(file, change));
  REQUIRE(Stat(store.fs(), file).mode == 0100600);
}

TEST_CASE("each change sets the right times, and no others") {
  StoreFixture store;
  store.env().SetClock(100);
  FileSystem& fs = store.Open();
  const InodeNumber dir = MakeDir(fs, kRootInode, "d");
  const InodeNumber file = MakeFile(fs, dir, "a");
  REQUIRE(Stat(fs, file).btime == 100);
  REQUIRE(Stat(fs, dir).mtime == 100);

  store.env().SetClock(200);
  REQUIRE_OK(fs.Write(file, 0, Bytes(10, 'x')));
  REQUIRE(Stat(fs, file).mtime == 200);
  REQUIRE(Stat(fs, file).ctime == 200);
  REQUIRE(Stat(fs, file).btime == 100);
  REQUIRE(Stat(fs, dir).mtime == 100);

  store.env().SetClock(300);
  AttributeChange mode;
  mode.mode = 0600;
  REQUIRE_OK(fs.SetAttributes(file, mode));
  REQUIRE(Stat(fs, file).mtime == 200);
  REQUIRE(Stat(fs, file).ctime == 300);

  store.env().SetClock(400);
  REQUIRE_OK(Resize(fs, file, 5));
  REQUIRE(Stat(fs, file).mtime == 400);

  store.env().SetClock(500);
  REQUIRE_OK(fs.Link(file, dir, "b"));
  REQUIRE(Stat(fs, file).ctime == 500);
  REQUIRE(Stat(fs, file).mtime == 400);
  REQUIRE(Stat(fs, dir).mtime == 500);

  store.env().SetClock(600);
  REQUIRE_OK(fs.Unlink(dir, "b"));
  REQUIRE(Stat(fs, file).ctime == 600);
  REQUIRE(Stat(fs, dir).ctime == 600);

  store.env().SetClock(700);
  REQUIRE_OK(fs.SetXattr(file, "user.x", "1", XattrMode::kSet));
  REQUIRE(Stat(fs, file).ctime == 700);
  REQUIRE(Stat(fs, file).mtime == 400);

  store.env().SetClock(800);  // opening, folding and syncing change no times
  REQUIRE_OK(fs.OpenFile(file, false));
  fs.ReleaseFile(file);
  REQUIRE_OK(fs.Fsync(file));
  REQUIRE(Stat(fs, file).mtime == 400);
  REQUIRE(Stat(fs, file).ctime == 700);
  REQUIRE_OK(fs.Write(file, 0, ByteView()));  // nothing written
  REQUIRE(Stat(fs, file).mtime == 400);
}

TEST_CASE("files grow sparse up to the largest offset and not a byte further") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = MakeFile(fs, kRootInode, "a");
  REQUIRE_OK(Resize(fs, file, kMaxFileBytes));
  REQUIRE_CODE(Resize(fs, file, kMaxFileBytes + 1), kFileTooLarge);
  REQUIRE_CODE(fs.Write(file, kMaxFileBytes, Bytes(1, 'x')), kFileTooLarge);
  REQUIRE_CODE(fs.Write(file, kMaxFileBytes - 1, Bytes(2, 'x')), kFileTooLarge);
  REQUIRE_CODE(fs.Write(file, ~uint64_t{0}, Bytes(2, 'x')), kFileTooLarge);
  const Bytes data = RandomBytes(1, 100'000);
  const uint64_t middle = kMaxFileBytes / 2 + 12'345;
  REQUIRE_OK(fs.Write(file, middle, data));
  REQUIRE_OK(fs.Write(file, kMaxFileBytes - 1, Bytes(1, 'z')));
  auto check = [&] {
    REQUIRE(Stat(store.fs(), file).size == kMaxFileBytes);
    Bytes got(data.size() + 20);
    REQUIRE(*store.fs().Read(file, middle - 10, got) == got.size());
    REQUIRE(std::count(got.begin(), got.begin() + 10, 0) == 10);
    REQUIRE((Bytes(got.begin() + 10, got.end() - 10) == data));
    Bytes last(10);
    REQUIRE(*store.fs().Read(file, kMaxFileBytes - 1, last) == 1);
    REQUIRE(last[0] == 'z');
    REQUIRE(*store.fs().Read(file, kMaxFileBytes, last) == 0);
    REQUIRE(*store.fs().Read(file, ~uint64_t{0}, last) == 0);
  };
  check();
  store.Reopen();
  check();
  REQUIRE(Stat(store.fs(), file).allocated_bytes == data.size() + 1);
  REQUIRE_OK(Resize(store.fs(), file, middle + 10));
  REQUIRE(Stat(store.fs(), file).size == middle + 10);
  store.Close();
  RecountStore(store.path());
}

TEST_CASE("truncated bytes do not come back when a file grows again") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = WriteFile(fs, "a", RandomBytes(1, 300'000));
  SECTION("at once") {}
  SECTION("after it was cut into chunks again") {
    REQUIRE_OK(Resize(fs, file, 1000));
    REQUIRE_OK(fs.OpenFile(file, false));
    fs.ReleaseFile(file);
  }
  REQUIRE_OK(Resize(fs, file, 1000));
  REQUIRE_OK(Resize(fs, file, 300'000));
  Bytes expected = RandomBytes(1, 1000);
  expected.resize(300'000);
  REQUIRE((*ReadFile(fs, file) == expected));
  store.Reopen();
  REQUIRE((*ReadFile(store.fs(), file) == expected));
}

TEST_CASE("a truncated file keeps no chunks that it does not need") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  // A hole in front, so that the size does not equal the allocated bytes.
  auto created = fs.CreateFile(kRootInode, "a", 0644, kCaller);
  REQUIRE_OK(created);
  const InodeNumber file = created->inode;
  REQUIRE_OK(fs.Write(file, 1'000'000, RandomBytes(1, 1'000'000)));
  fs.ReleaseFile(file);
  fs.Forget(file, 1);
  const uint64_t before = store.Stats().chunks_logical;
  REQUIRE(before > 60);
  SECTION("while it is open") {
    REQUIRE_OK(fs.OpenFile(file, false));
    REQUIRE_OK(Resize(fs, file, 1'010'000));
    fs.ReleaseFile(file);
  }
  SECTION("while it is closed") { REQUIRE_OK(Resize(fs, file, 1'010'000)); }
  REQUIRE(store.Stats().chunks_logical < 10);
  REQUIRE(store.Stats().logical_bytes == 10'000);
  REQUIRE(Stat(fs, file).allocated_bytes == 10'000);
  store.Close();
  REQUIRE(RecountStore(store.path()).logical_bytes == 10'000);
}

TEST_CASE("many open files keep the data that waits in memory to be cut") {
  constexpr uint64_t kFiles = 30;
  constexpr size_t kBytes = 1'000'000;  // all files together have more than may wait in memory
  StoreFixture store;
  FileSystem& fs = store.Open();
  std::vector<InodeNumber> files;
  for (uint64_t i = 0; i < kFiles; ++i) {
    auto created = fs.CreateFile(kRootInode, fmt::format("f{}", i), 0644, kCaller);
    REQUIRE_OK(created);
    files.push_back(created->inode);
    fs.Forget(created->inode, 1);
    // In a new file only a stream from offset 0 is cut while it is written. Other bytes wait as raw
    // bytes.
    REQUIRE_OK(fs.Write(created->inode, 10'000, RandomBytes(i, kBytes)));
  }
  for (uint64_t i = 0; i < kFiles; ++i)  // continue writing them
    REQUIRE_OK(fs.Write(files[i], 10'000 + i * 1000, RandomBytes(100 + i, 5000)));
  auto check = [&] {
    for (uint64_t i = 0; i < kFiles; ++i) {
      Bytes expected = RandomBytes(i, kBytes);
      const Bytes second = RandomBytes(100 + i, 5000);
      std::copy(second.begin(), second.end(), expected.begin() + static_cast<ptrdiff_t>(i) * 1000);
      expected.insert(expected.begin(), 10'000, 0);
      REQUIRE((*ReadFile(store.fs(), files[i]) == expected));
    }
  };
  check();
  for (InodeNumber file : files) fs.ReleaseFile(file);
  check();
  store.Close();
  REQUIRE(RecountStore(store.path()).overlay_extents == 0);
}

TEST_CASE("only regular files have a size to set") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber dir = MakeDir(fs, kRootInode, "d");
  auto fifo = fs.MakeNode(kRootInode, "fifo", 0010600, 0, kCaller);
  REQUIRE_CODE(Resize(fs, dir, 0), kIsADirectory);
  REQUIRE_CODE(Resize(fs, fifo->inode, 0), kInvalidArgument);
  REQUIRE_CODE(fs.OpenFile(dir, false), kIsADirectory);
  Bytes byte(1);
  REQUIRE_CODE(fs.Read(dir, 0, byte), kIsADirectory);
  REQUIRE_CODE(fs.GetAttributes(987'654), kStale);
  REQUIRE_CODE(fs.Fsync(987'654), kStale);
}

TEST_CASE("opening with truncation empties a file") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = WriteFile(fs, "a", RandomBytes(1, 100'000));
  REQUIRE_OK(fs.OpenFile(file, true));
  REQUIRE(Stat(fs, file).size == 0);
  fs.ReleaseFile(file);
  REQUIRE(store.Stats().logical_bytes == 0);
  REQUIRE(store.Stats().chunks_logical == 0);
}

TEST_CASE("extended attributes are kept, replaced and removed") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = MakeFile(fs, kRootInode, "a");
  REQUIRE_CODE(fs.GetXattr(file, "user.a"), kNoAttribute);
  REQUIRE(fs.ListXattrs(file)->empty());
  REQUIRE_CODE(fs.SetXattr(file, "user.a", "1", XattrMode::kReplace), kNoAttribute);
  REQUIRE_OK(fs.SetXattr(file, "user.a", "1", XattrMode::kCreate));
  REQUIRE_CODE(fs.SetXattr(file, "user.a", "2", XattrMode::kCreate), kAlreadyExists);
  REQUIRE(*fs.GetXattr(file, "user.a") == "1");
  REQUIRE_OK(fs.SetXattr(file, "user.a", std::string("2\0\xff", 3), XattrMode::kReplace));
  REQUIRE_OK(fs.SetXattr(file, "user.empty", "", XattrMode::kSet));
  REQUIRE_OK(fs.SetXattr(kRootInode, "user.a", "the root's", XattrMode::kSet));
  store.Reopen();
  FileSystem& again = store.fs();
  REQUIRE(*again.GetXattr(file, "user.a") == std::string("2\0\xff", 3));
  REQUIRE(again.GetXattr(file, "user.empty")->empty());
  REQUIRE(*again.ListXattrs(file) == std::vector<std::string>{"user.a", "user.empty"});
  REQUIRE_OK(again.RemoveXattr(file, "user.a"));
  REQUIRE_CODE(again.RemoveXattr(file, "user.a"), kNoAttribute);
  REQUIRE(*again.ListXattrs(file) == std::vector<std::string>{"user.empty"});
  REQUIRE(*again.GetXattr(kRootInode, "user.a") == "the root's");
  store.Close();
  REQUIRE(RecountStore(store.path()).xattrs == 2);
}

TEST_CASE("extended attributes have Linux's limits") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = MakeFile(fs, kRootInode, "a");
  const std::string longest = "user." + std::string(250, 'n');
  const std::string largest(kMaxXattrValueBytes, 'v');
  REQUIRE_OK(fs.SetXattr(file, longest, largest, XattrMode::kSet));
  REQUIRE(*fs.GetXattr(file, longest) == largest);
  REQUIRE_CODE(fs.SetXattr(file, longest + "n", "", XattrMode::kSet), kBufferTooSmall);
  REQUIRE_CODE(fs.SetXattr(file, "user.b", largest + "v", XattrMode::kSet), kBufferTooSmall);
  REQUIRE_CODE(fs.SetXattr(file, "", "", XattrMode::kSet), kBufferTooSmall);
  REQUIRE(fs.ListXattrs(file)->size() == 1);
}

TEST_CASE("a file has at most kMaxLinks names") {
  StoreFixture store;
  const InodeNumber file = MakeFile(store.Open(), kRootInode, "a");
  store.Close();
  {  // as if the file had this many links
    auto kv = OpenRocksDbStore(
        store.env(), {.path = MetadataPath(store.path()), .ledger_path = LedgerPath(store.path())});
    REQUIRE_OK(kv);
    auto value = (*kv)->Get(InodeKey(file));
    REQUIRE_OK(value);
    auto record = InodeRecord::Decode(**value);
    REQUIRE_OK(record);
    record->links = kMaxLinks - 1;
    REQUIRE_OK((*kv)->Write({{InodeKey(file), record->Encode()}}));
    REQUIRE_OK((*kv)->CloseCleanly());
  }
  store.Open();
  REQUIRE_OK(store.fs().Link(file, kRootInode, "b"));
  REQUIRE_CODE(store.fs().Link(file, kRootInode, "c"), kTooManyLinks);
}

TEST_CASE("a write that a cache sends late does not change times that the cache has set") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = MakeFile(fs, kRootInode, "a");
  const Bytes data = RandomBytes(1, 100);
  const auto write = [&](int64_t clock, WriteTimes times) {
    store.env().SetClock(clock);
    REQUIRE_OK(fs.Write(file, 0, data, Privileges::kKeep, times));
    return Stat(fs, file);
  };
  REQUIRE_OK(fs.OpenFile(file, false));
  CHECK(write(1000, WriteTimes::kMayKeep).mtime == 1000);  // no times were set yet
  AttributeChange told;
  told.mtime = told.ctime = 900;
  REQUIRE_OK(fs.SetAttributes(file, told));
  const Attributes late = write(1100, WriteTimes::kMayKeep);
  CHECK(late.mtime == 900);
  CHECK(late.ctime == 900);
  CHECK(write(1200, WriteTimes::kNow).mtime == 1200);
  fs.ReleaseFile(file);
  REQUIRE_OK(fs.OpenFile(file, false));  // opened again: no times were set yet
  CHECK(write(1300, WriteTimes::kMayKeep).ctime == 1300);
  AttributeChange access;
  access.atime = 5;
  access.ctime = 1350;
  REQUIRE_OK(fs.SetAttributes(file, access));
  CHECK(write(1400, WriteTimes::kMayKeep).mtime == 1400);
  fs.ReleaseFile(file);
}

}  // namespace siltfs::testing
