// Copies a range from one file into another without copying bytes. The target's recipe takes over
// the source's chunks, whole subtrees at once. So the cost depends on the heights of the recipe
// trees, and not on the length of the range.
//
// A range seldom begins and ends at chunk boundaries. So some chunks of the source and of the
// target are used only in part, at the ends of the range. These parts go into the target's overlay
// as slices, and the target's recipe has holes in these places. The next fold cuts their bytes
// again. The fold also cuts a chunk again if a hole or the end of a file ended it before the
// copying, but neither follows it in the target afterwards.
#pragma once

#include "fs/chunks/chunk_store.h"
#include "fs/content/overlay.h"
#include "fs/records/inode_record.h"

namespace siltfs {

struct CloneRange {
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t length = 0;  // > 0; within the source; may extend the target
};

// Makes the range of the target equal to the range of the source. The source must be folded
// (FileContent::IsFolded). If the target is not folded, the whole range goes into its overlay,
// slice by slice. The range should then have few parts (HasFewParts). Source and target may be one
// file if the ranges don't overlap. A failure leaves the target unchanged.
Status CloneIntoFile(ChunkStore& chunks, const InodeRecord& source, const CloneRange& range,
                     InodeRecord& target, Overlay& target_overlay);

// Whether the range of a folded file has so few chunks and holes that an overlay can take them one
// by one.
Result<bool> HasFewParts(ChunkStore& chunks, const InodeRecord& source, uint64_t offset,
                         uint64_t length);

}  // namespace siltfs
