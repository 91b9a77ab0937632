// The chunk index of a store that nobody has mounted, on its own: to look into it. Read-only,
// nothing is written. Without what the segments alone know after a crash.
#pragma once

#include <memory>
#include <string>

#include "index/chunk_index.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// Declared in this order, so that the lock goes last.
struct StoreIndex {
  std::unique_ptr<FileLock> lock;
  std::unique_ptr<ChunkIndex> index;
};

// kNotFound if there is no store, kInUse if someone has it mounted, kNeedsNewer for a later
// version's, kCorruption if the index is missing or too damaged to open (the next mount then makes
// it anew).
Result<StoreIndex> OpenStoreIndexReadOnly(Env& env, const std::string& store);

}  // namespace siltfs
