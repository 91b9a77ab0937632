// Hands out inode numbers and segment ids that have never been used. A range of numbers is claimed
// durably before its first number is used. So a crash wastes the rest of a range, but no number is
// used twice.
//
// Thread-safety: every call from any thread. Errors: those of the write that claims a range.
// Durability: when a number is returned, its claim is durable.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/segment_record.h"
#include "store/base/location.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class IdAllocator {
 public:
  using WriteThrough = std::function<Status(const std::vector<Mutation>&)>;

  // The number of low bits of a block's sequence that count the blocks of a mount. The epoch is
  // above them.
  static constexpr unsigned kSequenceBits = 40;
  // How many numbers are claimed at a time.
  static constexpr uint64_t kInodeRange = 1u << 16;
  static constexpr SegmentId kSegmentRange = 1u << 12;

  // Ids at or above this one are never handed out. So they can stand for segments that do not
  // exist.
  static constexpr SegmentId first_unused_segment() {
    return std::numeric_limits<SegmentId>::max() - kSegmentRange;
  }

  // `found`: the ranges in metadata at the beginning of the mount.
  IdAllocator(const IdRanges& found, WriteThrough write_through);

  // Begins a writable mount: increments the epoch, claims the first ranges and marks the store as
  // in use.
  Status BeginMount();
  // Ends a writable mount: gives the unused numbers back and marks the store as closed.
  // `next_segment`: the first unused segment id.
  Status EndMount(SegmentId next_segment);

  Result<uint64_t> NextInode() { return NextInodes(1); }
  // Hands out `count` consecutive numbers, and returns the first one. kNoSpace if a number would
  // not be below kInodesPerLineage (fs/records/lineage.h).
  Result<uint64_t> NextInodes(uint64_t count);
  // The number that NextInode would return: all numbers that were handed out are below it. Over the
  // mounts of a store it never falls.
  uint64_t next_inode() const;
  // Claims another range of segment ids; returns the new limit.
  Result<SegmentId> ClaimSegments();

  // The first segment id, the end of the claimed ids, and the first block sequence of this mount.
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
