// Whether metadata is as new as the segments beside it (docs/crash-model.md, I5): a store whose
// metadata was lost and replaced by an older copy must not be opened, nor "recovered" by removing
// what the newer one held.
//
// Thread-safety: any thread. Reads only.
#pragma once

#include "fs/dedup/segment_recovery.h"
#include "fs/meta/segment_record.h"
#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

// kCorruption, naming the segment, if one was written that metadata cannot know of: its id was
// never claimed, its blocks follow a commit that metadata has not heard of, or the store was closed
// cleanly and it is longer than it was then. Sealed segments are not looked into.
Status CheckSegments(Env& env, const StoreIdentity& identity, const IdRanges& ids,
                     const SegmentRecords& records);

}  // namespace siltfs
