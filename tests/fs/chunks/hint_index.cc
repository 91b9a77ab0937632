#include "tests/fs/chunks/hint_index.h"

namespace siltfs::testing {

void HintIndex::Say(const ChunkName& name, std::optional<Location> location) {
  MutexLock lock(mutex_);
  lies_[name] = location;
}

void HintIndex::TellTruth(const ChunkName& name) {
  MutexLock lock(mutex_);
  lies_.erase(name);
}

void HintIndex::FailPuts(Status failure) {
  MutexLock lock(mutex_);
  put_failure_ = std::move(failure);
  put_failure_.IgnoreError("Put returns it");
}

void HintIndex::FailGets(Status failure) {
  MutexLock lock(mutex_);
  get_failure_ = std::move(failure);
  get_failure_.IgnoreError("Get returns it");
}

Status HintIndex::GetImpl(std::span<const ChunkName> names,
                          std::span<std::optional<Location>> results) {
  SILTFS_RETURN_IF_ERROR(inner_->Get(names, results));
  MutexLock lock(mutex_);
  if (!get_failure_.ok()) {
    for (auto& result : results) result.reset();
    return get_failure_;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (auto lie = lies_.find(names[i]); lie != lies_.end()) results[i] = lie->second;
  }
  return Status::Ok();
}

Status HintIndex::PutImpl(std::span<const IndexEntry> entries, uint64_t complete) {
  {
    MutexLock lock(mutex_);
    while (held_) let_go_.Wait(mutex_);
    if (!put_failure_.ok()) return put_failure_;
    if (!entries.empty() && !entries_failure_.ok()) return entries_failure_;
    complete_.push_back(complete);
    for (const IndexEntry& entry : entries) lies_.erase(entry.name);
  }
  return inner_->Put(entries, complete + 1);
}

void HintIndex::FailPutsOfEntries(Status failure) {
  MutexLock lock(mutex_);
  entries_failure_ = std::move(failure);
  entries_failure_.IgnoreError("Put returns it");
}

std::vector<uint64_t> HintIndex::complete() const {
  MutexLock lock(mutex_);
  return complete_;
}

void HintIndex::HoldPuts() {
  MutexLock lock(mutex_);
  held_ = true;
}

void HintIndex::LetPutsGo() {
  MutexLock lock(mutex_);
  held_ = false;
  let_go_.NotifyAll();
}

void HintIndex::FailFlushes(Status failure) {
  MutexLock lock(mutex_);
  flush_failure_ = std::move(failure);
  flush_failure_.IgnoreError("Flush returns it");
}

Status HintIndex::FlushImpl(uint64_t complete) {
  {
    MutexLock lock(mutex_);
    if (!flush_failure_.ok()) return flush_failure_;
  }
  SILTFS_RETURN_IF_ERROR(inner_->Put({}, complete + 1));  // completes sequence `complete`
  return inner_->Flush();
}

}  // namespace siltfs::testing
