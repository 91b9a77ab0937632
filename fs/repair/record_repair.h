// Inodes that cannot be read, or are not there, and what is left of them; and keys that belong to
// no table. What had names below it was a directory, and becomes one again, so that no name is lost
// with it; of everything else what is left is removed. The root is made anew if need be.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/repair/metadata_edit.h"
#include "store/env/file_owner.h"

namespace siltfs {

struct RecordRepairOptions {
  int64_t now = 0;       // nanoseconds since 1970
  FileOwner owner = {};  // of directories that are made anew
};

// Collects the changes. `lost` gets the files whose records were removed.
Status RepairRecords(MetadataEdit& edit, const RecordRepairOptions& options,
                     std::vector<uint64_t>& lost);

}  // namespace siltfs
