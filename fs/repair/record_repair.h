// Repairs unreadable and missing inodes, and removes keys that belong to no table. If an unreadable
// or missing inode has directory entries, it was a directory. It becomes a directory again, so that
// no name is lost. For all other unreadable or missing inodes, every key is removed. A missing root
// is created again.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/repair/metadata_edit.h"
#include "store/env/file_owner.h"

namespace siltfs {

struct RecordRepairOptions {
  int64_t now = 0;       // nanoseconds since 1970
  FileOwner owner = {};  // of recreated directories
};

// Collects the changes. If the unreadable record of an inode is removed, adds the inode to `lost`.
Status RepairRecords(MetadataEdit& edit, const RecordRepairOptions& options,
                     std::vector<uint64_t>& lost);

}  // namespace siltfs
