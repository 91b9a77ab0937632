#include "fs/inodes/dirty_inodes.h"

#include <utility>

namespace siltfs {

void DirtyInodes::Add(const InodePtr& inode) {
  const MutexLock lock(mutex_);
  inodes_.try_emplace(inode->number, inode);
}

void DirtyInodes::Remove(InodeNumber number) {
  InodePtr last;  // may be the last reference: released without the mutex
  const MutexLock lock(mutex_);
  if (auto found = inodes_.find(number); found != inodes_.end()) {
    last = std::move(found->second);
    inodes_.erase(found);
  }
}

std::vector<InodePtr> DirtyInodes::All() const {
  const MutexLock lock(mutex_);
  std::vector<InodePtr> all;
  all.reserve(inodes_.size());
  for (const auto& [number, inode] : inodes_) all.push_back(inode);
  return all;
}

}  // namespace siltfs
