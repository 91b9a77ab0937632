#include "fs/ops/fold_thread.h"

#include <optional>
#include <string>

#include "fs/records/lineage.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

constexpr std::chrono::seconds kRound{5};
constexpr int64_t kIdleNanoseconds = 10'000'000'000;

}  // namespace

void FoldThread::Start() {
  thread_ = std::thread([this] { Run(); });
}

void FoldThread::Run() {
  FoldLeftovers();
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (!stopping_) wakes_.WaitFor(mutex_, kRound);
      if (stopping_) return;
    }
    if (overlay_memory_.UnderPressure()) {
      const auto pass = gate_.Enter();
      if (!pass.ok()) return;
      RelievePressure();
    }
    const bool room = store_.reserve()->Fill().ok();
    if (room && folds_.TakeWaitForRoom()) FoldLeftovers();
    FoldIdle();
  }
}

void FoldThread::FoldLeftovers() {
  const KeyRange all = RangeOfLineage(Table::kOverlay, kLiveLineage);
  std::string next = all.begin;
  for (;;) {
    const auto pass = gate_.Enter();
    if (!pass.ok()) return;
    std::optional<InodeNumber> found;
    Status scanned = store_.metadata().Pin().Scan(
        next, all.end, [&found](std::string_view key, std::string_view) {
          if (auto parts = ParseNumberedKey(Table::kOverlay, key)) found = parts->inode;
          return false;
        });
    if (!scanned.ok() || !found) return;  // after an error, a file is folded at its next release
    bool in_use;
    {
      InodePtr inode = inodes_.Get(*found);
      in_use = inode->open_count > 0;
    }
    if (!in_use) folds_.FoldAndLog(*found);
    if (overlay_memory_.UnderPressure()) RelievePressure();
    next = RangeOf(Table::kOverlay, *found).end;
    MutexLock lock(mutex_);
    if (stopping_) return;
  }
}

void FoldThread::FoldIdle() {
  const int64_t now = store_.env().MonotonicNanoseconds();
  for (const InodePtr& inode : inodes_.Snapshot()) {
    if (inode->open_count == 0) continue;  // folded when it was released
    const auto pass = gate_.Enter();
    if (!pass.ok()) return;
    bool idle;
    {
      InodeLock lock(inode, InodeLock::Mode::kShared);
      idle = inode->loaded && FoldOps::NeedsFold(inode->record) &&
             now - inode->last_write > kIdleNanoseconds;
    }
    if (idle) folds_.FoldAndLog(inode->number);
    if (overlay_memory_.UnderPressure()) RelievePressure();
    MutexLock lock(mutex_);
    if (stopping_) return;
  }
}

void FoldThread::RelievePressure() {
  for (const InodePtr& inode : inodes_.Snapshot()) {
    if (!overlay_memory_.UnderPressure()) return;
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    // Overlays are only dropped from memory, not folded. Folding a small overlay now would end a
    // chunk at the end of the written data, although the writer may append more.
    if (!inode->loaded || !inode->overlay_loaded || inode->overlay.plain_bytes() == 0) continue;
    if (inode->deferred && !changes_.SaveLast(*inode).ok()) continue;
    inode->DropOverlay();
  }
}

void FoldThread::Wake() {
  MutexLock lock(mutex_);
  wakes_.NotifyAll();
}

void FoldThread::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wakes_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace siltfs
