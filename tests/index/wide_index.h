// A chunk index over slots larger than name and location, for the suites. The further bytes are
// derived from both when an entry is put, and an answer counts only if they still match.
#pragma once

#include <memory>

#include "index/chunk_index.h"
#include "index/silt/silt_options.h"
#include "store/env/env.h"

namespace siltfs::testing {

Result<std::unique_ptr<ChunkIndex>> OpenWideIndex(Env& env, const SiltIndexOptions& options);

}  // namespace siltfs::testing
