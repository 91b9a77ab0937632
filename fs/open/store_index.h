// Opens the chunk index of an unmounted store on its own: to read it, or to put entries that no
// segment has.
#pragma once

#include <memory>
#include <string>

#include "index/index_engine.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct FileSystemOptions;
struct Superblock;

// Declared in this order, so that the lock is released last.
struct StoreIndex {
  std::unique_ptr<FileLock> lock;
  std::unique_ptr<ChunkIndex> index;
  bool rebuild_interrupted = false;  // the result of IsRebuildUnfinished
};

// The options to open a store's index for writing. The engine, the parameters and the memory limit
// are those in the superblock.
IndexOptions IndexOptionsOf(const Superblock& superblock, const std::string& store);

// The options with which a mount opens the index: `options` overrides the memory limit, and sets
// what the superblock does not keep.
IndexOptions IndexOptionsOf(const Superblock& superblock, const FileSystemOptions& options);

// Returns the bytes of memory that this store's index takes however low its limit is. Commands warn
// if the limit is lower. If the store cannot be read or its engine is unknown, returns the value
// for the default engine.
uint64_t LeastIndexMemory(Env& env, const std::string& store);

// Opens the index for reading; writes nothing. After a crash, the index may lack entries, which the
// next mount takes from the segments. kNotFound if there is no store, kInUse if it is mounted,
// kNeedsNewer for a store of a later version. kCorruption if the index is missing or too damaged to
// open; the next mount then rebuilds it.
Result<StoreIndex> OpenStoreIndexReadOnly(Env& env, const std::string& store);

// Opens the index for writing, as a mount would, with the index_memory of the superblock. The
// caller puts entries with the sequence durable_sequence() + 1, which claims that the index has
// durable entries of all blocks so far. So besides the errors above, returns kInvalidArgument if
// the store was not unmounted cleanly or the index has lost entries to damage; a mount fixes both.
// The blocks of later mounts have higher sequences.
Result<StoreIndex> OpenStoreIndexForWriting(Env& env, const std::string& store);

// Empties the index's directory, or makes it if it is missing. OpenIndex then gives an index
// without entries, to be filled from the segments. Until FinishRebuild, a mark says that the index
// lacks entries. The mark is durable before anything is removed. The caller holds the store's lock.
Status EmptyIndexDirectory(Env& env, const std::string& store);

// Makes the mark of EmptyIndexDirectory, durably, if it is not there: the store is going to be
// closed before the index has all entries. The caller holds the store's lock.
Status MarkRebuild(Env& env, const std::string& store);

// Removes the mark of EmptyIndexDirectory, durably, if it is there. Call it once the index has all
// entries of the segments. A mount may call it earlier, once metadata says that the store is
// mounted: after a crash, the next mount then puts the missing entries. The caller holds the
// store's lock.
Status FinishRebuild(Env& env, const std::string& store);

// Whether a rebuild was begun and not finished, so that the index may lack entries.
Result<bool> IsRebuildUnfinished(Env& env, const std::string& store);

}  // namespace siltfs
