// Snapshots of the metadata store: their place in the order of commits, failures, and races.
#include <atomic>
#include <limits>
#include <thread>

#include "fs/meta/snapshot_metadata.h"
#include "fs/records/schema.h"
#include "fs/versions/snapshot_view.h"
#include "tests/fs/meta/metadata_test_support.h"

namespace siltfs {
namespace {

using testing::Apply;
using testing::MemoryDisk;
using testing::OpenMemoryKvStore;
using testing::OpenOn;
using testing::Put;
using testing::Read;
using testing::Remove;
using testing::Unhurried;

// A limit of inodes for snapshots that may show inodes of any number.
uint64_t AnyInode() { return std::numeric_limits<uint64_t>::max(); }

std::string ReadIn(const MetadataStore& store, const NumberedSnapshot& snapshot,
                   const std::string& key) {
  return Read(*OpenSnapshotMetadata(store, snapshot), key);
}

TEST_CASE("a snapshot shows all operations before it, and none after its commit") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  const std::string key = InodeKey(5);
  Apply(*store, {Put(key, "committed")});
  REQUIRE_OK(store->CommitAll());
  Apply(*store, {Put(key, "applied")}, {1, 2, 3, 4});
  const auto snapshot = store->snapshots()->CreateSnapshot("s", 77, AnyInode);
  REQUIRE_OK(snapshot);
  CHECK(snapshot->record.commit == 2);
  CHECK(snapshot->record.created == 77);
  CHECK(snapshot->record.files == 2);
  Apply(*store, {Put(key, "later"), Put(InodeKey(6), "new")});
  CHECK(ReadIn(*store, *snapshot, key) == "applied");
  REQUIRE_OK(store->CommitAll());
  CHECK(ReadIn(*store, *snapshot, key) == "applied");
  CHECK(ReadIn(*store, *snapshot, InodeKey(6)) == "(none)");
  Apply(*store, {Remove(key)});
  REQUIRE_OK(store->CommitAll());
  CHECK(ReadIn(*store, *snapshot, key) == "applied");
  CHECK(Read(*store, key) == "(none)");
}

TEST_CASE("without snapshots a commit writes nothing but its mutations") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  Apply(*store, {Put(InodeKey(5), "1")});
  REQUIRE_OK(store->CommitAll());
  Apply(*store, {Put(InodeKey(5), "2")});
  REQUIRE_OK(store->CommitAll());
  CHECK(disk.contents().size() == 3);  // and the number of the commit, and the counters
  const auto snapshot = store->snapshots()->CreateSnapshot("s", 0, AnyInode);
  REQUIRE_OK(snapshot);
  Apply(*store, {Put(InodeKey(5), "3")});
  REQUIRE_OK(store->CommitAll());
  CHECK(disk.contents().contains(VersionKey(InodeKey(5), snapshot->number)));
  REQUIRE_OK(store->snapshots()->BeginRemoval(snapshot->number));
  VersionRelease release = store->snapshots()->BeginRelease(snapshot->number);
  REQUIRE_FALSE(*store->snapshots()->ReleaseSome(release, 100));
  REQUIRE_OK(store->snapshots()->EndRemoval(snapshot->number));
  CHECK(disk.contents().size() == 4);  // and the number of the next snapshot
}

TEST_CASE("a snapshot has the limit of inodes of its commit, and later inodes need no versions") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  SnapshotPort& port = *store->snapshots();
  Apply(*store, {Put(InodeKey(5), "old"), Put(InodeKey(6), "old")});
  uint64_t next = 7;
  const auto first = port.CreateSnapshot("first", 0, [&] { return next; });
  REQUIRE_OK(first);
  CHECK(first->record.inode_limit == 7);
  Apply(*store, {Put(InodeKey(6), "new"), Put(InodeKey(7), "new")});
  REQUIRE_OK(store->CommitAll());
  CHECK(disk.contents().contains(VersionKey(InodeKey(6), first->number)));
  CHECK_FALSE(disk.contents().contains(VersionKey(InodeKey(7), first->number)));
  CHECK(ReadIn(*store, *first, InodeKey(6)) == "old");
  CHECK(ReadIn(*store, *first, InodeKey(7)) == "(none)");
  next = 8;
  const auto second = port.CreateSnapshot("second", 0, [&] { return next; });
  REQUIRE_OK(second);
  CHECK(second->record.inode_limit == 8);
  Apply(*store, {Remove(InodeKey(7))});
  REQUIRE_OK(store->CommitAll());
  CHECK(ReadIn(*store, *first, InodeKey(7)) == "(none)");
  CHECK(ReadIn(*store, *second, InodeKey(7)) == "new");
}

TEST_CASE("the limits of inodes do not fall after a snapshot with a greater limit") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  REQUIRE_OK(store->snapshots()->CreateSnapshot("wide", 0, AnyInode));
  const auto next = store->snapshots()->CreateSnapshot("next", 0, [] { return uint64_t{7}; });
  REQUIRE_OK(next);
  CHECK(next->record.inode_limit == AnyInode());
}

TEST_CASE("a snapshot on a full disk is not made, also not later") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  Apply(*store, {Put(InodeKey(5), "1")});
  disk.FailAllWrites({StatusCode::kNoSpace, false});
  REQUIRE_CODE(store->snapshots()->CreateSnapshot("s", 0, AnyInode), kNoSpace);
  disk.Mend();
  REQUIRE_OK(store->CommitAll());
  CHECK(store->snapshots()->Snapshots().empty());
  REQUIRE_OK(store->snapshots()->CreateSnapshot("s", 0, AnyInode));
  CHECK(store->snapshots()->Snapshots().size() == 1);
}

TEST_CASE("after a failed device, the next opening shows whether the snapshot was made") {
  MemoryDisk disk;
  const bool reaches_disk = GENERATE(false, true);
  {
    const auto store = OpenOn(disk);
    disk.FailWrite(1, {StatusCode::kIoError, reaches_disk});
    REQUIRE_CODE(store->snapshots()->CreateSnapshot("s", 0, AnyInode), kIoError);
    REQUIRE_CODE(store->snapshots()->CreateSnapshot("t", 0, AnyInode), kReadOnly);
  }
  const auto store = OpenOn(disk);
  CHECK(store->snapshots()->Snapshots().size() == (reaches_disk ? 1 : 0));
}

TEST_CASE("the keys of snapshots are refused from operations") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  for (const std::string& key : {SnapshotKey(1), std::string(kNextSnapshotKey),
                                 VersionKey(InodeKey(1), 1), VersionListKey(1, 0, InodeKey(1))}) {
    REQUIRE_CODE(store->Apply({Put(key, "")}), kInvalidArgument);
    REQUIRE_CODE(store->WriteThrough({Put(key, "")}), kInvalidArgument);
  }
}

TEST_CASE("a malformed record of a snapshot is damage") {
  MemoryDisk disk;
  {
    const auto store = OpenOn(disk);
    REQUIRE_OK(store->snapshots()->CreateSnapshot("s", 0, AnyInode));
    REQUIRE_OK(store->Close());
  }
  const bool key = GENERATE(false, true);
  const Mutation damage = key ? Put(SnapshotKey(7), "") : Put(SnapshotKey(1), "short");
  REQUIRE_OK(OpenMemoryKvStore(disk)->Write({damage}));
  REQUIRE_CODE(MetadataStore::Open(OpenMemoryKvStore(disk), Unhurried()), kCorruption);
}

TEST_CASE("concurrent snapshots of one name are made once") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  REQUIRE_OK(store->snapshots()->CreateSnapshot("old", 0, AnyInode));
  for (int round = 0; round < 30; ++round) {
    const std::string name = "s" + std::to_string(round);
    std::atomic<int> made = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back(
          [&] { made += store->snapshots()->CreateSnapshot(name, 0, AnyInode).ok() ? 1 : 0; });
    }
    threads.emplace_back([&] { made += store->snapshots()->RenameSnapshot(1, name).ok() ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    REQUIRE(made == 1);
    const auto all = store->snapshots()->Snapshots();
    REQUIRE(std::ranges::count_if(all, [&](const auto& s) { return s.record.name == name; }) == 1);
  }
}

TEST_CASE("a snapshot made during commits is a state between two operations") {
  MemoryDisk disk;
  MetadataOptions options = Unhurried();
  options.group_bytes = 3000;
  const auto store = OpenOn(disk, options);
  Apply(*store, {Put(InodeKey(1), "0"), Put(InodeKey(2), "0")});
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int n = 1; !stop; ++n) {
      const std::string value = std::to_string(n);
      REQUIRE_OK(store->WaitForRoom());
      Apply(*store, {Put(InodeKey(1), value), Put(InodeKey(2), value)});
    }
  });
  std::vector<std::pair<NumberedSnapshot, std::string>> seen;
  for (int n = 0; n < 50; ++n) {
    const auto made = store->snapshots()->CreateSnapshot("s" + std::to_string(n), 0, AnyInode);
    REQUIRE_OK(made);
    const std::string first = ReadIn(*store, *made, InodeKey(1));
    CHECK(ReadIn(*store, *made, InodeKey(2)) == first);
    seen.emplace_back(*made, first);
  }
  stop = true;
  writer.join();
  REQUIRE_OK(store->CommitAll());
  for (const auto& [snapshot, value] : seen) {
    CHECK(ReadIn(*store, snapshot, InodeKey(1)) == value);
    CHECK(ReadIn(*store, snapshot, InodeKey(2)) == value);
  }
}

}  // namespace
}  // namespace siltfs
