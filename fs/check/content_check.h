// What files refer to: every chunk of every recipe and overlay is in a segment, under its name and
// with its length.
//
// The index is asked first, in batches. What it does not find, or finds damaged, is gathered and
// looked for in all segments at once: so a store is checked down to its chunks with an index that
// is behind, as after a crash, or with none.
#pragma once

#include <vector>

#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"

namespace siltfs {

// Reports one finding a file and kind of damage, in the end.
Status CheckContents(CheckContext& context, ChunkFinder& finder);

}  // namespace siltfs
