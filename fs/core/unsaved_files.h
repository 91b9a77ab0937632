// Which files may have changes that metadata has not been given, and how much there is to give.
//
// Thread-safety: every call from any thread; its mutex is held for no other call. Ownership: keeps
// the inodes' objects, so that the inode table does, too.
#pragma once

#include <atomic>
#include <unordered_map>
#include <vector>

#include "fs/core/inode_table.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class UnsavedFiles {
 public:
  void Add(const InodePtr& inode);
  void Remove(InodeNumber number);
  std::vector<InodePtr> All() const;

  // What the changes kept back come to, about, once they are mutations.
  void CountBytes(int64_t difference) { bytes_ += static_cast<uint64_t>(difference); }
  uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<uint64_t> bytes_ = 0;
  mutable Mutex mutex_;
  std::unordered_map<InodeNumber, InodePtr> inodes_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
