#include "fs/inodes/inode_table.h"

#include <algorithm>

#include "fs/content/file_content.h"

namespace siltfs {

ContentTally::ContentTally(const InodeRecord& record)
    : allocated(static_cast<int64_t>(FileContent::AllocatedBytes(record))),
      references(static_cast<int64_t>(FileContent::ChunkReferences(record))) {}

InodePtr InodeTable::Get(InodeNumber number) {
  MutexLock lock(mutex_);
  auto found = slots_.find(number);
  if (found != slots_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second.recent);
    return found->second.inode;
  }
  recent_.push_front(number);
  InodePtr inode = std::make_shared<Inode>(number);
  slots_[number] = {inode, recent_.begin()};
  Shrink();
  return inode;
}

// Removes unused inodes. Looks only at a few of the least recently used ones, and moves inodes in
// use to the front.
void InodeTable::Shrink() {
  for (int looks = 0; slots_.size() > capacity_ && looks < 4; ++looks) {
    const InodeNumber oldest = recent_.back();
    auto slot = slots_.find(oldest);
    // While mutex_ is held, no thread can get a new reference. So if the table has the only
    // reference, the inode's fields may be read.
    if (slot->second.inode.use_count() == 1 && slot->second.inode->open_count == 0) {
      recent_.pop_back();
      slots_.erase(slot);
    } else {
      recent_.splice(recent_.begin(), recent_, slot->second.recent);
    }
  }
}

std::vector<InodePtr> InodeTable::Snapshot() const {
  MutexLock lock(mutex_);
  std::vector<InodePtr> inodes;
  inodes.reserve(slots_.size());
  for (const auto& [number, slot] : slots_) inodes.push_back(slot.inode);
  return inodes;
}

void InodeTable::Erase(InodeNumber number) {
  MutexLock lock(mutex_);
  auto found = slots_.find(number);
  if (found == slots_.end()) return;
  recent_.erase(found->second.recent);
  slots_.erase(found);
}

InodeLock::InodeLock(std::vector<InodePtr> inodes, Mode mode) SILTFS_NO_THREAD_SAFETY_ANALYSIS
    : inodes_(std::move(inodes)),
      mode_(mode) {
  std::sort(inodes_.begin(), inodes_.end(),
            [](const InodePtr& a, const InodePtr& b) { return a->number < b->number; });
  inodes_.erase(std::unique(inodes_.begin(), inodes_.end()), inodes_.end());
  for (const InodePtr& inode : inodes_) {
    mode_ == Mode::kShared ? inode->mutex.LockShared() : inode->mutex.Lock();
  }
}

InodeLock::~InodeLock() SILTFS_NO_THREAD_SAFETY_ANALYSIS {
  for (auto inode = inodes_.rbegin(); inode != inodes_.rend(); ++inode) {
    mode_ == Mode::kShared ? (*inode)->mutex.UnlockShared() : (*inode)->mutex.Unlock();
  }
}

}  // namespace siltfs
