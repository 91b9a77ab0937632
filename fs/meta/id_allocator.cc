#include "fs/meta/id_allocator.h"

#include <algorithm>
#include <utility>

#include "fs/records/lineage.h"
#include "fs/records/schema.h"

namespace siltfs {

IdAllocator::IdAllocator(const IdRanges& found, WriteThrough write_through)
    : write_through_(std::move(write_through)),
      first_segment_(found.segment_limit),
      epoch_(found.epoch + 1),
      claimed_(found),
      next_inode_(found.inode_limit) {}

Result<SegmentId> IdAllocator::NextLimit(SegmentId limit) {
  if (limit > first_unused_segment() - kSegmentRange) {
    return Status(StatusCode::kFileTooLarge, "the store has used up its segment ids");
  }
  return limit + kSegmentRange;
}

Status IdAllocator::Write(const IdRanges& ranges) {
  SILTFS_RETURN_IF_ERROR(write_through_({{std::string(kIdRangesKey), ranges.Encode()}}));
  claimed_ = ranges;
  return Status::Ok();
}

Status IdAllocator::BeginMount() {
  MutexLock lock(mutex_);
  IdRanges ranges = claimed_;
  ranges.epoch = epoch_;
  ranges.inode_limit += kInodeRange;
  SILTFS_ASSIGN_OR_RETURN(ranges.segment_limit, NextLimit(ranges.segment_limit));
  ranges.clean = false;
  return Write(ranges);
}

Status IdAllocator::EndMount(SegmentId next_segment) {
  MutexLock lock(mutex_);
  IdRanges ranges = claimed_;
  ranges.inode_limit = next_inode_;
  ranges.segment_limit = next_segment;
  ranges.clean = true;
  return Write(ranges);
}

Result<uint64_t> IdAllocator::NextInodes(uint64_t count) {
  MutexLock lock(mutex_);
  if (next_inode_ >= kInodesPerLineage - count) {
    return Status(StatusCode::kNoSpace,
                  "the store has used up its inode numbers, so it cannot have new files");
  }
  if (claimed_.inode_limit - next_inode_ < count) {
    IdRanges ranges = claimed_;
    ranges.inode_limit += std::max(kInodeRange, count);
    SILTFS_RETURN_IF_ERROR(Write(ranges));
  }
  return std::exchange(next_inode_, next_inode_ + count);
}

uint64_t IdAllocator::next_inode() const {
  MutexLock lock(mutex_);
  return next_inode_;
}

Result<SegmentId> IdAllocator::ClaimSegments() {
  MutexLock lock(mutex_);
  IdRanges ranges = claimed_;
  SILTFS_ASSIGN_OR_RETURN(ranges.segment_limit, NextLimit(ranges.segment_limit));
  SILTFS_RETURN_IF_ERROR(Write(ranges));
  return claimed_.segment_limit;
}

SegmentId IdAllocator::segment_limit() const {
  MutexLock lock(mutex_);
  return claimed_.segment_limit;
}

}  // namespace siltfs
