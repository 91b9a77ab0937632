// Opens an index with the engine that a store's superblock names.
#pragma once

#include <memory>

#include "index/chunk_index.h"
#include "index/index_engine.h"
#include "store/env/env.h"

namespace siltfs {

// Opens the index in options.directory. An empty directory gives an empty index. `env` must outlive
// the index. Returns kNotFound if the directory is missing, and kNeedsNewer if a later version made
// the engine, a parameter or the format. Returns kCorruption if the index cannot be used, for
// example because its manifest is damaged. The caller may then empty the directory and put all
// entries again.
Result<std::unique_ptr<ChunkIndex>> OpenIndex(Env& env, const IndexOptions& options);

}  // namespace siltfs
