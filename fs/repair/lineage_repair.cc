#include "fs/repair/lineage_repair.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/records/lineage.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/lineage_view.h"

namespace siltfs {
Result<uint64_t> RepairLineages(KvStore& kv, bool all) {
  const auto metadata = kv.Snapshot();
  SILTFS_ASSIGN_OR_RETURN(std::set<LineageNumber> needed, FindLineages(*metadata));
  SILTFS_ASSIGN_OR_RETURN(const auto snapshots, ReadIntactSnapshots(*metadata));
  for (const NumberedSnapshot& snapshot : snapshots) {
    if (snapshot.record.lineage != kLiveLineage) needed.insert(snapshot.record.lineage);
  }
  std::vector<Mutation> changes;
  const KeyRange range = RangeOf(Table::kLineage);
  const auto iterator = metadata->NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const auto number = ParseInodeKey(Table::kLineage, iterator->key());
    const bool usable = number && *number != kLiveLineage && *number < kLineageLimit;
    const auto record = LineageRecord::Decode(iterator->value());
    const bool lost =
        usable && record.ok() && (all || (!record->changed && !needed.contains(*number)));
    if (usable && record.ok() && !lost) {
      needed.erase(*number);
    } else if (usable) {
      needed.insert(*number);
    } else {
      changes.push_back({std::string(iterator->key()), std::nullopt});
    }
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  for (const LineageNumber lineage : needed)
    changes.push_back({LineageKey(lineage), LineageRecord{.changed = true}.Encode()});
  const uint64_t count = changes.size();
  if (count > 0) SILTFS_RETURN_IF_ERROR(kv.Write(changes));
  return count;
}

}  // namespace siltfs
