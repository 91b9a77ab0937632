// Hands out inode numbers and segment ids that have never been used. They come from ranges that are
// claimed durably before the first number of a range is used, so a crash costs the rest of a range
// and reuses nothing.
//
// Thread-safety: every call from any thread. Errors: those of the write that claims. Durability:
// claims are durable when the number is returned.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "fs/meta/kv_store.h"
#include "fs/meta/segment_record.h"
#include "store/base/location.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class IdAllocator {
 public:
  using WriteThrough = std::function<Status(const std::vector<Mutation>&)>;

  static constexpr unsigned kSequenceBits = 40;  // of a block's sequence, below the epoch
  // How many are claimed at a time.
  static constexpr uint64_t kInodeRange = 1u << 16;
  static constexpr SegmentId kSegmentRange = 1u << 12;

  // Segment ids from here on are never handed out: whoever needs ids of segments that are not
  // there, and never will be, finds them here.
  static constexpr SegmentId first_unused_segment() {
    return std::numeric_limits<SegmentId>::max() - kSegmentRange;
  }

  // The ranges as a mount finds them, before anything is handed out.
  IdAllocator(const IdRanges& found, WriteThrough write_through);

  // Begins a writable mount: counts the epoch up, claims first ranges and notes that the store is
  // in use.
  Status BeginMount();
  // Gives back what was not used: `next_segment` is the first segment id that was not.
  Status EndMount(SegmentId next_segment);

  Result<uint64_t> NextInode();
  // Claims another range of segment ids; returns the new limit.
  Result<SegmentId> ClaimSegments();

  // Of this mount.
  SegmentId first_segment() const { return first_segment_; }
  SegmentId segment_limit() const;
  uint64_t first_sequence() const { return (epoch_ << kSequenceBits) + 1; }

 private:
  static Result<SegmentId> NextLimit(SegmentId limit);
  Status Write(const IdRanges& ranges) SILTFS_REQUIRES(mutex_);

  const WriteThrough write_through_;
  const SegmentId first_segment_;
  const uint64_t epoch_;  // of this mount
  mutable Mutex mutex_;
  IdRanges claimed_ SILTFS_GUARDED_BY(mutex_);
  uint64_t next_inode_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
