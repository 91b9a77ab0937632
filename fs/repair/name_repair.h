// The names in directories and their order, mended so that each name has its cookie and each cookie
// its name. Of a name or cookie alone the other is made; what cannot be a name goes, as do names
// that lead nowhere and those of directories that lie in themselves.
#pragma once

#include <cstdint>
#include <set>

#include "fs/repair/metadata_edit.h"

namespace siltfs {

// Collects the changes. Names of the inodes in `detached` are removed.
Status RepairNames(MetadataEdit& edit, const std::set<uint64_t>& detached);

}  // namespace siltfs
