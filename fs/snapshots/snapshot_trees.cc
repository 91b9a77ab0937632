#include "fs/snapshots/snapshot_trees.h"

#include <fmt/format.h>

#include <utility>

namespace siltfs {
namespace {

Status Gone(uint64_t number) {
  return {StatusCode::kStale, fmt::format("snapshot {} was removed", number)};
}

}  // namespace

Result<SnapshotTrees::Use> SnapshotTrees::Enter(uint64_t number) {
  const MutexLock lock(mutex_);
  if (!slots_.contains(number)) {
    SILTFS_ASSIGN_OR_RETURN(const NumberedSnapshot found,
                            live_.metadata().snapshots()->FindSnapshot(number));
    slots_[number].tree = std::make_unique<SnapshotTree>(live_, content_, found);
  }
  return EnterSlot(number);
}

Result<SnapshotTrees::Use> SnapshotTrees::EnterKnown(uint64_t number) {
  const MutexLock lock(mutex_);
  if (!slots_.contains(number)) return Gone(number);
  return EnterSlot(number);
}

Result<SnapshotTrees::Use> SnapshotTrees::EnterSlot(uint64_t number) {
  Slot& slot = slots_[number];
  if (slot.closed) return Gone(number);
  ++slot.users;
  return Use(*this, number, *slot.tree);
}

void SnapshotTrees::Leave(uint64_t number) {
  std::unique_ptr<SnapshotTree> unused;  // destroyed after the mutex is unlocked
  const MutexLock lock(mutex_);
  const auto slot = slots_.find(number);
  if (--slot->second.users > 0) return;
  if (slot->second.closed) {
    left_.NotifyAll();
  } else if (slot->second.tree->lookups() == 0) {
    unused = std::move(slot->second.tree);
    slots_.erase(slot);
  }
}

void SnapshotTrees::Close(uint64_t number) {
  std::unique_ptr<SnapshotTree> unused;
  const MutexLock lock(mutex_);
  slots_[number].closed = true;
  while (slots_[number].users > 0) left_.Wait(mutex_);
  unused = std::move(slots_[number].tree);
}

void SnapshotTrees::EndClosing(uint64_t number) {
  const MutexLock lock(mutex_);
  slots_.erase(number);
}

}  // namespace siltfs
