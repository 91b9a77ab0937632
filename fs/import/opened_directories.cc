#include "fs/import/opened_directories.h"

namespace siltfs {

Status OpenedDirectories::Add(InodeNumber directory) {
  const MutexLock lock(mutex_);
  if (directories_.size() >= kMost)
    return {StatusCode::kInvalidArgument, "too many directories are open at once"};
  ++directories_[directory];
  return Status::Ok();
}

void OpenedDirectories::Remove(InodeNumber directory) {
  const MutexLock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found != directories_.end() && --found->second == 0) directories_.erase(found);
}

bool OpenedDirectories::Contains(InodeNumber directory) const {
  const MutexLock lock(mutex_);
  return directories_.contains(directory);
}

}  // namespace siltfs
