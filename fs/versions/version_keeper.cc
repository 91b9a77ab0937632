#include "fs/versions/version_keeper.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "fs/kv/ascending_reads.h"
#include "fs/records/schema.h"

namespace siltfs {

SnapshotBounds BoundsOf(const NumberedSnapshot& snapshot) {
  const SnapshotRecord& record = snapshot.record;
  return {snapshot.number, InLineage(record.lineage, record.inode_limit), record.lineage};
}

std::vector<SnapshotBounds> BoundsOf(const std::vector<NumberedSnapshot>& all,
                                     LineageNumber lineage) {
  std::vector<SnapshotBounds> bounds;
  for (const NumberedSnapshot& snapshot : all) {
    if (!snapshot.record.removing && snapshot.record.lineage == lineage)
      bounds.push_back(BoundsOf(snapshot));
  }
  return bounds;
}

SnapshotNumber VersionKeeper::NewestWithout(uint64_t inode) const {
  // Limits rise with the numbers.
  const auto shows = std::ranges::upper_bound(snapshots_, inode, {}, &SnapshotBounds::inode_limit);
  return shows == snapshots_.begin() ? 0 : std::prev(shows)->number;
}

Status VersionKeeper::Keep(const KvSnapshot& before, const std::vector<std::string_view>& changed,
                           std::vector<Mutation>& kept) const {
  if (snapshots_.empty()) return Status::Ok();
  const SnapshotBounds& newest = snapshots_.back();
  // Commits pass their keys in ascending order.
  AscendingReads versions(before);
  AscendingReads records(before);
  for (const std::string_view key : changed) {
    uint64_t inode = 0;
    if (!IsVersionedKey(key, inode) || inode >= newest.inode_limit) continue;
    SILTFS_ASSIGN_OR_RETURN(const auto found,
                            versions.FirstIn(FirstVersionKey(key), EndOfVersionKeys(key)));
    SnapshotNumber born = NewestWithout(inode);
    if (found) {
      const auto last = ParseVersionKey(found->key);
      if (!last || last->key != key)
        return Status(StatusCode::kCorruption, "the key of a version is malformed");
      // Kept already, perhaps for a newer snapshot that was deleted.
      if (last->snapshot >= newest.number) continue;
      born = std::max(born, last->snapshot);
    }
    SILTFS_ASSIGN_OR_RETURN(const std::optional<std::string> value, records.Get(key));
    kept.push_back({VersionKey(key, newest.number), EncodeVersion(value)});
    kept.push_back({VersionListKey(newest.number, born, key), std::string()});
  }
  return Status::Ok();
}

Result<bool> VersionKeeper::KeepHidden(const KvSnapshot& before, const HiddenRange& range,
                                       size_t most, std::string& from,
                                       std::vector<Mutation>& kept) const {
  if (snapshots_.empty()) return false;
  const SnapshotBounds& newest = snapshots_.back();
  const uint64_t end = std::min(range.end, newest.inode_limit);
  if (range.first >= end) return false;
  size_t found = 0;
  for (const Table table : kTablesOfInodes) {
    const KeyRange keys = RangeOf(table, range.first, end);
    if (from >= keys.end) continue;
    const auto iterator = before.NewIteratorBelow(keys.end);
    for (iterator->Seek(std::max(from, keys.begin)); iterator->Valid(); iterator->Next()) {
      uint64_t inode = 0;
      if (!IsVersionedKey(iterator->key(), inode))
        return Status(StatusCode::kCorruption, "the key of a hidden inode is malformed");
      if (found++ == most) {
        from = iterator->key();
        return true;
      }
      kept.push_back({VersionKey(iterator->key(), newest.number), EncodeVersion(std::nullopt)});
      kept.push_back({VersionListKey(newest.number, NewestWithout(inode), iterator->key()), ""});
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
  }
  return false;
}

}  // namespace siltfs
