// A failing or full disk: committed changes stay, failed calls return errors, and reads continue.
#include <fmt/format.h>

#include "fs/open/store_layout.h"
#include "fs/records/schema.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using Call = FaultEnv::Call;

Attributes Stat(FileSystem& fs, InodeNumber inode) {
  auto attributes = fs.GetAttributes(inode);
  REQUIRE_OK(attributes);
  return *attributes;
}

}  // namespace

TEST_CASE("after a failed sync the store stays read-only, says why, and reads continue") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const Bytes first = RandomBytes(1, 300'000);
  const InodeNumber a = WriteFile(fs, "a", first);
  REQUIRE_OK(fs.SyncAll());
  const Bytes second = RandomBytes(2, 300'000);
  const InodeNumber b = WriteFile(fs, "b", second);
  REQUIRE_FALSE(store.Stats().read_only);

  store.env().Fail(Call::kSync, "segments", StatusCode::kIoError);
  const bool by_fsync = GENERATE(true, false);
  const Status failed = by_fsync ? fs.Fsync(b) : fs.SyncAll();
  REQUIRE_FALSE(failed.ok());
  store.env().Heal();

  // The failed sync must never be retried and then reported as a success.
  REQUIRE_FALSE(fs.Fsync(b).ok());
  REQUIRE_FALSE(fs.SyncAll().ok());
  REQUIRE(store.Stats().read_only);
  REQUIRE(store.Stats().read_only_cause.find("segments") != std::string::npos);
  REQUIRE_CODE(fs.Write(a, 0, Bytes(1)), kReadOnly);
  REQUIRE_CODE(fs.CreateFile(kRootInode, "c", 0644, kCaller), kReadOnly);
  REQUIRE_CODE(fs.Unlink(kRootInode, "a"), kReadOnly);
  REQUIRE_CODE(fs.Rename(kRootInode, "a", kRootInode, "c", RenameMode::kReplace), kReadOnly);
  REQUIRE((*ReadFile(fs, a) == first));
  REQUIRE((*ReadFile(fs, b) == second));
  REQUIRE(ListNames(fs, kRootInode) == std::vector<std::string>{"a", "b"});
  REQUIRE(Stat(fs, kRootInode).links == 2);
  REQUIRE_FALSE(fs.Close().ok());
  store.Crash();

  // The store is back at its last successful commit.
  store.Open();
  REQUIRE(ListNames(store.fs(), kRootInode) == std::vector<std::string>{"a"});
  REQUIRE((*ReadFile(store.fs(), a) == first));
  REQUIRE_OK(store.fs().Unlink(kRootInode, "a"));
  store.Close();
  RecountStore(store.path());
}

TEST_CASE("a failed write to a segment makes the store read-only, and loses nothing committed") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const Bytes first = RandomBytes(1, 300'000);
  const InodeNumber a = WriteFile(fs, "a", first);
  REQUIRE_OK(fs.SyncAll());
  store.env().Fail(Call::kWrite, "segments", StatusCode::kIoError);
  auto created = fs.CreateFile(kRootInode, "b", 0644, kCaller);
  REQUIRE_OK(created);
  Status status;
  const Bytes data = RandomBytes(2, 1u << 20);
  for (uint64_t at = 0; status.ok() && at < (uint64_t{40} << 20); at += data.size())
    status = fs.Write(created->inode, at, RandomBytes(at, data.size()));
  store.env().Heal();
  REQUIRE_FALSE(status.ok());
  // The store turns read-only at once. If it waited for the next commit, it would accept changes
  // that are lost.
  REQUIRE(store.Stats().read_only);
  REQUIRE(store.Stats().read_only_cause.find("segments") != std::string::npos);
  REQUIRE_CODE(fs.MakeDirectory(kRootInode, "c", 0755, kCaller), kReadOnly);
  REQUIRE_CODE(fs.Unlink(kRootInode, "a"), kReadOnly);
  REQUIRE_FALSE(fs.SyncAll().ok());
  REQUIRE((*ReadFile(fs, a) == first));
  store.Crash();
  store.Open();
  REQUIRE(ListNames(store.fs(), kRootInode) == std::vector<std::string>{"a"});
  REQUIRE((*ReadFile(store.fs(), a) == first));
  store.Close();
  RecountStore(store.path());
}

TEST_CASE("on a full disk only writes are refused, until there is room again") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const Bytes first = RandomBytes(1, 300'000);
  const InodeNumber a = WriteFile(fs, "a", first);
  const InodeNumber small = WriteFile(fs, "small", RandomBytes(2, 100));
  store.env().SetAvailable(1u << 20);
  auto created = fs.CreateFile(kRootInode, "b", 0644, kCaller);
  REQUIRE_OK(created);
  Status status;
  uint64_t written = 0;
  for (; status.ok() && written < (uint64_t{40} << 20); written += 1u << 20)
    status = fs.Write(created->inode, written, RandomBytes(written, 1u << 20));
  REQUIRE_CODE(status, kNoSpace);
  written -= 1u << 20;  // the last write was refused
  // A refused write has written nothing.
  REQUIRE(Stat(fs, created->inode).size == written);
  REQUIRE_OK(fs.Fsync(created->inode));
  REQUIRE_FALSE(store.Stats().read_only);
  REQUIRE((*ReadFile(fs, a) == first));
  REQUIRE_OK(fs.Rename(kRootInode, "a", kRootInode, "c", RenameMode::kReplace));
  REQUIRE_OK(fs.Unlink(kRootInode, "small"));
  REQUIRE_CODE(fs.GetAttributes(small), kStale);
  REQUIRE_OK(fs.SyncAll());

  store.env().SetAvailable(std::nullopt);
  REQUIRE_OK(fs.Write(created->inode, written, RandomBytes(written, 1u << 20)));
  fs.ReleaseFile(created->inode);
  fs.Forget(created->inode, 1);
  store.Reopen();
  auto bytes = ReadFile(store.fs(), created->inode);
  REQUIRE_OK(bytes);
  REQUIRE(bytes->size() == written + (1u << 20));
  REQUIRE((Bytes(bytes->end() - (1 << 20), bytes->end()) == RandomBytes(written, 1u << 20)));
  store.Close();
  RecountStore(store.path());
}

TEST_CASE("a file that cannot be folded on a full disk keeps its content and is folded later") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  WriteFile(fs, "filler", RandomBytes(1, 5u << 20));
  // A short file stays raw bytes until it is closed.
  auto created = fs.CreateFile(kRootInode, "a", 0644, kCaller);
  REQUIRE_OK(created);
  const Bytes data = RandomBytes(2, 1500);
  REQUIRE_OK(fs.Write(created->inode, 0, data));
  store.env().SetAvailable(0);
  fs.ReleaseFile(created->inode);
  REQUIRE((*ReadFile(fs, created->inode) == data));
  REQUIRE_OK(fs.SyncAll());
  store.env().SetAvailable(std::nullopt);
  store.Reopen();
  REQUIRE((*ReadFile(store.fs(), created->inode) == data));
  store.Close();
  REQUIRE(RecountStore(store.path()).overlay_extents == 0);
}

TEST_CASE("an operation that fails half-way changes nothing, in memory or on disk") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  auto created = fs.CreateFile(kRootInode, "a", 0644, kCaller);
  REQUIRE_OK(created);
  const InodeNumber file = created->inode;
  MakeFile(fs, kRootInode, "b");
  REQUIRE_OK(fs.Write(file, 0, RandomBytes(1, 1500)));
  REQUIRE_OK(fs.SyncAll());
  store.Crash();
  {  // the file's overlay is unreadable, so its last name cannot be removed
    auto kv = OpenRocksDbStore(
        store.env(), {.path = MetadataPath(store.path()), .ledger_path = LedgerPath(store.path())});
    REQUIRE_OK(kv);
    REQUIRE_OK((*kv)->Write({{OverlayKey(file, 0), "nonsense"}}));
    REQUIRE_OK((*kv)->CloseCleanly());
  }
  FileSystem& again = store.Open();
  auto check = [&] {
    REQUIRE(Stat(again, file).links == 1);
    REQUIRE(*Resolve(again, "a") == file);
    REQUIRE(ListNames(again, kRootInode) == std::vector<std::string>{"a", "b"});
    REQUIRE_OK(Resolve(again, "b"));
  };
  REQUIRE_CODE(again.Unlink(kRootInode, "a"), kCorruption);
  check();
  REQUIRE_CODE(again.Rename(kRootInode, "b", kRootInode, "a", RenameMode::kReplace), kCorruption);
  check();
  // The directory is intact and its counts are right.
  const InodeNumber dir = MakeDir(again, kRootInode, "d");
  REQUIRE_OK(again.Rename(kRootInode, "a", dir, "a", RenameMode::kReplace));
  REQUIRE_OK(again.Rename(kRootInode, "b", dir, "b", RenameMode::kReplace));
  REQUIRE_CODE(again.RemoveDirectory(kRootInode, "d"), kNotEmpty);
  REQUIRE(ListNames(again, kRootInode) == std::vector<std::string>{"d"});
  Bytes byte(1);
  REQUIRE_CODE(again.Read(file, 0, byte), kCorruption);
}

TEST_CASE("a failure while the store is opened leaves it unchanged") {
  StoreFixture store;
  const Bytes data = RandomBytes(1, 300'000);
  const InodeNumber file = WriteFile(store.Open(), "a", data);
  REQUIRE_OK(store.fs().SyncAll());
  store.Crash();
  const std::string part = GENERATE("superblock", "index", "segments");
  INFO("changes of " << part << " fail");
  store.env().Fail(Call::kChange, part, StatusCode::kIoError);
  const Status opened = store.TryOpen();
  store.env().Heal();
  // If the index cannot be changed, the store may or may not open. If the superblock or the
  // segments cannot be changed, the store does not open.
  if (part != "index" || !opened.ok()) REQUIRE_CODE(opened, kIoError);
  store.Open();
  REQUIRE((*ReadFile(store.fs(), file) == data));
  store.Close();
  RecountStore(store.path());
}

}  // namespace siltfs::testing
