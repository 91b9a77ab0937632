// Opens an index with the engine that a store's superblock names.
#pragma once

#include <memory>

#include "index/chunk_index.h"
#include "index/index_engine.h"
#include "store/env/env.h"

namespace siltfs {

// Opens the index in options.directory; an empty directory is an empty index. `env` must outlive
// the index. Errors: kNotFound if the directory is missing; kCorruption if the list of the index's
// files is damaged (the store then empties the directory and puts everything again); kNeedsNewer
// for an engine, a parameter or a format of a later version.
Result<std::unique_ptr<ChunkIndex>> OpenIndex(Env& env, const IndexOptions& options);

}  // namespace siltfs
