// SILT (Lim et al., SOSP 2011): a chunk index on flash in three kinds of stores, from one that is
// quick to write to one that needs hardly any memory. The hash of a name chooses one of P
// partitions. There it is put into the LogStore (section 3.1); a full LogStore is frozen, a new one
// begun, and the frozen one converted into a HashStore (3.2); HashStores are merged into the
// partition's SortedStore (3.3). docs/silt.md says how, docs/format.md describes the files.
//
// Thread-safety, errors, durability: index/chunk_index.h. Lookups hold no lock while they read
// flash. Conversions and merges run in a thread of the index; when it falls behind, Put waits, so
// memory stays bounded. When the disk is full Put and Flush fail with kNoSpace and may be repeated
// when it no longer is; after any other failure to write they fail for good, as what the device
// then holds is unknown.
//
// Memory: 6.5 bytes an entry in LogStores, 2.1 in HashStores, 0.04 in SortedStores;
// hash_store_share says how many are where. Open files: one for every store; raise the limit.
#pragma once

#include <memory>

#include "index/chunk_index.h"
#include "index/silt/silt_options.h"
#include "store/env/env.h"

namespace siltfs {

Result<std::unique_ptr<ChunkIndex>> OpenSiltIndex(Env& env, const SiltIndexOptions& options);

}  // namespace siltfs
