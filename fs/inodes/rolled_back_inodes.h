// The inodes that rollbacks have changed or removed while the kernel knew them.
//
// With its write-back cache, the kernel keeps the size of a regular file, whatever attributes it is
// told. So the kernel must make a new inode of its own for a changed file. It does so when an entry
// has another generation than its inode: each rollback is a new generation of the files that it
// changes. Until the kernel has looked such a file up again, its inode is *stale*, and the file
// cannot be opened through it. The kernel then looks the name up again. An inode that was removed
// may come back by another rollback. So it gets a new generation, too.
//
// Directories that remain keep their generation, because programs may work in them.
//
// Thread-safety: every call from any thread. No errors, no I/O. Memory: some 50 bytes for each
// inode, until the kernel forgets it.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "store/base/thread_annotations.h"

namespace siltfs {

class RolledBackInodes {
 public:
  // Begins a new generation of these inodes.
  void Add(const std::vector<uint64_t>& inodes) SILTFS_EXCLUDES(mutex_);
  // The generation of an entry that is told to the kernel. The inode is then not stale.
  uint64_t LookUp(uint64_t inode) SILTFS_EXCLUDES(mutex_);
  // 0 if no rollback has changed the inode.
  uint64_t GenerationOf(uint64_t inode) const SILTFS_EXCLUDES(mutex_);
  bool IsStale(uint64_t inode) const SILTFS_EXCLUDES(mutex_);
  // Call it when the kernel has forgotten the inode.
  void Remove(uint64_t inode) SILTFS_EXCLUDES(mutex_);

 private:
  struct State {
    uint64_t generation = 0;
    bool stale = true;
  };

  std::atomic<bool> any_{false};  // so that calls usually take no lock
  mutable Mutex mutex_;
  std::unordered_map<uint64_t, State> inodes_ SILTFS_GUARDED_BY(mutex_);
  uint64_t rollbacks_ SILTFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace siltfs
