// The maintenance thread. It folds the overlays of files that a crash or a full disk left unfolded,
// and of open files that were not written for a while. It also fills the reserve.
#include <chrono>

#include "fs/core/file_system_impl.h"

namespace siltfs {
namespace {

constexpr std::chrono::seconds kRound{5};
constexpr int64_t kIdleNanoseconds = 10'000'000'000;

}  // namespace

void FileSystemImpl::RunMaintenance() {
  FoldLeftovers();
  for (;;) {
    {
      MutexLock lock(maintenance_mutex_);
      if (!stopping_) maintenance_wakes_.WaitFor(maintenance_mutex_, kRound);
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
    MutexLock lock(maintenance_mutex_);
    if (stopping_) return;
  }
}

void FileSystemImpl::RelievePressure() {
  for (const InodePtr& inode : inodes_.Snapshot()) {
    if (!UnderPressure()) return;
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    // Overlays are only dropped from memory, not folded. Folding a small overlay now would end a
    // chunk where its file continues.
    if (!inode->loaded || !inode->overlay_loaded || inode->overlay.plain_bytes() == 0) continue;
    if (inode->deferred && !SaveLast(*inode).ok()) continue;
    inode->DropOverlay();
  }
}

void FileSystemImpl::WakeMaintenance() {
  MutexLock lock(maintenance_mutex_);
  maintenance_wakes_.NotifyAll();
}

void FileSystemImpl::StopMaintenance() {
  {
    MutexLock lock(maintenance_mutex_);
    stopping_ = true;
    maintenance_wakes_.NotifyAll();
  }
  if (maintenance_thread_.joinable()) maintenance_thread_.join();
}

}  // namespace siltfs
