// Checks the deltas of all segments: that each base is in some segment as a whole chunk, and, if
// payloads are checked (CheckOptions::data), that each delta inflates to the chunk that the chunk
// table records. Chunks whose base is lost are reported, and count as damaged (CheckContext).
#pragma once

#include "fs/check/base_finder.h"
#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"

namespace siltfs {

// Call it after CheckAllSegments, which finds damaged bases.
Status CheckDeltas(CheckContext& context, ChunkFinder& finder, BaseFinder& bases);

}  // namespace siltfs
