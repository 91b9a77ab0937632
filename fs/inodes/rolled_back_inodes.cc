#include "fs/inodes/rolled_back_inodes.h"

namespace siltfs {

void RolledBackInodes::Add(const std::vector<uint64_t>& inodes) {
  if (inodes.empty()) return;
  const MutexLock lock(mutex_);
  ++rollbacks_;
  for (const uint64_t inode : inodes) inodes_[inode] = {.generation = rollbacks_};
  any_ = true;
}

uint64_t RolledBackInodes::LookUp(uint64_t inode) {
  if (!any_) return 0;
  const MutexLock lock(mutex_);
  const auto found = inodes_.find(inode);
  if (found == inodes_.end()) return 0;
  found->second.stale = false;
  return found->second.generation;
}

uint64_t RolledBackInodes::GenerationOf(uint64_t inode) const {
  if (!any_) return 0;
  const MutexLock lock(mutex_);
  const auto found = inodes_.find(inode);
  return found == inodes_.end() ? 0 : found->second.generation;
}

bool RolledBackInodes::IsStale(uint64_t inode) const {
  if (!any_) return false;
  const MutexLock lock(mutex_);
  const auto found = inodes_.find(inode);
  return found != inodes_.end() && found->second.stale;
}

void RolledBackInodes::Remove(uint64_t inode) {
  if (!any_) return;
  const MutexLock lock(mutex_);
  inodes_.erase(inode);
  any_ = !inodes_.empty();
}

}  // namespace siltfs
