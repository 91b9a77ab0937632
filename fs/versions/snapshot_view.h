// Metadata as a snapshot shows it: the records that were committed when the snapshot was made.
//
// The view shows the versioned tables (IsVersionedKey) as they were, and hides orphans and the
// tables of versions. It shows all other tables, such as segment records, as they are now, because
// recovery and collections keep them true for all snapshots.
//
// The view of a received snapshot has the sender's inode numbers (lineage_view.h).
//
// Cost: a lookup is a seek in the table of versions, a step for each newer version of the key, and
// a lookup in the present records. A scan merges both. It passes the versions of other snapshots,
// but only those of keys below the next present record: so give an iterator the end of what is
// wanted.
//
// Thread-safety and errors: as in kv_store.h; kCorruption for malformed versions. Ownership: shares
// `present`.
#pragma once

#include <memory>

#include "fs/kv/kv_store.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {

std::shared_ptr<const KvSnapshot> MakeSnapshotView(std::shared_ptr<const KvSnapshot> present,
                                                   const SnapshotBounds& snapshot);

}  // namespace siltfs
