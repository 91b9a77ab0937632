// The receiver of sealed segments. The segment log passes each sealed segment to it once a commit
// has recorded the segment as sealed; the log no longer changes the segment then.
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
