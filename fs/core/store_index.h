// The chunk index of a store that nobody has mounted, on its own: to look into it, or to put into
// it what no segment has.
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
  bool rebuild_interrupted = false;  // IsRebuildUnfinished
};

// Nothing is written. Without what the segments alone know after a crash.
// kNotFound if there is no store, kInUse if someone has it mounted, kNeedsNewer for a later
// version's, kCorruption if the index is missing or too damaged to open (the next mount then makes
// it anew).
Result<StoreIndex> OpenStoreIndexReadOnly(Env& env, const std::string& store);

// For writing, as a mount would open it, under the store's own index_memory. What is put there has
// the sequence durable_sequence() + 1: all blocks of the store are durable in its index, and those
// to come have higher ones. So kInvalidArgument, besides the above, if the store was not unmounted
// cleanly or the index has lost entries to damage; a mount puts both right.
Result<StoreIndex> OpenStoreIndexForWriting(Env& env, const std::string& store);

// Leaves the index's directory empty, and makes it if it is missing: an index that has nothing, and
// that is to be filled from the segments. Until FinishRebuild a mark tells so, which is durable
// before anything goes. The caller holds the store's lock.
Status EmptyIndexDirectory(Env& env, const std::string& store);

// Removes the mark, durably, if it is there: the index has all that the segments have, or metadata
// says that the store is mounted. The caller holds the store's lock.
Status FinishRebuild(Env& env, const std::string& store);

// Whether the index was being made anew and may lack entries.
Result<bool> IsRebuildUnfinished(Env& env, const std::string& store);

}  // namespace siltfs
