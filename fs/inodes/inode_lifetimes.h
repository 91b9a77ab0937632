// Deletes an inode without names once it is not open and its lookup count is 0. Until then the
// inode is an *orphan*. Metadata lists the orphans, so that the next mount after a crash deletes
// them.
//
// Thread-safety: every call from any thread. Functions that take an Inode require that the caller
// holds its lock exclusively. Errors: those of InodeStore and ChangeApplier. Durability: none;
// changes are durable with their commit.
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "fs/inodes/change.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/lookup_counts.h"
#include "fs/inodes/store_context.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class InodeLifetimes {
 public:
  // The arguments must outlive it.
  InodeLifetimes(const StoreContext& store, InodeStore& inodes, ChangeApplier& changes)
      : store_(store), inodes_(inodes), changes_(changes) {}

  // How often the kernel has looked up each inode and not yet forgotten it.
  LookupCounts& lookups() { return lookups_; }
  const LookupCounts& lookups() const { return lookups_; }

  // Drops one link of a file, or all links of a directory. If no link is left, the change deletes
  // the inode, or makes it an orphan if it is open or its lookup count is not 0.
  Status DropLink(Inode& inode, int64_t now, Change& change);
  // Removes the inode's object from memory if DropLink has deleted the inode. Call it after the
  // change was applied.
  void ForgetRemoved(Inode& inode);

  // Makes a new inode an orphan, because it has no name yet.
  void AddOrphan(Inode& inode, Change& change);
  // Call both for an orphan that gets its first name. RemoveOrphanKey adds the removal of the
  // orphan's key to the change that makes the name. Call NoLongerOrphan after this change was
  // applied. Call NoLongerOrphan also if the change with AddOrphan has failed.
  static void RemoveOrphanKey(const Inode& inode, Change& change);
  void NoLongerOrphan(InodeNumber number) { SetOrphan(number, false); }

  // Deletes the inode if it is an orphan, is not open and has a lookup count of 0. The caller holds
  // no inode's lock.
  void RemoveIfUnused(InodeNumber number);
  // Waits until there is no orphan, at most for `limit`.
  void AwaitRemovals(std::chrono::nanoseconds limit) SILTFS_EXCLUDES(orphans_mutex_);
  // Deletes all orphans that are not open, also those with a lookup count, and returns them. No
  // operation may run.
  Result<std::vector<InodeNumber>> RemoveUnopened() SILTFS_EXCLUDES(orphans_mutex_);
  // Removes the orphans that the last mount left. Call it before any other operation.
  Status RemoveOrphans();

 private:
  bool IsOrphan(InodeNumber number) const;
  // Deletes the inode of an orphan. The caller holds its lock.
  Status RemoveOrphan(Inode& inode);
  void SetOrphan(InodeNumber number, bool orphan);
  // Adds the removal of all keys of the inode to the change.
  Status DeleteInode(Inode& inode, Change& change);

  const StoreContext& store_;
  InodeStore& inodes_;
  ChangeApplier& changes_;
  LookupCounts lookups_;
  mutable Mutex orphans_mutex_;
  CondVar no_orphans_;
  std::unordered_set<InodeNumber> orphans_ SILTFS_GUARDED_BY(orphans_mutex_);
};

}  // namespace siltfs
