// Makes the head of a lineage what its newest snapshot shows (fs/records/lineage.h).
//
// This discards a snapshot that was not received as a whole, and records that only a removed
// snapshot needed.
//
// Thread-safety: one call at a time for each lineage. Errors: those of the ports and of `check`;
// after an error or a crash the call can be repeated. Durability: durable on return.
#pragma once

#include <cstddef>
#include <functional>

#include "fs/meta/lineage_port.h"
#include "fs/meta/snapshot_port.h"

namespace siltfs {

// Does nothing if the lineage is unchanged, or if a snapshot is incoming. Removes a lineage that
// has no snapshots. Each write has at most `most` changes, and `check` is called between them.
Status RestoreHead(SnapshotPort& snapshots, LineagePort& lineages, LineageNumber lineage,
                   size_t most, const std::function<Status()>& check);

}  // namespace siltfs
