// All segments, several at a time; and what else lies in their directories, or should.
#pragma once

#include <functional>

#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"
#include "store/segment/block_head.h"

namespace siltfs {

// Reports what is wrong; see segment_walk.h for what is looked at.
Status CheckAllSegments(CheckContext& context, ChunkFinder& finder);

// Calls `visit` with every whole block of every segment that can be read, ascending; damage is
// passed over. With `kind`, of the segments of one kind, as far as their headers can be read.
Status ForEachBlock(CheckContext& context, ChunkFinder& finder, std::optional<SegmentKind> kind,
                    const std::function<Status(const BlockHead& head, uint32_t offset)>& visit);

}  // namespace siltfs
