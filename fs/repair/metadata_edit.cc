#include "fs/repair/metadata_edit.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "fs/check/record_form.h"
#include "fs/records/schema.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {
namespace {

// The snapshots for which values are kept. If a record is malformed, or a limit is too low, too
// many values are kept, but none is missing.
Result<std::vector<SnapshotBounds>> BoundsOf(const KvSnapshot& metadata) {
  std::vector<SnapshotBounds> bounds;
  uint64_t limit = 0;
  const KeyRange range = RangeOf(Table::kSnapshot);
  const auto iterator = metadata.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const auto number = ParseSnapshotKey(iterator->key());
    if (!number || *number == 0) continue;
    const auto record = SnapshotRecord::Decode(iterator->value());
    if (record.ok() && record->removing) continue;
    limit =
        std::max(limit, record.ok() ? record->inode_limit : std::numeric_limits<uint64_t>::max());
    bounds.push_back({*number, limit});
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return bounds;
}

bool IsDamage(std::string_view key, const std::string& version) {
  const auto value = DecodeVersion(version);
  if (value && *value) return !IsRecord(key, **value);
  return !IsRecordKey(key) || static_cast<Table>(key[0]) == Table::kInode;
}

}  // namespace

Status MetadataEdit::KeepVersions() {
  SILTFS_ASSIGN_OR_RETURN(std::vector<SnapshotBounds> bounds, BoundsOf(*snapshot_));
  if (bounds.empty()) return Status::Ok();
  std::vector<std::string_view> changed;
  changed.reserve(mutations_.size());
  for (const Mutation& mutation : mutations_) changed.emplace_back(mutation.key);
  std::vector<Mutation> kept;
  const VersionKeeper keeper(std::move(bounds));
  Status done = keeper.Keep(*snapshot_, changed, kept);
  // The check reports the malformed version, and another step removes it.
  if (done.Is(StatusCode::kCorruption)) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(done);
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
