// Reports damage that reads meet, once for each damaged block.
//
// Thread-safety: every call from any thread. Memory: at most 4,096 places, at 50 bytes each;
// further damage is not reported. No errors, no I/O.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "fs/interface/file_system.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class DamageReporter {
 public:
  // Calls options.report; `options` must outlive it.
  explicit DamageReporter(const FileSystemOptions& options) : report_(options.report) {}

  // Reports the damage that makes [offset, offset + length) of a file unreadable.
  void ReportRead(InodeNumber inode, uint64_t offset, uint64_t length, const Status& damage);

 private:
  const std::function<void(const Notice& finding)>& report_;  // may be empty
  Mutex reported_mutex_;
  // Hashes of reported places.
  std::unordered_set<size_t> reported_ SILTFS_GUARDED_BY(reported_mutex_);
};

}  // namespace siltfs
