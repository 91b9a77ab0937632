// The figures of a store that nobody has mounted: read-only, nothing is written, also after a
// crash.
#pragma once

#include <string>

#include "fs/core/stats.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// kNotFound if there is no store, kInUse if someone has it mounted, kNeedsNewer and kCorruption as
// opening it would. What was not committed when the store crashed is not counted among files and
// logical bytes.
Result<FileSystemStats> ReadStoreStats(Env& env, const std::string& store);

}  // namespace siltfs
