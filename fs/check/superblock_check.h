// Checks the two copies of the superblock.
#pragma once

#include "fs/check/check_context.h"

namespace siltfs {

// Reads the copies into the context. Returns false if no copy is usable: this is a finding, and
// nothing else can be checked. kNotFound if there is no store, kNeedsNewer for a store that this
// version must not read.
Result<bool> CheckSuperblock(CheckContext& context);

}  // namespace siltfs
