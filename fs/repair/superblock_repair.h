// Repairs the superblock's two copies. An unusable copy is rewritten from the other copy. If the
// copies belong to different stores, the copy that belongs to the same store as the segments is
// used.
//
// The caller holds the store's lock. Errors: Env's; kCorruption if no copy is usable.
#pragma once

#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_store.h"

namespace siltfs {

// Writes both copies from the valid one with the highest generation.
Status RepairSuperblockCopies(Env& env, const std::string& store);

// Keeps the copy of the store to which the segments belong, and writes it to both places. Returns
// false, and changes nothing, if the segments do not show which copy is right.
Result<bool> ResolveSuperblockMismatch(Env& env, const std::string& store, SegmentStore& segments);

}  // namespace siltfs
