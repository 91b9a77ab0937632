// Repairs unreadable and missing inodes, and removes keys that belong to no table. If such an inode
// has names below it, it was a directory and becomes one again, so that no name is lost. All
// remains of other such inodes are removed. A missing root is created again.
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

// Collects the changes. Adds the files whose records are removed to `lost`.
Status RepairRecords(MetadataEdit& edit, const RecordRepairOptions& options,
                     std::vector<uint64_t>& lost);

}  // namespace siltfs
