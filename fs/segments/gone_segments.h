// The set of segments that no longer exist. These are the segments removed since the store was
// opened, and the ids that were used before but had no segment when the store was opened. An index
// entry that leads into one of them counts as missing.
//
// Thread-safety: every call from any thread. Ownership: a copy shares the underlying sets, and may
// outlive the store. Memory: 4 bytes for each segment of the store. No errors.
#pragma once

#include <memory>
#include <utility>

#include "fs/segments/segment_set.h"
#include "store/base/location.h"

namespace siltfs {

class GoneSegments {
 public:
  // `there`: the segments that existed when the store was opened; ids from `first_new` on were
  // unused then.
  GoneSegments(std::shared_ptr<const SegmentSet> removed, std::shared_ptr<const SegmentSet> there,
               SegmentId first_new)
      : removed_(std::move(removed)), there_(std::move(there)), first_new_(first_new) {}

  bool Contains(SegmentId segment) const {
    return removed_->Contains(segment) || (segment < first_new_ && !there_->Contains(segment));
  }

 private:
  std::shared_ptr<const SegmentSet> removed_;
  std::shared_ptr<const SegmentSet> there_;
  SegmentId first_new_;
};

}  // namespace siltfs
