#include "tests/fs/core/recount_store.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "fs/content/file_content.h"
#include "fs/meta/metadata_store.h"
#include "fs/open/store_layout.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "store/base/coding.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// All records of one inode, gathered from all tables.
struct Found {
  std::optional<InodeRecord> record;
  // Set for a directory.
  std::map<std::string, NameEntry> by_name;
  std::map<uint64_t, CookieEntry> by_cookie;
  uint64_t subdirectories = 0;
  // Names of this inode, and the directories that they are in.
  uint64_t names = 0;
  std::set<uint64_t> parents;
  // Set for a file.
  uint64_t overlay_end = 0;
  uint64_t overlay_extents = 0;
  uint64_t overlay_slices = 0;
  uint64_t overlay_bytes = 0;
  uint64_t xattrs = 0;
  bool orphan = false;
};

class Recount {
 public:
  void Add(const std::string& key, const std::string& value);
  StoreCount Finish();

 private:
  void AddOverlay(const std::string& key, const std::string& value);
  void CheckDirectory(uint64_t number, const Found& found);
  void CheckFile(const Found& found);

  std::map<uint64_t, Found> inodes_;
  std::map<Counter, int64_t> counters_;
  StoreCount count_;
};

// Splits a key of (inode, rest).
std::pair<uint64_t, std::string> SplitKey(const std::string& key) {
  Decoder in(AsBytes(key));
  in.U8();
  const uint64_t inode = in.BigU64();
  REQUIRE(in.ok());
  return {inode, key.substr(9)};
}

void Recount::Add(const std::string& key, const std::string& value) {
  switch (static_cast<Table>(key[0])) {
    case Table::kInode: {
      auto record = InodeRecord::Decode(value);
      REQUIRE_OK(record);
      inodes_[SplitKey(key).first].record = *record;
      break;
    }
    case Table::kDirectoryEntry: {
      auto entry = NameEntry::Decode(value);
      REQUIRE_OK(entry);
      const auto [directory, name] = SplitKey(key);
      inodes_[directory].by_name[name] = *entry;
      break;
    }
    case Table::kDirectoryCookie: {
      auto entry = CookieEntry::Decode(value);
      REQUIRE_OK(entry);
      auto parts = ParseNumberedKey(Table::kDirectoryCookie, key);
      REQUIRE(parts);
      inodes_[parts->inode].by_cookie[parts->number] = *entry;
      break;
    }
    case Table::kOverlay:
      AddOverlay(key, value);
      break;
    case Table::kOrphan:
      inodes_[SplitKey(key).first].orphan = true;
      ++count_.orphans;
      break;
    case Table::kXattr:
      ++inodes_[SplitKey(key).first].xattrs;
      ++count_.xattrs;
      break;
    case Table::kCounters: {
      Decoder in(AsBytes(value));
      for (size_t i = 0; i < kCounterCount; ++i) counters_[static_cast<Counter>(i)] = in.I64();
      REQUIRE(in.Done());
      break;
    }
    case Table::kCommitNumber: {
      Decoder in(AsBytes(value));
      count_.last_commit = in.U64();
      REQUIRE(in.Done());
      break;
    }
    case Table::kCollisions:
    case Table::kDamage:
    case Table::kGarbage:
    case Table::kIdRanges:
    case Table::kLastScrub:
    case Table::kSavingsHistory:
    case Table::kScrubHistory:
    case Table::kScrub:
    case Table::kSecondary:
    case Table::kSegment:
      break;
    default:
      FAIL("a key of no table: " << key);
  }
}

void Recount::AddOverlay(const std::string& key, const std::string& value) {
  auto parts = ParseNumberedKey(Table::kOverlay, key);
  REQUIRE(parts);
  auto extent = OverlayExtent::Decode(value);
  REQUIRE_OK(extent);
  Found& found = inodes_[parts->inode];
  REQUIRE(parts->number >= found.overlay_end);
  found.overlay_end = parts->number + extent->length;
  ++found.overlay_extents;
  found.overlay_slices += extent->slices.size();
  if (extent->kind != OverlayExtent::Kind::kHole) found.overlay_bytes += extent->length;
  ++count_.overlay_extents;
}

void Recount::CheckDirectory(uint64_t number, const Found& found) {
  REQUIRE(found.by_name.size() == found.by_cookie.size());
  REQUIRE(found.record->entries == found.by_name.size());
  for (const auto& [name, entry] : found.by_name) {
    INFO("name " << name);
    auto cookie = found.by_cookie.find(entry.cookie);
    REQUIRE(cookie != found.by_cookie.end());
    REQUIRE(cookie->second.name == name);
    REQUIRE(cookie->second.inode == entry.inode);
    REQUIRE(cookie->second.type == entry.type);
    REQUIRE(entry.cookie >= kFirstCookie);
    REQUIRE(entry.cookie < found.record->next_cookie);
    Found& child = inodes_[entry.inode];
    REQUIRE(child.record);
    REQUIRE(child.record->type() == entry.type);
    ++child.names;
    child.parents.insert(number);
    ++count_.names;
  }
}

void Recount::CheckFile(const Found& found) {
  const InodeRecord& record = *found.record;
  REQUIRE(record.has_overlay == (found.overlay_extents > 0));
  REQUIRE(record.overlay_chunks == found.overlay_slices);
  REQUIRE(record.overlay_bytes == found.overlay_bytes);
  REQUIRE(found.overlay_end <= record.size);
  REQUIRE(record.recipe_limit <= record.size);
  REQUIRE(record.recipe_limit <= record.recipe.size());
  if (!record.IsRegular()) return;
  count_.logical_bytes += FileContent::AllocatedBytes(record);
  count_.chunk_references += FileContent::ChunkReferences(record);
}

StoreCount Recount::Finish() {
  for (const auto& [number, found] : inodes_) {
    INFO("inode " << number);
    REQUIRE(found.record);  // a deleted inode leaves no records
    if (found.record->IsDirectory()) {
      CheckDirectory(number, found);
    } else {
      REQUIRE(found.by_name.empty());
      REQUIRE(found.by_cookie.empty());
    }
  }
  for (const auto& [number, found] : inodes_) {
    if (found.record->IsDirectory() && !found.orphan && number != 1) {
      REQUIRE(found.parents.size() == 1);
      ++inodes_[*found.parents.begin()].subdirectories;
    }
  }
  for (const auto& [number, found] : inodes_) {
    INFO("inode " << number);
    const InodeRecord& record = *found.record;
    REQUIRE(record.xattrs == found.xattrs);
    REQUIRE(found.orphan == (record.links == 0));
    if (record.IsDirectory()) {
      ++count_.directories;
      REQUIRE(found.names == (number == 1 || found.orphan ? 0 : 1));
      if (!found.orphan) REQUIRE(record.links == 2 + found.subdirectories);
      if (number != 1 && !found.orphan) REQUIRE(record.parent == *found.parents.begin());
      REQUIRE(found.overlay_extents == 0);
    } else {
      ++count_.files;
      REQUIRE(record.links == found.names);
      CheckFile(found);
    }
  }
  auto as_counted = [this](Counter counter) { return static_cast<uint64_t>(counters_[counter]); };
  REQUIRE(as_counted(Counter::kFiles) == count_.files);
  REQUIRE(as_counted(Counter::kDirectories) == count_.directories);
  REQUIRE(as_counted(Counter::kLogicalBytes) == count_.logical_bytes);
  REQUIRE(as_counted(Counter::kChunkReferences) == count_.chunk_references);
  return count_;
}

}  // namespace

StoreCount RecountStore(const std::string& store) {
  const auto env = NewPosixEnv();
  auto kv = OpenRocksDbStore(
      *env, {.path = MetadataPath(store), .mode = KvStoreOptions::Mode::kReadOnly});
  REQUIRE_OK(kv);
  Recount recount;
  auto snapshot = (*kv)->Snapshot();
  auto iterator = snapshot->NewIterator();
  for (iterator->Seek(""); iterator->Valid(); iterator->Next())
    recount.Add(std::string(iterator->key()), std::string(iterator->value()));
  REQUIRE_OK(iterator->status());
  return recount.Finish();
}

}  // namespace siltfs::testing
