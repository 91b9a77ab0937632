// Checks the records of lineages (fs/records/lineage.h), and the newest snapshot of each lineage.
//
// Older snapshots of a lineage are checked like those of the live files: their versions are, but
// not how their records agree. Not thread-safe. Memory: as of inode_check.h.
#pragma once

#include "fs/check/check_context.h"

namespace siltfs {

// Reports lineage-record and received-snapshot. Fails if a table cannot be read.
Status CheckLineages(CheckContext& context, const KvSnapshot& snapshot);

}  // namespace siltfs
