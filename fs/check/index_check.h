// Checks the chunk index itself. SegmentWalk (segment_walk.h) checks that the index finds every
// chunk.
#pragma once

#include "fs/check/check_context.h"

namespace siltfs {

// Opens the index read-only and puts it into the context. An index that cannot be opened is a
// finding. But if its engine or format is of a later version, the check fails with kNeedsNewer.
Status OpenCheckedIndex(CheckContext& context);

// Reports damage of the segment guide, which no mount needs (fs/guide/segment_guide.h).
Status CheckGuide(CheckContext& context);

// Reports damage of the super-features of recompressed chunks, which no mount needs
// (fs/deltas/near_duplicates.h).
Status CheckLsh(CheckContext& context);

// Reports the findings of the index's own verification, and counts entries without a chunk.
Status CheckIndex(CheckContext& context);

}  // namespace siltfs
