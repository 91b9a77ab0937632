// Copying a range from one file into another without copying bytes: the target's recipe takes over
// the source's chunks, whole subtrees at once, so that the cost depends on the trees' heights and
// not on the range's length.
//
// A range seldom begins and ends at chunks' boundaries. What is left at its ends, of the source as
// of the target, goes into the target's overlay as slices of the old chunks, over holes in its
// recipe; the next fold cuts there anew, as it does where a hole or the end of the file had ended a
// chunk and no longer does.
#pragma once

#include "fs/core/overlay.h"
#include "fs/dedup/chunk_store.h"
#include "fs/meta/inode_record.h"

namespace siltfs {

struct CloneRange {
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t length = 0;  // > 0; within the source, and the target's end may grow by it
};

// The source must be settled (FileContent::IsSettled). The target need not: then every part goes
// into its overlay, slice by slice, which is for ranges of few parts. Source and target may be one
// file if the ranges don't overlap. After a failure the target is what it was.
Status CloneIntoFile(ChunkStore& chunks, const InodeRecord& source, const CloneRange& range,
                     InodeRecord& target, Overlay& target_overlay);

// Whether the range, of a settled file, has so few chunks and holes that an overlay may take them
// one by one.
Result<bool> HasFewParts(ChunkStore& chunks, const InodeRecord& source, uint64_t offset,
                         uint64_t length);

}  // namespace siltfs
