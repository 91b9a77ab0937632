// SILT (Lim et al., SOSP 2011): a chunk index on flash in three kinds of stores, from one that is
// fast to write to one that needs little memory. The hash of a name chooses one of P partitions.
// The name is put into the partition's LogStore (section 3.1). A full LogStore is frozen and
// replaced by a new one; the frozen one is converted into a HashStore (3.2); HashStores are merged
// into the partition's SortedStore (3.3). docs/silt.md describes the engine, docs/format.md the
// files.
//
// Thread-safety, errors, durability: index/chunk_index.h. Lookups hold no lock while they read
// flash. Conversions and merges run in a thread of the index; if it falls behind, Put waits, so
// memory stays bounded. If the disk is full, Put and Flush fail with kNoSpace and may be repeated
// once there is room. After any other write failure they fail permanently, because the device's
// contents are unknown.
//
// Memory: 6.5 bytes per entry in LogStores, 2.1 in HashStores, 0.05 in SortedStores; merge_policy.h
// sets how many entries are in HashStores. Open files: one per LogStore and
// HashStore, two per SortedStore. The process must raise its limit of open files.
#pragma once

#include <memory>

#include "index/chunk_index.h"
#include "index/index_engine.h"
#include "index/silt/silt_options.h"
#include "store/env/env.h"

namespace siltfs {

// The options that an index with these engine parameters has, besides its directory and limits.
SiltIndexOptions SiltOptionsOf(const EngineParameters& parameters);

// The row of this engine in the table of engines.
extern const IndexEngineRow kSiltIndexEngine;

Result<std::unique_ptr<ChunkIndex>> OpenSiltIndex(Env& env, const SiltIndexOptions& options);

}  // namespace siltfs
