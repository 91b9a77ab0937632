#include "fs/inodes/hidden_inodes.h"

#include <iterator>
#include <memory>

namespace siltfs {

void HiddenInodes::Add(const HiddenRange& range) {
  const WriterLock lock(mutex_);
  ranges_[range.first] = range.end;
  any_ = true;
}

void HiddenInodes::Remove(const HiddenRange& range) {
  const WriterLock lock(mutex_);
  ranges_.erase(range.first);
  any_ = !ranges_.empty();
}

bool HiddenInodes::Contains(uint64_t inode) const {
  if (!any_) return false;
  const ReaderLock lock(mutex_);
  const auto above = ranges_.upper_bound(inode);
  return above != ranges_.begin() && std::prev(above)->second > inode;
}

std::vector<HiddenRange> HiddenInodes::All() const {
  const ReaderLock lock(mutex_);
  std::vector<HiddenRange> all;
  for (const auto& [first, end] : ranges_) all.push_back({first, end});
  return all;
}

Status LoadHidden(const StoreContext& store, HiddenInodes& hidden) {
  const auto found = ReadHiddenRanges(*store.metadata().CommittedSnapshot());
  if (found.status().Is(StatusCode::kCorruption)) {
    if (store.options().report) store.options().report(found.status().ToString());
    return Status::Ok();
  }
  SILTFS_RETURN_IF_ERROR(found.status());
  for (const HiddenRange& range : *found) hidden.Add(range);
  return Status::Ok();
}

Status RemoveHidden(const StoreContext& store, HiddenInodes& hidden) {
  const auto write = [&store](const std::vector<Mutation>& mutations) -> Status {
    const auto& interrupted = store.options().interrupted;
    if (interrupted && interrupted()) return {StatusCode::kInterrupted, "was interrupted"};
    return store.metadata().WriteThrough(mutations);
  };
  const std::shared_ptr<const KvSnapshot> snapshot = store.metadata().CommittedSnapshot();
  for (const HiddenRange& range : hidden.All()) {
    const Status removed = RemoveHiddenRange(*snapshot, range, write);
    if (removed.Is(StatusCode::kInterrupted)) return removed;
    if (removed.ok()) hidden.Remove(range);
  }
  return Status::Ok();
}

}  // namespace siltfs
