// What was lost with a chunk that cannot be read: which chunks, and what is known of them for
// certain.
//
// A block's checksum is of its payload as a whole, so all its chunks are lost together. What they
// were is told by the block's own head, if that is whole, else by the segment's footer, verified as
// a whole, or the table of its writer. Where neither can be had, of the one chunk only its place is
// known.
//
// Thread-safety: any thread. Cost: reads a block's head, and in the worst case a whole footer.
#pragma once

#include "fs/dedup/segment_cache.h"
#include "fs/meta/damage_record.h"

namespace siltfs {

// The block of this file that holds the ordinal, which could not be read.
DamagedBlock IdentifyDamage(SegmentCache& segments, const OpenSegment& segment, uint32_t ordinal);

DamagedChunk DamagedChunkOf(const ChunkRecord& record);

}  // namespace siltfs
