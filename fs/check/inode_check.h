// Compares the metadata tables with each other. Walks through all tables at once in the order of
// inode numbers, with one inode in memory at a time.
#pragma once

#include "fs/check/check_context.h"
#include "fs/records/snapshot_record.h"

namespace siltfs {

// Checks that each inode's record, names, cookies, overlay, attributes and orphan mark agree; then
// names, links and parents (name_check.h), directory cycles (directory_tree_check.h) and the
// store's counters, which must equal the sums over all inodes. Fails if a table cannot be read.
// `snapshot` has the live files alone (fs/versions/lineage_view.h).
Status CheckInodes(CheckContext& context, const KvSnapshot& snapshot);
// The same of a received snapshot. `snapshot` is a view of it.
Status CheckReceivedInodes(CheckContext& context, const KvSnapshot& snapshot,
                           const SnapshotRecord& record);

}  // namespace siltfs
