// The files that may be dirty, and the size of their deferred changes.
//
// Thread-safety: every call from any thread; the functions call no other component while they hold
// the mutex. Ownership: shares the inodes' objects. So the inode table does not release them.
#pragma once

#include <atomic>
#include <unordered_map>
#include <vector>

#include "fs/inodes/inode_table.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class DirtyInodes {
 public:
  void Add(const InodePtr& inode);
  void Remove(InodeNumber number);
  std::vector<InodePtr> All() const;

  // Adds to the approximate number of bytes that the deferred changes will take as mutations.
  void CountBytes(int64_t difference) { bytes_ += static_cast<uint64_t>(difference); }
  uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<uint64_t> bytes_ = 0;
  mutable Mutex mutex_;
  std::unordered_map<InodeNumber, InodePtr> inodes_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
