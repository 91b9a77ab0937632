// Tells segments that a fenced writer has put in a bucket from those of the store. A fenced writer
// may put a segment at any time, also after the next writer has begun and has removed such
// segments.
//
// Thread-safety: any thread. No errors.
#pragma once

#include <cstdint>

#include "fs/kv/kv_store.h"
#include "store/base/location.h"
#include "store/segment/segment_store.h"

namespace siltfs {

// The epoch of the store's last writer to a bucket. 0 if there was none, or if its record cannot be
// read: then no writer counts as fenced.
uint32_t LastBucketEpoch(const KvSnapshot& metadata);

// Whether a segment of which metadata has no record was put by a writer that was fenced: the store
// has had a writer of a later epoch since then. `own_epoch`: LastBucketEpoch. Call after `segments`
// has been listed.
bool IsOfFencedWriter(SegmentStore& segments, SegmentId id, uint32_t own_epoch);

}  // namespace siltfs
