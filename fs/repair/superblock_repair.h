// Repairs the superblock's two copies. An unusable copy is rewritten from the other. If the copies
// belong to different stores, the copy of the segments' store is used.
//
// The caller holds the store's lock. Errors: Env's; kCorruption if no copy is usable.
#pragma once

#include <string>

#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// Writes both copies from the valid one with the highest generation.
Status RepairSuperblockCopies(Env& env, const std::string& store);

// False, and no change, if the segments do not decide.
Result<bool> ResolveSuperblockMismatch(Env& env, const std::string& store);

}  // namespace siltfs
