// The record of a sealed segment, made from the trailer at the end of its footer. Recovery and
// recompression write such a record to metadata. Checks and scrubs compare the record in metadata
// with it.
#pragma once

#include "fs/records/segment_record.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

SegmentRecord SealedRecord(const SegmentTrailer& trailer);

}  // namespace siltfs
