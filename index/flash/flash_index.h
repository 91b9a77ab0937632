// A chunk index of an engine with page files (flash_partition.h). This class does what is the same
// for all of these engines.
//
// Durability. A put is entered into a buffer and into the log of puts (put_log.h). A checkpoint
// makes everything durable: it writes the last page of the log, syncs the files, and records in the
// manifest (state_map.h) which pages belong to the index. No page of an earlier checkpoint is
// changed, so a crash leaves the index as the last checkpoint made it. Flush is a checkpoint; it
// moves no buffer to flash. A checkpoint also happens when many pages are no longer in use, because
// files are removed only after one.
//
// Order. ForEach lists one partition after the other; each is read and sorted in memory.
//
// Growth. Nothing is evicted. A partition without room is filled again, or split.
//
// Memory. The engine's extras are dropped first, then its filters, those of the partitions with the
// fewest lookups before others; then full and other buffers are moved to flash early. At least
// kLeastFlashMemory is used, and the memory of the manifest and of the partitions' own tables. Read
// queues in use, and what a rewrite needs while it runs, are not limited.
//
// Full disk. A put that finds no space commits what is durable anyway, which removes files without
// pages in use, and tries again. Then it fails with kNoSpace, and may be repeated.
//
// Damage. A lookup, listing or rewrite that finds a damaged page counts it. The next checkpoint
// records that entries are lost, and the index does not open again (kCorruption); the store then
// rebuilds it.
//
// Thread-safety, ownership, errors: chunk_index.h. `env` must outlive the index.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "index/chunk_index.h"
#include "index/flash/flash_partition.h"
#include "index/index_engine.h"
#include "store/env/env.h"

namespace siltfs {

struct FlashIndexOptions {
  std::string directory;
  bool read_only = false;
  unsigned partition_bits = 0;          // of a new index
  std::optional<uint64_t> hash_secret;  // of a new index; random if it is empty
  uint64_t memory_limit = kNoMemoryLimit;
  unsigned read_depth = 64;
  // Tests use smaller values, so that all of this happens all the time.
  // After so many pages have become unused, a checkpoint removes their files.
  uint32_t pages_per_checkpoint = 16384;
  // A log of puts of at least so many pages is replaced if the buffers fill at most half of it.
  uint32_t least_log_pages = 64;
  // A log of the engine with at least so many unused pages is cleaned if fewer are in use.
  uint32_t least_dead_pages = 1024;
  // Files end earlier than the engine wants.
  uint32_t most_pages_per_file = UINT32_MAX;
};

// The log of puts, read queues and small structures.
inline constexpr uint64_t kLeastFlashMemory = 1U << 20;

// Opens the index in options.directory. Errors as those of OpenIndex.
Result<std::unique_ptr<ChunkIndex>> OpenFlashIndex(Env& env, const FlashIndexOptions& options,
                                                   std::unique_ptr<FlashEngine> engine);
// The same with the options of an engine's row. `partition_bits` is the engine's parameter for
// FlashIndexOptions::partition_bits.
Result<std::unique_ptr<ChunkIndex>> OpenFlashIndex(Env& env, const IndexOptions& options,
                                                   const EngineParameterSpec& partition_bits,
                                                   std::unique_ptr<FlashEngine> engine);

}  // namespace siltfs
