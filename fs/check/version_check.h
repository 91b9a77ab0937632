// Checks the records of snapshots, and the versions of records that metadata keeps for them
// (fs/versions/version_key.h).
//
// The check reads each version once, so its cost does not depend on how many snapshots show it. It
// does not compare the records within a snapshot with each other. Not thread-safe. Memory: the
// records of the snapshots.
#pragma once

#include <cstdint>

#include "fs/check/check_context.h"
#include "fs/records/snapshot_record.h"

namespace siltfs {

// No inode number at or above the result has been used when a snapshot was made: a mount claims
// numbers in advance, and a clean unmount returns the unused ones.
uint64_t HighestInodeLimit(const IdRanges& ids);

// Whether one of the snapshots of the lineage needs a version with these bounds. `snapshots`: those
// of the store, which ascend by number. A snapshot that is being removed counts too, and one
// without a name, because its record is malformed, may belong to any lineage.
bool IsNeeded(const std::vector<NumberedSnapshot>& snapshots, uint64_t lineage, uint64_t born,
              uint64_t kept_for);

// Reports snapshot-record and snapshot-version. Fails if a table cannot be read.
Status CheckVersions(CheckContext& context, const KvSnapshot& snapshot);

}  // namespace siltfs
