// The directories that an import may change, for an import by a user other than the superuser.
//
// Thread-safety: every call from any thread. Memory: bounded by kMost.
#pragma once

#include <unordered_map>

#include "fs/interface/file_system.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// The directories that an import has opened and not finished.
class OpenedDirectories {
 public:
  // A client that opens more directories without finishing them is refused (kInvalidArgument).
  static constexpr size_t kMost = 1u << 18;

  // A directory that was added twice must be removed twice.
  Status Add(InodeNumber directory);
  void Remove(InodeNumber directory);
  bool Contains(InodeNumber directory) const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<InodeNumber, unsigned> directories_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
