// The chunks that were lost with an unreadable chunk, and what is known of them for certain.
//
// A block's checksum covers its payload as a whole, so all its chunks are lost together. The
// block's own head has their names and tags, if it is whole; else the segment's footer, verified as
// a whole, or the table of its writer. If neither can be read, only the place of the one chunk is
// known.
//
// Thread-safety: any thread. Cost: reads a block's head, and in the worst case a whole footer.
#pragma once

#include "fs/dedup/segment_cache.h"
#include "fs/meta/damage_record.h"

namespace siltfs {

// Identifies the chunks of the unreadable block of this file that holds the ordinal.
DamagedBlock IdentifyDamage(SegmentCache& segments, const OpenSegment& segment, uint32_t ordinal);

DamagedChunk DamagedChunkOf(const ChunkRecord& record);

}  // namespace siltfs
