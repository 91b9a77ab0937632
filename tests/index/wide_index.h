// A chunk index for the suites, with slots larger than name and location. The further bytes of an
// entry are derived from its name and location when it is put. An answer counts only if these bytes
// still match.
#pragma once

#include <memory>

#include "index/chunk_index.h"
#include "index/silt/silt_options.h"
#include "store/env/env.h"

namespace siltfs::testing {

Result<std::unique_ptr<ChunkIndex>> OpenWideIndex(Env& env, const SiltIndexOptions& options);

}  // namespace siltfs::testing
