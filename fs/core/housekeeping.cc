// The thread that folds what is left in overlays: of files that a crash or a full disk left
// unfolded, and of open files that nobody has written to for a while. It also fills the reserve.
#include <chrono>

#include "fs/core/file_system_impl.h"

namespace siltfs {
namespace {

constexpr std::chrono::seconds kRound{5};
constexpr int64_t kIdleNanoseconds = 10'000'000'000;

}  // namespace

void FileSystemImpl::KeepHouse() {
  FoldLeftovers();
  for (;;) {
    {
      MutexLock lock(housekeeping_mutex_);
      if (!stopping_) housekeeping_wakes_.WaitFor(housekeeping_mutex_, kRound);
      if (stopping_) return;
    }
    if (UnderPressure()) RelievePressure();
    const bool room = reserve_->Fill().ok();
    if (room && folds_wait_for_room_.exchange(false)) FoldLeftovers();
    FoldIdle();
  }
}

void FileSystemImpl::FoldIdle() {
  const int64_t now = env_.MonotonicNanoseconds();
  for (const InodePtr& inode : inodes_.Snapshot()) {
    if (inode->open_count == 0) continue;  // folded when it was released
    bool idle;
    {
      InodeLock lock(inode, InodeLock::Mode::kShared);
      idle =
          inode->loaded && NeedsFold(inode->record) && now - inode->last_write > kIdleNanoseconds;
    }
    if (idle) FoldAndLog(inode->number);
    if (UnderPressure()) RelievePressure();
    MutexLock lock(housekeeping_mutex_);
    if (stopping_) return;
  }
}

void FileSystemImpl::RelievePressure() {
  for (const InodePtr& inode : inodes_.Snapshot()) {
    if (!UnderPressure()) return;
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    // Small ones are only dropped from memory: folding them now would end chunks where their files
    // go on.
    if (!inode->loaded || !inode->overlay_loaded || inode->overlay.plain_bytes() == 0) continue;
    if (inode->unsaved && !SaveLast(*inode).ok()) continue;
    inode->DropOverlay();
  }
}

void FileSystemImpl::WakeHousekeeper() {
  MutexLock lock(housekeeping_mutex_);
  housekeeping_wakes_.NotifyAll();
}

void FileSystemImpl::StopHousekeeping() {
  {
    MutexLock lock(housekeeping_mutex_);
    stopping_ = true;
    housekeeping_wakes_.NotifyAll();
  }
  if (housekeeper_.joinable()) housekeeper_.join();
}

}  // namespace siltfs
