// Repairs directory entries so that each name has its cookie and each cookie has its name. If one
// of the two is missing, it is made from the other. Impossible names, names without an inode, and
// names of directories that contain themselves are removed.
#pragma once

#include <cstdint>
#include <set>

#include "fs/repair/metadata_edit.h"

namespace siltfs {

// Collects the changes. Removes the names of the inodes in `detached`.
Status RepairNames(MetadataEdit& edit, const std::set<uint64_t>& detached);

}  // namespace siltfs
