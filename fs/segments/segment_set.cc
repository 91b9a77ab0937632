#include "fs/segments/segment_set.h"

#include <algorithm>
#include <utility>

namespace siltfs {

SegmentSet::SegmentSet(std::vector<SegmentId> ids) : ids_(std::move(ids)), size_(ids_.size()) {
  std::sort(ids_.begin(), ids_.end());
}

void SegmentSet::Add(SegmentId id) {
  WriterLock lock(mutex_);
  const auto place = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (place == ids_.end() || *place != id) ids_.insert(place, id);
  size_ = ids_.size();
}

void SegmentSet::Remove(SegmentId id) {
  WriterLock lock(mutex_);
  const auto place = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (place != ids_.end() && *place == id) ids_.erase(place);
  size_ = ids_.size();
}

bool SegmentSet::Contains(SegmentId id) const {
  if (size_ == 0) return false;
  ReaderLock lock(mutex_);
  return std::binary_search(ids_.begin(), ids_.end(), id);
}

}  // namespace siltfs
