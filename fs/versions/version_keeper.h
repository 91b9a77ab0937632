// Keeps the values that snapshots show, when commits change or remove them (version_key.h).
//
// The first commit after a snapshot that changes a record keeps the record's old value for the
// newest snapshot. Older snapshots without a version of their own show the same value. Records of
// inodes that were made after the newest snapshot need no version: a snapshot shows no inode from
// its inode limit on. Without snapshots a commit costs nothing more. With snapshots each changed
// record of an older inode costs a search in the table of versions, and the first change also a
// lookup of the old value. Both are cheaper if the keys of a commit lie close together.
//
// A keeper works for one lineage: for the live files, or for received snapshots of one origin.
//
// Thread-safety: one call at a time, as commits are. Memory: the kept values of one call. Errors:
// those of the key-value store; kCorruption for a malformed key in the table of versions.
// Durability: the caller writes the kept versions in the batch that changes the records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/hidden_range.h"
#include "fs/records/lineage.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/version_key.h"

namespace siltfs {

// What the keeper and the deletion of snapshots need to know of a snapshot.
struct SnapshotBounds {
  SnapshotNumber number = 0;
  // The snapshot shows the inodes of its lineage that have lower numbers in keys.
  uint64_t inode_limit = 0;
  LineageNumber lineage = kLiveLineage;

  bool operator==(const SnapshotBounds&) const = default;
};

SnapshotBounds BoundsOf(const NumberedSnapshot& snapshot);
// The bounds of the snapshots of a lineage that are not being removed, ascending.
std::vector<SnapshotBounds> BoundsOf(const std::vector<NumberedSnapshot>& all,
                                     LineageNumber lineage);

class VersionKeeper {
 public:
  VersionKeeper() = default;  // without snapshots
  // The snapshots of one lineage, ascending. The keys that are passed belong to this lineage.
  explicit VersionKeeper(std::vector<SnapshotBounds> snapshots)
      : snapshots_(std::move(snapshots)) {}

  const std::vector<SnapshotBounds>& snapshots() const { return snapshots_; }
  bool HasSnapshots() const { return !snapshots_.empty(); }
  // Adds to `kept` the versions that must be written together with a change of these keys.
  // `before` is the state without the change.
  Status Keep(const KvSnapshot& before, const std::vector<std::string_view>& changed,
              std::vector<Mutation>& kept) const;
  // Adds to `kept` versions by which no snapshot shows a record of the inodes [first, end), which
  // were hidden when the snapshots were made (fs/records/hidden_range.h). Looks at the keys from
  // `from` on (empty: all), and sets it to the key to continue with. Adds at most `most` versions;
  // returns false at the end.
  Result<bool> KeepHidden(const KvSnapshot& before, const HiddenRange& range, size_t most,
                          std::string& from, std::vector<Mutation>& kept) const;

 private:
  // The newest snapshot that does not show the inode, because it is older; 0: there is none.
  SnapshotNumber NewestWithout(uint64_t inode) const;

  std::vector<SnapshotBounds> snapshots_;
};

}  // namespace siltfs
