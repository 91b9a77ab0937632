// The receiver of sealed segments. When a commit has recorded a segment as sealed, the segment log
// passes the segment to the receiver. From then on the log does not change the segment.
//
// Thread-safety: Add is called on the commit thread, without a lock.
#pragma once

#include "fs/records/segment_record.h"
#include "store/base/location.h"

namespace siltfs {

class CommittedSegments {
 public:
  virtual ~CommittedSegments() = default;
  virtual void Add(SegmentId segment, const SegmentRecord& record) = 0;
};

}  // namespace siltfs
