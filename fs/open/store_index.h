// Opens the chunk index of an unmounted store on its own: to read it, or to put entries that no
// segment has.
#pragma once

#include <memory>
#include <string>

#include "index/index_engine.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct Superblock;

// Declared in this order, so that the lock is released last.
struct StoreIndex {
  std::unique_ptr<FileLock> lock;
  std::unique_ptr<ChunkIndex> index;
  bool rebuild_interrupted = false;  // IsRebuildUnfinished
};

// The engine, directory and parameters of a store's index, as its superblock says, for writing and
// with the store's own index_memory.
IndexOptions IndexOptionsOf(const Superblock& superblock, const std::string& store);

// The memory that the index of this store takes at any limit, in bytes, for a warning. If the store
// or its engine is unknown: that of the default engine.
uint64_t LeastIndexMemory(Env& env, const std::string& store);

// Writes nothing. After a crash, the index may lack entries that only the segments have. kNotFound
// if there is no store, kInUse if it is mounted, kNeedsNewer for a store of a later version.
// kCorruption if the index is missing or too damaged to open; the next mount then rebuilds it.
Result<StoreIndex> OpenStoreIndexReadOnly(Env& env, const std::string& store);

// Opens the index for writing, as a mount would, with the store's own index_memory. The caller puts
// entries with the sequence durable_sequence() + 1: all blocks of the store are durable in its
// index, and later blocks have higher sequences. Hence kInvalidArgument, besides the errors above,
// if the store was not unmounted cleanly or the index has lost entries to damage; a mount fixes
// both.
Result<StoreIndex> OpenStoreIndexForWriting(Env& env, const std::string& store);

// Empties the index's directory, or makes it if it is missing: an index without entries, to be
// filled from the segments. Until FinishRebuild, a mark says that the index lacks entries. The mark
// is durable before anything is removed. The caller holds the store's lock.
Status EmptyIndexDirectory(Env& env, const std::string& store);

// Removes the mark of EmptyIndexDirectory, durably, if it is there. Call it once the index has all
// entries of the segments, or metadata says that the store is mounted. The caller holds the store's
// lock.
Status FinishRebuild(Env& env, const std::string& store);

// Whether a rebuild was begun and not finished, so that the index may lack entries.
Result<bool> IsRebuildUnfinished(Env& env, const std::string& store);

}  // namespace siltfs
