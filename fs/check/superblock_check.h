// Checks the two copies of the superblock.
#pragma once

#include "fs/check/check_context.h"

namespace siltfs {

// Puts the copies' content into the context. False if no copy is usable: that is a finding, and
// nothing else can be checked. kNotFound if there is no store, kNeedsNewer for a store that this
// version must not read.
Result<bool> CheckSuperblock(CheckContext& context);

}  // namespace siltfs
