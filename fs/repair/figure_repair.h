// What metadata says that follows from the rest of it, counted anew: how many entries, attributes
// and subdirectories an inode has, its overlay's totals, the next cookie of a directory, the
// store's counters, and which inode numbers were given away. Nothing is lost by it, and nothing
// chosen.
#pragma once

#include "fs/repair/metadata_edit.h"

namespace siltfs {

// Collects the changes. kCorruption where a table cannot be read; what is malformed is left alone.
Status RepairFigures(MetadataEdit& edit);

}  // namespace siltfs
