// Finds the chunks that were lost together with an unreadable chunk, and what is known about them
// for certain.
//
// A block's checksum covers its payload as a whole, so all its chunks are lost together. Their
// names and tags come from the block's head if it is undamaged. Otherwise they come from the
// segment's footer, verified as a whole, or from the table of the segment's writer. If none of
// these can be read, only the places of the chunks are known. If the block table cannot be read
// either, only the place of the one chunk is known.
//
// Thread-safety: any thread. Cost: reads a block's head, and in the worst case a whole footer.
#pragma once

#include "fs/records/damage_record.h"
#include "fs/segments/segment_cache.h"

namespace siltfs {

// Returns the chunks of the block that holds `ordinal` in the segment's file. The block must be
// unreadable.
DamagedBlock IdentifyDamage(SegmentCache& segments, const OpenSegment& segment, uint32_t ordinal);

DamagedChunk DamagedChunkOf(const ChunkRecord& record);

}  // namespace siltfs
