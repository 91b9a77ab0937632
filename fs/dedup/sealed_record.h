// The record of a segment that is sealed, from the trailer that its footer ends in: what recovery
// writes down, and what a check compares with.
#pragma once

#include "fs/meta/segment_record.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

SegmentRecord SealedRecord(const SegmentTrailer& trailer);

}  // namespace siltfs
