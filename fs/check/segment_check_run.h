// Checks all segments, several in parallel, and finds missing segments and leftover files.
#pragma once

#include <functional>

#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"
#include "store/segment/block_head.h"

namespace siltfs {

// Reports findings; see segment_walk.h for the checks.
Status CheckAllSegments(CheckContext& context, ChunkFinder& finder);

// Calls `visit` for each block with an intact head in each segment that can be opened, by ascending
// segment id and offset. Skips damaged ranges. If `kind` is set, also skips segments whose header
// names another kind, but not segments whose header cannot be read.
Status ForEachBlock(CheckContext& context, ChunkFinder& finder, std::optional<SegmentKind> kind,
                    const std::function<Status(const BlockHead& head, uint32_t offset)>& visit);

}  // namespace siltfs
