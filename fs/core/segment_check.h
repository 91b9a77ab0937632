// Whether metadata is as new as the segments beside it (docs/crash-model.md, I5): a store whose
// metadata was lost and replaced by an older copy must not be opened, nor "recovered" by removing
// what the newer one held.
//
// Thread-safety: any thread. Reads only.
#pragma once

#include <algorithm>

#include "fs/dedup/segment_recovery.h"
#include "fs/meta/segment_record.h"
#include "store/base/status.h"
#include "store/env/env.h"
#include "store/segment/segment_files.h"

namespace siltfs {

// Whether any of these records (id and record, each) is of a segment that holds chunks.
template <typename Records>
bool HoldAnything(const Records& records) {
  return std::any_of(records.begin(), records.end(),
                     [](const auto& numbered) { return numbered.second.chunks > 0; });
}

// kCorruption where there is nothing in the place of the segments, though metadata knows of some
// (their disk may not be mounted), or a symbolic link in the place of any, which is not followed.
Status CheckPlaceOfSegments(const std::string& store, const SegmentListing& listing,
                            bool metadata_knows_some);

// CheckPlaceOfSegments; and kCorruption, naming the segment, if one was written that metadata
// cannot know of: its id was never claimed, its blocks follow a commit that metadata has not heard
// of, or the store was closed cleanly and it is longer than it was then. Sealed segments are not
// looked into.
Status CheckSegments(Env& env, const StoreIdentity& identity, const IdRanges& ids,
                     const SegmentRecords& records);

}  // namespace siltfs
