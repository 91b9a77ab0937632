// The superblock's two copies: one that cannot be used is written anew from the other, and of two
// that belong to different stores the one counts that the segments belong to.
//
// The caller holds the store's lock. Errors: Env's; kCorruption where no copy can be used.
#pragma once

#include <string>

#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// Writes both copies as the one that counts.
Status RepairSuperblockCopies(Env& env, const std::string& store);

// False, and nothing done, where the segments do not tell.
Result<bool> ResolveSuperblockMismatch(Env& env, const std::string& store);

}  // namespace siltfs
