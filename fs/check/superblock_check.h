// The two copies of the superblock, each for itself.
#pragma once

#include "fs/check/check_context.h"

namespace siltfs {

// Fills in what the copies say; false if none can be used, which is a finding, and nothing else can
// be checked. kNotFound if there is no store, kNeedsNewer for one that this code must not read.
Result<bool> CheckSuperblock(CheckContext& context);

}  // namespace siltfs
