// A set of segment ids, for example of the removed segments or of the victims.
//
// Thread-safety: every call from any thread; Contains of an empty set takes no lock. Memory: 4
// bytes for each id. No errors.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "store/base/location.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SegmentSet {
 public:
  SegmentSet() = default;
  explicit SegmentSet(std::vector<SegmentId> ids);  // in any order

  void Add(SegmentId id) SILTFS_EXCLUDES(mutex_);
  void Remove(SegmentId id) SILTFS_EXCLUDES(mutex_);
  bool Contains(SegmentId id) const SILTFS_EXCLUDES(mutex_);

 private:
  mutable SharedMutex mutex_;
  std::vector<SegmentId> ids_ SILTFS_GUARDED_BY(mutex_);  // ascending
  std::atomic<size_t> size_{0};
};

}  // namespace siltfs
