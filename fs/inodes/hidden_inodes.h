// The hidden ranges (fs/records/hidden_range.h) of this mount: inodes that no operation may use.
//
// No name leads to a hidden inode. But a caller may guess its number, for example in a file handle.
//
// Thread-safety: every call from any thread. No errors, no I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "fs/inodes/store_context.h"
#include "fs/records/hidden_range.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class HiddenInodes {
 public:
  void Add(const HiddenRange& range) SILTFS_EXCLUDES(mutex_);
  void Remove(const HiddenRange& range) SILTFS_EXCLUDES(mutex_);
  bool Contains(uint64_t inode) const SILTFS_EXCLUDES(mutex_);
  std::vector<HiddenRange> All() const SILTFS_EXCLUDES(mutex_);

 private:
  std::atomic<bool> any_{false};  // so that Contains usually takes no lock
  mutable SharedMutex mutex_;
  std::map<uint64_t, uint64_t> ranges_ SILTFS_GUARDED_BY(mutex_);  // first -> end
};

// Adds the ranges that the last mount left. A malformed one is reported, and its table is ignored.
Status LoadHidden(const StoreContext& store, HiddenInodes& hidden);
// Removes the inodes of all ranges from metadata. Call it before any other operation. What cannot
// be removed is left to the next mount. kInterrupted as FileSystemOptions::interrupted says.
Status RemoveHidden(const StoreContext& store, HiddenInodes& hidden);

}  // namespace siltfs
