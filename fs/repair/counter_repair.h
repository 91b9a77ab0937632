// Recomputes metadata values that follow from other metadata. These are an inode's numbers of
// entries, attributes and subdirectories, its overlay's totals, a directory's next cookie, the
// store's counters, the usage of quotas, and the limit of used inode numbers. This loses nothing
// and needs no choice. A quota without limits or without a directory limits nothing, and is
// removed.
#pragma once

#include "fs/repair/metadata_edit.h"

namespace siltfs {

// Collects the changes. kCorruption if a table cannot be read; malformed records are left alone.
Status RepairCounters(MetadataEdit& edit);

}  // namespace siltfs
