// Lists the keys that may differ between a snapshot and a newer state of the same lineage, from the
// versions that the changes have left (version_key.h).
//
// A key has changed if it has a version that serves the older state but not the newer one. Keys of
// inodes that are newer than the older state have no such version; callers walk the tables from
// this snapshot's inode limit on.
//
// Thread-safety: one thread. Errors: those of the key-value store and of `visit`; kCorruption for
// malformed versions. Cost: a step for each changed key, and one seek for each snapshot of another
// lineage in between. A key that has changed again later costs a step, too.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fs/kv/kv_store.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {

struct ChangedKey {
  std::string_view key;         // as in views of the lineage
  std::string_view stored_key;  // in the metadata
  SnapshotNumber kept_for = 0;  // the version of the older state is that for this snapshot
  // Where the list goes on behind this key, for the argument `from`.
  std::string_view place;
};

// `metadata`: with all versions. `older`: a snapshot. `newer`: the number of a newer snapshot of
// its lineage, or a greater number than those of all snapshots for the present state. `from`:
// empty, or the place of the last key that was visited. Ends early, without an error, when `visit`
// returns false.
Status ForEachChangedKey(const KvSnapshot& metadata, const SnapshotBounds& older,
                         SnapshotNumber newer, std::string_view from,
                         const std::function<Result<bool>(const ChangedKey&)>& visit);

}  // namespace siltfs
