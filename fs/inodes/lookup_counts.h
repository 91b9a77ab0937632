// How often the kernel has looked up each inode and not yet forgotten it. An inode without names
// may be deleted only if its count is 0. Memory: 12 bytes for each cell of a table. While the table
// grows, at least 3/4 of its cells are used, so an inode takes at most 16 bytes.
//
// Thread-safety: every call from any thread. No errors, no I/O.
#pragma once

#include <cstdint>
#include <vector>

#include "store/base/thread_annotations.h"

namespace siltfs {

class LookupCounts {
 public:
  LookupCounts();

  void Add(uint64_t inode);
  // Subtracts `count`; returns the remaining count. 0 if the inode has no count.
  uint64_t Remove(uint64_t inode, uint64_t count);
  uint64_t Of(uint64_t inode) const;
  uint64_t inodes() const;
  // The inodes that have a count, in any order.
  std::vector<uint64_t> All() const;
  uint64_t memory_bytes() const;

 private:
  static constexpr uint64_t kNone = 0;  // inode numbers start at 1

  size_t HomeOf(uint64_t inode) const SILTFS_REQUIRES(mutex_);
  // The cell of the inode, or the empty one where it would go.
  size_t Find(uint64_t inode) const SILTFS_REQUIRES(mutex_);
  void Resize(size_t cells) SILTFS_REQUIRES(mutex_);
  void EraseAt(size_t at) SILTFS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  // Open addressing with linear probing, in two arrays to avoid padding.
  std::vector<uint64_t> inodes_ SILTFS_GUARDED_BY(mutex_);
  std::vector<uint32_t> counts_ SILTFS_GUARDED_BY(mutex_);
  size_t used_ SILTFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace siltfs
