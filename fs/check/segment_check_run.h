// Checks all segments, several in parallel, and finds missing segments and leftover files.
#pragma once

#include <functional>

#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"
#include "store/segment/block_head.h"

namespace siltfs {

// Reports findings; see segment_walk.h for the checks.
Status CheckAllSegments(CheckContext& context, ChunkFinder& finder);

// Calls `visit` with every whole block of every readable segment, in ascending order; skips damage.
// If `kind` is set, skips segments with a readable header of another kind.
Status ForEachBlock(CheckContext& context, ChunkFinder& finder, std::optional<SegmentKind> kind,
                    const std::function<Status(const BlockHead& head, uint32_t offset)>& visit);

}  // namespace siltfs
