// Tells objects of segments in a bucket that the store does not need from those that it needs: a
// fenced writer has put them, or they arrived after their segment was removed.
//
// Thread-safety: any thread. No errors.
#pragma once

#include "fs/records/epoch_floors.h"
#include "fs/records/former_segments.h"
#include "store/base/location.h"
#include "store/segment/segment_store.h"

namespace siltfs {

// Whether a writer that was fenced has put this segment. Call after `segments` has been listed.
bool IsOfFencedWriter(SegmentStore& segments, SegmentId id, const EpochFloors& floors);

// Whether an earlier epoch has put this segment, of which metadata has no record. Then the store
// does not need it: the segment was removed since, or a fenced writer has put it, perhaps after the
// removal. Weaker than IsOfFencedWriter, and not for callers that look for lost records.
bool IsLeftOver(SegmentStore& segments, SegmentId id, const EpochFloors& floors);

// Whether a segment of which metadata has no record is no lost one: a fenced writer has put it, or
// it was removed, and a request to put it arrived late.
bool IsNotLost(SegmentStore& segments, SegmentId id, const EpochFloors& floors,
               const FormerSegments& former);

}  // namespace siltfs
