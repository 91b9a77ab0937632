// Checks that every chunk to which a recipe or overlay refers is in a segment, under its name and
// with its length.
//
// The index is asked first, in batches. Chunks that the index does not find, or finds only damaged,
// are collected and searched in all segments in one pass. So a store is checked down to its chunks
// even without an index, or with one that lacks entries after a crash.
#pragma once

#include <vector>

#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"

namespace siltfs {

// Reports one finding per file and kind of damage, at the end.
Status CheckContents(CheckContext& context, ChunkFinder& finder);

}  // namespace siltfs
