// Opens an index with the engine that a store's superblock names.
#pragma once

#include <memory>
#include <string>

#include "index/chunk_index.h"
#include "store/env/env.h"

namespace siltfs {

// The numbers are on disk (superblock); never renumber.
enum class IndexEngine : uint8_t {
  kMap = 0,
  kSilt = 1,
};

struct IndexOptions {
  IndexEngine engine = IndexEngine::kSilt;
  std::string directory;   // must exist; the engine owns every file in it
  bool read_only = false;  // writes nothing, even after a crash; Put and Delete fail with kReadOnly
  uint64_t memory_limit = kNoMemoryLimit;  // bytes; ignored by engines without a limit
};

// Opens the index in options.directory; an empty directory is an empty index. `env` must outlive
// the index. Errors: kNotFound if the directory is missing; kCorruption if the list of the index's
// files is damaged (the store then empties the directory and puts everything again); kNeedsNewer
// for an engine or format of a later version.
Result<std::unique_ptr<ChunkIndex>> OpenIndex(Env& env, const IndexOptions& options);

}  // namespace siltfs
