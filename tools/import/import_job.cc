#include "tools/import/import_job.h"

namespace siltfs {

void ImportJob::AddError(std::string path, std::string cause) {
  ++totals_.errors;
  const MutexLock lock(report_mutex_);
  report_({std::move(path), std::move(cause)});
}

void ImportJob::TellChange(const std::string& line) {
  const MutexLock lock(report_mutex_);
  tell_(line);
}

void ImportJob::Push(std::vector<ImportItem> items) {
  const MutexLock lock(mutex_);
  for (auto item = items.rbegin(); item != items.rend(); ++item) items_.push_back(std::move(*item));
  changed_.NotifyAll();
}

std::optional<ImportItem> ImportJob::TryPop() {
  const MutexLock lock(mutex_);
  if (items_.empty() || stopped_) return std::nullopt;
  ImportItem item = std::move(items_.back());
  items_.pop_back();
  ++active_;
  return item;
}

void ImportJob::ItemDone() {
  const MutexLock lock(mutex_);
  --active_;
  changed_.NotifyAll();
}

bool ImportJob::WaitForMore() {
  const MutexLock lock(mutex_);
  while (!stopped_ && items_.empty() && active_ > 0) changed_.Wait(mutex_);
  return !stopped_ && !items_.empty();
}

void ImportJob::Stop(Status why) {
  const MutexLock lock(mutex_);
  if (outcome_.ok()) {
    outcome_ = std::move(why);
    outcome_.IgnoreError("outcome() returns it");
  } else {
    why.IgnoreError("the first reason counts");
  }
  stopped_ = true;
  changed_.NotifyAll();
}

Status ImportJob::outcome() const {
  const MutexLock lock(mutex_);
  return outcome_;
}

ImportJob::Claim ImportJob::ClaimLinked(const SourceAttributes& file, InodeNumber& inode) {
  const LinkKey key(file.file_system, file.inode);
  const MutexLock lock(mutex_);
  const auto [found, added] = linked_.try_emplace(key, Linked{0, file.links});
  if (added) return Claim::kFirst;
  if (found->second.inode == 0) return Claim::kPending;
  inode = found->second.inode;
  // All names are known when as many were found as the file has. The map then forgets the file.
  if (--found->second.names_left <= 1) linked_.erase(found);
  return Claim::kKnown;
}

bool ImportJob::ClaimFirst(const SourceAttributes& file) {
  const MutexLock lock(mutex_);
  return linked_.try_emplace({file.file_system, file.inode}, Linked{0, file.links}).second;
}

void ImportJob::Resolve(const SourceAttributes& file, InodeNumber inode) {
  const LinkKey key(file.file_system, file.inode);
  const MutexLock lock(mutex_);
  if (inode == 0) {
    linked_.erase(key);
  } else {
    linked_[key].inode = inode;
  }
  changed_.NotifyAll();
}

void ImportJob::WaitForLinked(const SourceAttributes& file) {
  const LinkKey key(file.file_system, file.inode);
  const MutexLock lock(mutex_);
  while (!stopped_) {
    const auto found = linked_.find(key);
    if (found == linked_.end() || found->second.inode != 0) return;
    changed_.Wait(mutex_);
  }
}

}  // namespace siltfs
