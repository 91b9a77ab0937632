// Tells segments that a fenced writer has put in a bucket from those of the store.
//
// Thread-safety: any thread. No errors.
#pragma once

#include "fs/records/epoch_floors.h"
#include "store/base/location.h"
#include "store/segment/segment_store.h"

namespace siltfs {

// Whether a writer that was fenced has put this segment. Call after `segments` has been listed.
bool IsOfFencedWriter(SegmentStore& segments, SegmentId id, const EpochFloors& floors);

}  // namespace siltfs
