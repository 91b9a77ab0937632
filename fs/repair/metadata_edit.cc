#include "fs/repair/metadata_edit.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "fs/records/lineage.h"
#include "fs/records/schema.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/record_form.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {
namespace {

using BoundsByLineage = std::map<LineageNumber, std::vector<SnapshotBounds>>;

// The snapshots for which values are kept. If a limit is too low, too many values are kept, but
// none is missing. A snapshot with a malformed record counts as one of the live files.
Result<BoundsByLineage> BoundsOf(const KvSnapshot& metadata) {
  BoundsByLineage all;
  const KeyRange range = RangeOf(Table::kSnapshot);
  const auto iterator = metadata.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const auto number = ParseSnapshotKey(iterator->key());
    if (!number || *number == 0) continue;
    const auto record = SnapshotRecord::Decode(iterator->value());
    if (record.ok() && record->removing) continue;
    SnapshotBounds bounds{*number, kInodesPerLineage, kLiveLineage};
    if (record.ok()) bounds = siltfs::BoundsOf(NumberedSnapshot{*number, *record});
    std::vector<SnapshotBounds>& own = all[bounds.lineage];
    if (!own.empty()) bounds.inode_limit = std::max(bounds.inode_limit, own.back().inode_limit);
    own.push_back(bounds);
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return all;
}

bool IsDamage(std::string_view key, const std::string& version) {
  const auto value = DecodeVersion(version);
  if (value && *value) return !IsRecord(key, **value);
  return !IsRecordKey(key) || static_cast<Table>(key[0]) == Table::kInode;
}

}  // namespace

Status MetadataEdit::KeepVersions() {
  SILTFS_ASSIGN_OR_RETURN(BoundsByLineage bounds, BoundsOf(*snapshot_));
  if (bounds.empty()) return Status::Ok();
  std::map<LineageNumber, std::vector<std::string_view>> changed;
  for (const Mutation& mutation : mutations_) {
    uint64_t inode = 0;
    if (IsVersionedKey(mutation.key, inode)) changed[LineageOf(inode)].emplace_back(mutation.key);
  }
  std::vector<Mutation> kept;
  for (const auto& [lineage, keys] : changed) {
    const VersionKeeper keeper(std::move(bounds[lineage]));
    Status done = keeper.Keep(*snapshot_, keys, kept);
    // The check reports the malformed version, and another step removes it.
    if (done.Is(StatusCode::kCorruption)) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(done);
  }
  // A version and its entry in the list follow each other.
  for (size_t i = 0; i + 1 < kept.size(); i += 2) {
    const auto parts = ParseVersionKey(kept[i].key);
    if (!parts || IsDamage(parts->key, *kept[i].value)) continue;
    mutations_.push_back(std::move(kept[i]));
    mutations_.push_back(std::move(kept[i + 1]));
  }
  return Status::Ok();
}

Status MetadataEdit::Write() {
  if (mutations_.empty()) return Status::Ok();
  const size_t changes = mutations_.size();
  SILTFS_RETURN_IF_ERROR(KeepVersions());
  SILTFS_RETURN_IF_ERROR(kv_.Write(mutations_));
  changes_ += changes;
  mutations_.clear();
  return Status::Ok();
}

}  // namespace siltfs
