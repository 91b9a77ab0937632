// Two states of the file system that are compared.
//
// Thread-safety: as for plain values. Ownership: shares the states.
#pragma once

#include <functional>
#include <memory>

#include "fs/kv/kv_store.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {

struct ComparedStates {
  // `committed`: the metadata with all versions. `from` is a snapshot. `to` is a newer one of the
  // same lineage, or null for the live files in `committed`. Both snapshots must exist as long as
  // the result is used.
  ComparedStates(std::shared_ptr<const KvSnapshot> committed, const NumberedSnapshot& from,
                 const NumberedSnapshot* to);

  std::shared_ptr<const KvSnapshot> versions;
  std::shared_ptr<const KvSnapshot> before;
  std::shared_ptr<const KvSnapshot> after;
  SnapshotBounds older;
  // The number of the newer snapshot, or one above those of all snapshots.
  SnapshotNumber newer = 0;
  // The inodes of the older state are below. Only the keys of these inodes have versions for it.
  uint64_t inode_limit = 0;
  // A change that is not in the older state was made at this time or later, in nanoseconds since
  // 1970.
  int64_t since = 0;
};

// Called now and then. An error ends the comparison.
using CheckInterruption = std::function<Status()>;

}  // namespace siltfs
