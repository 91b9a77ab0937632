// The segments with deltas, and the bases that their deltas need (docs/glossary.md). A base may lie
// in any segment, so garbage collection must keep it as long as one of these segments needs it.
//
// A segment is in the set from before its file with deltas is put in place until it is removed. So
// the set may have segments without deltas, for example after a failed replacement, but lacks none
// with deltas.
//
// Thread-safety: every call from any thread. Memory: some 70 bytes for each segment. No I/O, except
// ForEachBase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "fs/records/segment_record.h"
#include "fs/segments/segment_cache.h"
#include "store/base/location.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"
#include "store/segment/base_ref.h"

namespace siltfs {

class SegmentBases {
 public:
  // Adds the segments whose records have the flag `deltas`.
  void Add(const SegmentRecords& records) SILTFS_EXCLUDES(mutex_);
  // Call it before a file with deltas is put in place (SegmentCache::Replace).
  void Add(SegmentId segment) SILTFS_EXCLUDES(mutex_);
  // Call it when the segment was removed.
  void Remove(SegmentId segment) SILTFS_EXCLUDES(mutex_);

  bool Contains(SegmentId segment) const SILTFS_EXCLUDES(mutex_);
  // All segments of the set, ascending.
  std::vector<SegmentId> All() const SILTFS_EXCLUDES(mutex_);
  size_t size() const SILTFS_EXCLUDES(mutex_);
  // The current point in the order of additions.
  uint64_t Now() const SILTFS_EXCLUDES(mutex_);
  // The segments that were added after the point `when`, ascending.
  std::vector<SegmentId> AddedSince(uint64_t when) const SILTFS_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  uint64_t now_ SILTFS_GUARDED_BY(mutex_) = 0;
  std::map<SegmentId, uint64_t> added_ SILTFS_GUARDED_BY(mutex_);  // when each one was added last
};

// Calls `visit` for each base that the deltas of the segment need. Reads the base table of the
// footer. If it is damaged, reads the blocks instead, and may then visit a base repeatedly. A
// segment without a file has no deltas. Memory: one base table. Fails if any base may be unknown:
// if the base table is damaged and also a block or the trailer, or if the device fails. Also fails
// if `visit` does.
Status ForEachBase(SegmentCache& segments, SegmentId segment,
                   const std::function<Status(const BaseRef&)>& visit);

}  // namespace siltfs
