#include "fs/snapshots/snapshot_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace siltfs {
namespace {

Status Gone(uint64_t number) {
  return {StatusCode::kStale, fmt::format("snapshot {} was removed", number)};
}

}  // namespace

Result<SnapshotTrees::Use> SnapshotTrees::Enter(uint64_t number, View view) {
  const Key key{number, view};
  const MutexLock lock(mutex_);
  if (closed_.contains(number)) return Gone(number);
  if (!slots_.contains(key)) {
    SILTFS_ASSIGN_OR_RETURN(const NumberedSnapshot found,
                            live_.metadata().snapshots()->FindSnapshot(number));
    slots_[key].tree = std::make_unique<SnapshotTree>(live_, content_, found);
  }
  return EnterSlot(key);
}

Result<SnapshotTrees::Use> SnapshotTrees::EnterKnown(uint64_t number, View view) {
  const Key key{number, view};
  const MutexLock lock(mutex_);
  if (closed_.contains(number) || !slots_.contains(key)) return Gone(number);
  return EnterSlot(key);
}

SnapshotTrees::Use SnapshotTrees::EnterSlot(const Key& key) {
  Slot& slot = slots_[key];
  ++slot.users;
  return Use(*this, key.number, key.view, *slot.tree);
}

void SnapshotTrees::Leave(const Key& key) {
  std::unique_ptr<SnapshotTree> unused;  // destroyed after the mutex is unlocked
  const MutexLock lock(mutex_);
  const auto slot = slots_.find(key);
  if (--slot->second.users > 0) return;
  if (closed_.contains(key.number)) {
    left_.NotifyAll();
  } else if (slot->second.tree->lookups() == 0) {
    unused = std::move(slot->second.tree);
    slots_.erase(slot);
  }
}

Result<SnapshotTrees::View> SnapshotTrees::AddView(uint64_t number) {
  const MutexLock lock(mutex_);
  if (closed_.contains(number)) return Gone(number);
  SILTFS_RETURN_IF_ERROR(live_.metadata().snapshots()->FindSnapshot(number).status());
  views_[++last_view_] = number;
  return last_view_;
}

void SnapshotTrees::RemoveView(View view) {
  std::unique_ptr<SnapshotTree> unused;
  const MutexLock lock(mutex_);
  const auto found = views_.find(view);
  if (found == views_.end()) return;
  if (const auto slot = slots_.find({found->second, view}); slot != slots_.end()) {
    unused = std::move(slot->second.tree);
    slots_.erase(slot);
  }
  views_.erase(found);
}

bool SnapshotTrees::HasView(uint64_t number) const {
  const MutexLock lock(mutex_);
  return IsViewed(number);
}

bool SnapshotTrees::IsViewed(uint64_t number) const {
  return std::any_of(views_.begin(), views_.end(),
                     [number](const auto& view) { return view.second == number; });
}

Status SnapshotTrees::Close(uint64_t number) {
  std::unique_ptr<SnapshotTree> unused;
  const MutexLock lock(mutex_);
  if (IsViewed(number))
    return {StatusCode::kInUse,
            "the snapshot is mounted, or it is being sent, or a transfer is based on it; end this "
            "before the snapshot is deleted"};
  closed_.insert(number);
  const Key key{number, kDirectory};
  while (slots_.contains(key) && slots_[key].users > 0) left_.Wait(mutex_);
  if (const auto slot = slots_.find(key); slot != slots_.end()) {
    unused = std::move(slot->second.tree);
    slots_.erase(slot);
  }
  return Status::Ok();
}

void SnapshotTrees::EndClosing(uint64_t number) {
  const MutexLock lock(mutex_);
  closed_.erase(number);
}

}  // namespace siltfs
