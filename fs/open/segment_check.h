// Checks that metadata is as new as the segments beside it (docs/crash-model.md, I5). A store with
// an older copy of its metadata must not be opened: recovery would remove data that only the lost,
// newer metadata knew.
//
// Thread-safety: any thread. Reads only.
#pragma once

#include <algorithm>

#include "fs/records/segment_record.h"
#include "fs/recovery/segment_recovery.h"
#include "store/base/status.h"
#include "store/segment/segment_store.h"

namespace siltfs {

// Whether any of these (id, record) pairs belongs to a segment with chunks.
template <typename Records>
bool HoldAnything(const Records& records) {
  return std::any_of(records.begin(), records.end(),
                     [](const auto& numbered) { return numbered.second.chunks > 0; });
}

// kCorruption if there are no segments although metadata knows of some (their disk may not be
// mounted), or if there is a symbolic link in their place. Links are not followed.
Status CheckPlaceOfSegments(const SegmentStore& segments, const SegmentListing& listing,
                            bool metadata_knows_some);

// Calls CheckPlaceOfSegments. Also kCorruption, naming the segment, if metadata cannot know of a
// segment: its id was never claimed, its blocks follow a later commit than metadata's last, or the
// store was closed cleanly and the segment has grown since. Sealed segments are not read.
Status CheckSegments(SegmentStore& segments, const StoreIdentity& identity, const IdRanges& ids,
                     const SegmentRecords& records);

}  // namespace siltfs
