// `fsck -y` of stores with snapshots: each finding is repaired, and the snapshots can be read.
#include <algorithm>
#include <string>

#include "fs/interface/snapshots.h"
#include "fs/records/directory_entry.h"
#include "fs/records/lineage.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "store/base/coding.h"
#include "tests/fs/check/snapshot_store.h"
#include "tests/fs/core/snapshot_streams.h"
#include "tests/fs/repair/repaired_store.h"

namespace siltfs::testing {
namespace {

RepairReport RequireSnapshotsRepaired(SnapshotStore& store, const Codes& codes, bool data = false) {
  return RequireCodesRepaired(store.checked(), RepairMode::kAll, codes, data);
}

std::vector<std::string> NamesOf(SnapshotStore& store) {
  FileSystem& fs = store.checked().fixture().Open(true);
  std::vector<std::string> names;
  for (const SnapshotInfo& snapshot : fs.snapshots().List()) names.push_back(snapshot.name);
  store.checked().fixture().Close();
  return names;
}

// Whether `after` differs from `before` only by zeros in the lost ranges of this path.
bool IsOnlyLost(const RepairReport& report, const std::string& path, Bytes before,
                const Bytes& after) {
  for (const LostContent& lost : report.lost) {
    if (lost.path != path) continue;
    REQUIRE(lost.range.offset + lost.range.length <= before.size());
    std::fill_n(before.begin() + static_cast<ptrdiff_t>(lost.range.offset), lost.range.length,
                uint8_t{0});
  }
  return before == after;
}

// Makes a new snapshot and removes all, so that a wrong list of versions shows.
void RequireRemovable(SnapshotStore& store) {
  FileSystem& fs = store.checked().fixture().Open();
  REQUIRE_OK(fs.snapshots().Create("new"));
  WriteFile(fs, "same", RandomBytes(9, 100));
  REQUIRE_OK(fs.SyncAll());
  for (const SnapshotInfo& snapshot : fs.snapshots().List())
    REQUIRE_OK(fs.snapshots().Remove(snapshot.name));
  REQUIRE_OK(fs.snapshots().AwaitRemovals());
  store.checked().fixture().Close();
  store.checked().EditMetadata([](KvStore& kv) {
    for (const Table table : {Table::kVersion, Table::kVersionList}) {
      const KeyRange range = RangeOf(table);
      const auto metadata = kv.Snapshot();
      const auto iterator = metadata->NewIteratorBelow(range.end);
      iterator->Seek(range.begin);
      CHECK_FALSE(iterator->Valid());
      REQUIRE_OK(iterator->status());
    }
  });
  RequireCodes(store.Check(true), {});
}

}  // namespace

TEST_CASE("a repair of other findings leaves snapshots as they are") {
  SnapshotStore store;
  CheckedStore& checked = store.checked();
  SECTION("keys of no table") {
    checked.Put("?", "");
    RequireSnapshotsRepaired(store, {"metadata-key"});
    store.RequireFiles();
  }
  SECTION("a file without a name comes into lost+found only in the live file system") {
    const auto remove = [&](KvStore& kv) {
      const auto value = kv.Get(DirectoryEntryKey(kRootInode, "same"));
      REQUIRE_OK(value);
      const auto entry = NameEntry::Decode(value->value());
      REQUIRE_OK(entry);
      // As a commit would, with versions, so that only the live file system is damaged.
      const std::string name = DirectoryEntryKey(kRootInode, "same");
      const std::string cookie = DirectoryCookieKey(kRootInode, entry->cookie);
      const auto cookie_value = kv.Get(cookie);
      REQUIRE_OK(cookie_value);
      REQUIRE_OK(kv.Write({{name, std::nullopt},
                           {cookie, std::nullopt},
                           {VersionKey(name, 2), EncodeVersion(*value)},
                           {VersionListKey(2, 0, name), ""},
                           {VersionKey(cookie, 2), EncodeVersion(*cookie_value)},
                           {VersionListKey(2, 0, cookie), ""}}));
    };
    checked.EditMetadata(remove);
    RequireSnapshotsRepaired(store, {"unreachable", "entry-count"});
    store.live["lost+found/#" + std::to_string(store.same)] = store.live["same"];
    store.live.erase("same");
    store.RequireFiles();
  }
  SECTION("a live file with a lost chunk, of which snapshots show another version") {
    store.DamageChunk(store.ChunksOf(store.changed)[0]);
    const RepairReport report =
        RequireSnapshotsRepaired(store, {"block-payload", "chunk-damaged"}, true);
    const Bytes changed = store.Read("")["changed"];
    CHECK(IsOnlyLost(report, "/changed", store.live["changed"], changed));
    CHECK(changed != store.live["changed"]);
    store.live["changed"] = changed;
    store.RequireFiles();
  }
  RequireRemovable(store);
}

TEST_CASE("a damaged record of a snapshot is repaired, and the snapshot stays") {
  SnapshotStore store;
  CheckedStore& checked = store.checked();
  SnapshotRecord record = store.Record(SnapshotStore::kTuesday);
  const auto rename = [&](const std::string& name) {
    FileSystem& fs = checked.fixture().Open();
    REQUIRE_OK(fs.snapshots().Rename(name, "tuesday"));
    checked.fixture().Close();
  };
  SECTION("a malformed record") {
    checked.Put(SnapshotKey(SnapshotStore::kTuesday), "?");
    RequireSnapshotsRepaired(store, {"snapshot-record"});
    rename("recovered-2");
  }
  SECTION("a malformed key") {
    checked.Put("mm", record.Encode());
    RequireSnapshotsRepaired(store, {"snapshot-record"});
  }
  SECTION("two snapshots with one name") {
    record.name = "monday";
    store.PutRecord(SnapshotStore::kTuesday, record);
    RequireSnapshotsRepaired(store, {"snapshot-record"});
    rename("monday-2");
  }
  SECTION("two snapshots with one name, and the name with a suffix is taken") {
    record.name = "monday";
    store.PutRecord(SnapshotStore::kTuesday, record);
    record.name = "monday-2";
    store.PutRecord(3, record);
    RequireSnapshotsRepaired(store, {"snapshot-record"});
    CHECK(NamesOf(store) == std::vector<std::string>{"monday", "monday-2-2", "monday-2"});
    rename("monday-2-2");
  }
  SECTION("an impossible name") {
    record.name = "a/b";
    store.PutRecord(SnapshotStore::kTuesday, record);
    RequireSnapshotsRepaired(store, {"snapshot-record"});
    rename("recovered-2");
  }
  SECTION("no next number") {
    checked.Remove(std::string(kNextSnapshotKey));
    RequireSnapshotsRepaired(store, {"snapshot-record", "snapshot-version"});
  }
  SECTION("an impossible next number") {
    checked.Put(std::string(kNextSnapshotKey), Encoder().U64(uint64_t{1} << 40).Take());
    RequireSnapshotsRepaired(store, {"snapshot-record"});
  }
  SECTION("a limit of inodes below that of an older snapshot") {
    record.inode_limit = 3;
    store.PutRecord(SnapshotStore::kTuesday, record);
    RequireSnapshotsRepaired(store, {"snapshot-record"});
  }
  SECTION("a limit of inodes that no inode number has reached") {
    record.inode_limit = uint64_t{1} << 50;
    store.PutRecord(SnapshotStore::kTuesday, record);
    RequireSnapshotsRepaired(store, {"snapshot-record"});
  }
  store.RequireFiles();
  RequireRemovable(store);
}

// Sends "monday" to the store itself, which receives it as "received".
void ReceiveMonday(SnapshotStore& store) {
  FileSystem& fs = store.checked().fixture().Open();
  REQUIRE_OK(Receive(fs, Send(fs, {.snapshot = "monday"}), "received"));
  store.checked().fixture().Close();
}

TEST_CASE("a damaged record of a lineage is repaired, and the received snapshot stays") {
  SnapshotStore store;
  CheckedStore& checked = store.checked();
  ReceiveMonday(store);
  RequireCodes(store.Check(true), {});
  SECTION("a malformed record") {
    checked.Put(LineageKey(1), "?");
    RequireSnapshotsRepaired(store, {"lineage-record"});
  }
  SECTION("no record") {
    checked.Remove(LineageKey(1));
    RequireSnapshotsRepaired(store, {"lineage-record"});
  }
  SECTION("a malformed key") {
    checked.Put("lx", LineageRecord{}.Encode());
    RequireSnapshotsRepaired(store, {"lineage-record"});
  }
  SECTION("an impossible number") {
    checked.Put(LineageKey(kLineageLimit), LineageRecord{}.Encode());
    RequireSnapshotsRepaired(store, {"lineage-record"});
  }
  SECTION("records of inodes that no lineage has") {
    const std::string stray = InodeKey(InLineage(7, 5));
    checked.EditMetadata([&](KvStore& kv) {
      const auto value = kv.Get(InodeKey(store.same));
      REQUIRE_OK(value);
      REQUIRE_OK(kv.Write({{stray, **value}}));
    });
    RequireSnapshotsRepaired(store, {"lineage-record"});
    FileSystem& fs = checked.fixture().Open();
    REQUIRE_OK(fs.snapshots().AwaitRemovals());
    checked.fixture().Close();
    checked.EditMetadata([&](KvStore& kv) { CHECK(kv.Get(stray)->has_value() == false); });
  }
  store.RequireFiles();
  CHECK(store.Read("received") == store.monday);
  RequireRemovable(store);
}

TEST_CASE("a received snapshot whose records do not agree is reported, and can be deleted") {
  SnapshotStore store;
  CheckedStore& checked = store.checked();
  ReceiveMonday(store);
  checked.Remove(InodeKey(InLineage(1, store.same)));
  const Codes codes = {"received-snapshot"};
  RequireCodes(store.Check(), codes);
  const RepairReport report = Repair(checked, RepairMode::kAll, false);
  CHECK(report.left == 1);
  store.RequireFiles();
  FileSystem& fs = checked.fixture().Open();
  REQUIRE_OK(fs.snapshots().Remove("received"));
  REQUIRE_OK(fs.snapshots().AwaitRemovals());
  checked.fixture().Close();
  RequireCodes(store.Check(true), {});
  RequireRemovable(store);
}

TEST_CASE("the list of versions is made again from the versions") {
  SnapshotStore store;
  CheckedStore& checked = store.checked();
  const std::string key = InodeKey(store.changed);
  SECTION("a version that is not in the list") {
    checked.Remove(VersionListKey(SnapshotStore::kTuesday, SnapshotStore::kMonday, key));
  }
  SECTION("a version that is twice in the list") {
    checked.Put(VersionListKey(SnapshotStore::kTuesday, 0, key), "");
  }
  SECTION("a malformed entry") { checked.Put("z?", ""); }
  SECTION("malformed versions of other keys") {
    checked.Put("y?", "");
    store.PutVersion(std::string(kIdRangesKey), SnapshotStore::kTuesday, 0, "?");
    store.PutVersion(InodeKey(1'000'000), uint64_t{1} << 40, 0, std::nullopt);
  }
  SECTION("no list") {
    checked.EditMetadata([](KvStore& kv) {
      const KeyRange range = RangeOf(Table::kVersionList);
      const auto metadata = kv.Snapshot();
      const auto iterator = metadata->NewIteratorBelow(range.end);
      for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next())
        REQUIRE_OK(kv.Write({{std::string(iterator->key()), std::nullopt}}));
    });
  }
  RequireSnapshotsRepaired(store, {"snapshot-version"});
  store.RequireFiles();
  RequireRemovable(store);
}

TEST_CASE("versions that no snapshot needs are removed") {
  SnapshotStore store;
  store.checked().Remove(SnapshotKey(SnapshotStore::kMonday));
  RequireSnapshotsRepaired(store, {"snapshot-version"});
  CHECK(store.Read("tuesday") == store.tuesday);
  store.checked().EditMetadata([&](KvStore& kv) {
    const auto version = kv.Get(VersionKey(InodeKey(store.changed), SnapshotStore::kMonday));
    REQUIRE_OK(version);
    CHECK_FALSE(*version);
  });
  RequireRemovable(store);
}

TEST_CASE("a version that cannot be decoded is removed, and the file is reported as lost") {
  SnapshotStore store;
  const std::string key = XattrKey(store.changed, "user.one");
  SECTION("an inode") {
    store.checked().Put(VersionKey(InodeKey(store.changed), SnapshotStore::kMonday),
                        EncodeVersion("?"));
    const RepairReport report = RequireSnapshotsRepaired(store, {"snapshot-version"});
    REQUIRE(report.lost.size() == 1);
    CHECK(report.lost[0].path == "/.snapshots/monday/changed");
    CHECK(report.lost[0].range.length == 0);
    CHECK(report.lost[0].range.snapshot == SnapshotStore::kMonday);
    // Every file can be read, and all others are whole.
    Files monday = store.Read("monday");
    monday["changed"] = store.monday["changed"];
    const bool same = monday == store.monday;
    CHECK(same);
    CHECK(store.Read("tuesday") == store.tuesday);
    CHECK(store.Read("") == store.live);
  }
  SECTION("the absence of the root directory") {
    store.PutVersion(InodeKey(kRootInode), SnapshotStore::kTuesday, 1, std::nullopt);
    RequireSnapshotsRepaired(store, {"snapshot-record", "snapshot-version"});
    store.RequireFiles();
  }
  RequireRemovable(store);
}

TEST_CASE("a lost chunk that only snapshots need becomes a hole in them, not in the live file") {
  SnapshotStore store;
  store.DamageChunk(store.ChunksOf(store.changed, SnapshotStore::kMonday)[0]);
  const RepairReport report =
      RequireSnapshotsRepaired(store, {"block-payload", "chunk-damaged"}, true);
  const Bytes changed = store.Read("monday")["changed"];
  CHECK(changed != store.monday["changed"]);
  CHECK(IsOnlyLost(report, "/.snapshots/monday/changed", store.monday["changed"], changed));
  store.monday["changed"] = changed;
  store.RequireFiles();
  RequireRemovable(store);
}

TEST_CASE("a lost chunk that the live file and snapshots need becomes a hole in all of them") {
  SnapshotStore store;
  store.DamageChunk(store.ChunksOf(store.same)[0]);
  const RepairReport report =
      RequireSnapshotsRepaired(store, {"block-payload", "chunk-damaged", "chunk-missing"}, true);
  const Bytes same = store.Read("")["same"];
  CHECK(same != store.live["same"]);
  CHECK(IsOnlyLost(report, "/same", store.live["same"], same));
  store.live["same"] = store.monday["same"] = store.tuesday["same"] = same;
  store.RequireFiles();
  RequireRemovable(store);
}

TEST_CASE("a lost slice of an overlay becomes a hole in the snapshots that show it") {
  SnapshotStore store;
  CheckedStore& checked = store.checked();
  const std::vector<ChunkName> names = store.ChunksOf(store.same);
  REQUIRE(names.size() >= 2);
  std::vector<ChunkSlice> slices;
  uint64_t size = 0;
  InodeRecord inode;
  checked.EditInode(store.same, [&](InodeRecord& record) { inode = record; });
  for (const RecipeEntry& entry : inode.recipe.entries) {
    const auto length = static_cast<uint32_t>(entry.length);
    slices.push_back({entry.name, length, 0, length});
    size += length;
  }
  // In "tuesday" the file is an overlay with a slice of a chunk that does not exist, between two
  // whole ones. In "monday" it is an overlay without this slice.
  inode.recipe = Recipe();
  inode.recipe_limit = 0;
  inode.has_overlay = true;
  inode.overlay_bytes = inode.size = size;
  inode.overlay_chunks = slices.size();
  const auto put = [&](uint64_t snapshot, uint64_t born, std::vector<ChunkSlice> of) {
    OverlayExtent extent;
    extent.kind = OverlayExtent::Kind::kChunks;
    for (const ChunkSlice& slice : of) extent.length += slice.length;
    extent.slices = std::move(of);
    inode.size = extent.length;
    store.PutVersion(InodeKey(store.same), snapshot, born, inode.Encode());
    store.PutVersion(OverlayKey(store.same, 0), snapshot, born, extent.Encode());
  };
  put(SnapshotStore::kMonday, 0, slices);
  ChunkName lost;
  lost.bytes[0] = 1;
  std::vector<ChunkSlice> longer = slices;
  longer.insert(longer.begin() + 1, {lost, 1000, 0, 1000});
  put(SnapshotStore::kTuesday, SnapshotStore::kMonday, longer);
  Bytes& tuesday = store.tuesday["same"];
  tuesday.insert(tuesday.begin() + static_cast<ptrdiff_t>(slices[0].length), 1000, uint8_t{0});

  const RepairReport report = RequireSnapshotsRepaired(store, {"chunk-missing"});
  REQUIRE(report.lost.size() == 1);
  CHECK(report.lost[0].path == "/.snapshots/tuesday/same");
  CHECK(report.lost[0].range == LostRange{store.same, slices[0].length, 1000, 2});
  store.RequireFiles();
  RequireRemovable(store);
}

TEST_CASE("a repair without losses leaves snapshots as they are") {
  SnapshotStore store;
  store.checked().Put("z?", "");
  const RepairReport report = Repair(store.checked(), RepairMode::kSafe);
  CHECK(report.left == 1);
  store.RequireFiles();
}

TEST_CASE("salvaged metadata keeps the snapshots") {
  SnapshotStore store;
  store.checked().Put(std::string(kIdRangesKey), "?");
  const RepairReport report = Repair(store.checked(), RepairMode::kAll);
  INFO(Describe(report));
  CHECK(report.left == 0);
  RequireCodes(store.Check(true), {});
  store.RequireFiles();
  // The numbers of inodes follow the used ones.
  store.checked().EditMetadata([](KvStore& kv) {
    const auto value = kv.Get(kIdRangesKey);
    REQUIRE_OK(value);
    const auto ids = IdRanges::Decode(value->value());
    REQUIRE_OK(ids);
    CHECK(ids->inode_limit < 1'000'000);
  });
  RequireRemovable(store);
}

}  // namespace siltfs::testing
