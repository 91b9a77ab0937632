// Opens the choice of bases of a store with deltas.
//
// Thread-safety: any. Ownership: borrows `index`, `segments` and `bases`, which must outlive the
// result. Errors: none. If SliceLSH's files cannot be used or made, a report says so and there is
// no choice of bases: chunks are recompressed without becoming deltas, until the next mount.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "chunker/chunker.h"
#include "fs/deltas/near_duplicates.h"
#include "fs/segments/segment_cache.h"
#include "index/chunk_index.h"
#include "store/env/env.h"
#include "store/superblock/superblock.h"

namespace siltfs {

// Null if the choice cannot be opened. `directory`: of SliceLSH's files; made if it is missing.
std::unique_ptr<NearDuplicates> OpenNearDuplicates(Env& env, const std::string& directory,
                                                   const Superblock& superblock,
                                                   std::shared_ptr<const ChunkerTables> tables,
                                                   ChunkIndex& index, SegmentCache& segments,
                                                   BlockReader& blocks, const SegmentBases& bases,
                                                   std::function<bool(SegmentId)> is_gone,
                                                   NearDuplicates::Options options);

}  // namespace siltfs
