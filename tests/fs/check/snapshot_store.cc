#include "tests/fs/check/snapshot_store.h"

#include <algorithm>

#include "fs/interface/snapshots.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "fs/versions/version_walk.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_scan.h"
#include "store/superblock/superblock.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

SnapshotStore::SnapshotStore() {
  FileSystem& fs = checked_.fixture().Open();
  const auto write = [&](const std::string& name, uint64_t seed, size_t size) {
    live[name] = RandomBytes(seed, size);
    const InodeNumber inode = WriteLargeFile(fs, name, live[name]);
    REQUIRE_OK(fs.SyncAll());
    return inode;
  };
  changed = write("changed", 1, 30'000);
  same = write("same", 2, 30'000);
  write("gone", 3, 30'000);
  write("large", 4, 1'000'000);
  directory = MakeDir(fs, kRootInode, "directory");
  MakeFile(fs, directory, "entry");
  live["directory/entry"] = {};
  REQUIRE_OK(fs.SetXattr(changed, "user.one", "1", XattrMode::kSet));
  REQUIRE_OK(fs.snapshots().Create("monday"));
  monday = live;
  write("changed", 5, 30'000);
  REQUIRE_OK(fs.Rename(directory, "entry", directory, "renamed", RenameMode::kReplace));
  live["directory/renamed"] = {};
  live.erase("directory/entry");
  REQUIRE_OK(fs.SetXattr(changed, "user.one", "2", XattrMode::kSet));
  REQUIRE_OK(fs.snapshots().Create("tuesday"));
  tuesday = live;
  write("changed", 6, 30'000);
  write("large", 7, 1'000'000);
  write("later", 8, 30'000);
  REQUIRE_OK(fs.RemoveXattr(changed, "user.one"));
  REQUIRE_OK(fs.Unlink(kRootInode, "gone"));
  live.erase("gone");
  REQUIRE_OK(fs.SyncAll());
  checked_.fixture().Close();
}

Files SnapshotStore::Read(const std::string& snapshot) {
  checked_.fixture().adjust = [&](FileSystemOptions& options) { options.snapshot = snapshot; };
  FileSystem& fs = checked_.fixture().Open(/*read_only=*/true);
  Files files;
  std::vector<std::string> paths = ListNames(fs, kRootInode);
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string path = paths[i];
    INFO(path);
    const auto inode = Resolve(fs, path);
    REQUIRE_OK(inode);
    auto attributes = fs.GetAttributes(*inode);
    REQUIRE_OK(attributes);
    if ((attributes->mode & 0170000) == 0040000) {
      for (const std::string& name : ListNames(fs, *inode)) paths.push_back(path + "/" + name);
      continue;
    }
    auto content = ReadFile(fs, *inode);
    REQUIRE_OK(content);
    files[path] = std::move(content).value();
  }
  checked_.fixture().Close();
  checked_.fixture().adjust = nullptr;
  return files;
}

void SnapshotStore::RequireFiles() {
  const bool live_same = Read("") == live;
  CHECK(live_same);
  const bool monday_same = Read("monday") == monday;
  CHECK(monday_same);
  const bool tuesday_same = Read("tuesday") == tuesday;
  CHECK(tuesday_same);
}

std::string SnapshotStore::Version(const std::string& key, uint64_t snapshot) {
  std::string version;
  checked_.EditMetadata([&](KvStore& kv) {
    const auto value = kv.Get(VersionKey(key, snapshot));
    REQUIRE_OK(value);
    REQUIRE(*value);
    version = **value;
  });
  return version;
}

void SnapshotStore::PutVersion(const std::string& key, uint64_t snapshot, uint64_t born,
                               const std::optional<std::string>& value) {
  checked_.EditMetadata([&](KvStore& kv) {
    REQUIRE_OK(kv.Write({{VersionKey(key, snapshot), EncodeVersion(value)},
                         {VersionListKey(snapshot, born, key), std::string()}}));
  });
}

SnapshotRecord SnapshotStore::Record(uint64_t snapshot) {
  SnapshotRecord record;
  checked_.EditMetadata([&](KvStore& kv) {
    const auto value = kv.Get(SnapshotKey(snapshot));
    REQUIRE_OK(value);
    REQUIRE(*value);
    auto decoded = SnapshotRecord::Decode(**value);
    REQUIRE_OK(decoded);
    record = *decoded;
  });
  return record;
}

void SnapshotStore::PutRecord(uint64_t snapshot, const SnapshotRecord& record) {
  checked_.Put(SnapshotKey(snapshot), record.Encode());
}

std::vector<ChunkName> SnapshotStore::ChunksOf(InodeNumber inode, uint64_t snapshot) {
  std::vector<ChunkName> names;
  const auto add_recipe = [&](std::string_view value) {
    const auto record = InodeRecord::Decode(value);
    REQUIRE_OK(record);
    for (const RecipeEntry& entry : record->recipe.entries) names.push_back(entry.name);
  };
  const auto add_extent = [&](std::string_view value) {
    const auto extent = OverlayExtent::Decode(value);
    REQUIRE_OK(extent);
    for (const ChunkSlice& slice : extent->slices) names.push_back(slice.name);
  };
  checked_.EditMetadata([&](KvStore& kv) {
    const auto metadata = kv.Snapshot();
    if (snapshot == 0) {
      const auto value = metadata->Get(InodeKey(inode));
      REQUIRE_OK(value);
      add_recipe(value->value());
      return;
    }
    for (const Table table : {Table::kInode, Table::kOverlay}) {
      const KeyRange range = RangeOf(table, inode);
      REQUIRE_OK(ForEachVersion(*metadata, range.begin, range.end,
                                [&](const VersionKeyParts& version, std::string_view value) {
                                  if (version.snapshot != snapshot) return Status::Ok();
                                  table == Table::kInode ? add_recipe(value) : add_extent(value);
                                  return Status::Ok();
                                }));
    }
  });
  REQUIRE(!names.empty());
  return names;
}

void SnapshotStore::DamageChunk(const ChunkName& name) {
  auto state = ReadSuperblock(checked_.fixture().env(), checked_.path());
  REQUIRE_OK(state);
  for (SegmentId id = 1; id < 100; ++id) {
    const std::string path = SegmentPath(checked_.path(), id);
    auto file = checked_.fixture().env().OpenFile(path, {});
    if (!file.ok()) continue;
    uint64_t at = 0;
    REQUIRE_OK(ScanBlocks(**file, {state->superblock.uuid, id}, {},
                          [&](const BlockHead& head, uint32_t offset) {
                            for (const ChunkRecord& chunk : head.records) {
                              if (chunk.name == name) at = offset + head.head_bytes() + 10;
                            }
                            return Status::Ok();
                          }));
    if (at == 0) continue;
    checked_.Flip(path, at);
    return;
  }
  FAIL("no segment holds the chunk");
}

}  // namespace siltfs::testing
