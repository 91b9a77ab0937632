// Applies changes to metadata, at once or deferred.
//
// A write changes the overlay in memory and *joins* the open group, so that it belongs to that
// group's commit. Its mutations are made only when the group closes, when the file is folded, or
// before any other change of the inode. So a small file that is written and closed adds only its
// recipe to metadata, and so does a stream that is folded while it is written.
//
// Why the crash model holds: an inode is in the set of dirty inodes before a write joins, and its
// lock is held until the write is done. When group N has closed, FlushDeferred locks each dirty
// inode and applies to N the changes that joined N. A later write joins N + 1. Before it changes
// anything, it applies the inode's deferred changes to N. So N gets exactly the changes that joined
// it.
//
// Thread-safety: every call from any thread. The caller holds the locks of the inodes that it
// passes, exclusively; it holds no inode's lock when it calls SaveAllDeferred. Errors: those of
// MetadataStore::Apply. Durability: none; changes are durable with their commit.
#pragma once

#include <cstdint>

#include "fs/inodes/change.h"
#include "fs/inodes/dirty_inodes.h"
#include "fs/inodes/store_context.h"

namespace siltfs {

class ChangeApplier final : private DeferredChanges {
 public:
  // `store` must outlive it.
  explicit ChangeApplier(const StoreContext& store) : store_(store) {}

  // Call it before the first Join.
  void StartDeferring() { store_.metadata().SetDeferredChanges(this); }

  // Adds the mutations to the open group, or to the group that the change has joined.
  Status Apply(Change& change);

  // Joins the change to the group that is open now. If the inode has deferred changes that joined
  // an earlier group, first saves these to the earlier group. `inode` must be loaded with its
  // overlay.
  Status Join(Inode& inode, Change& change);
  // Defers the change, which must have joined a group and have no mutations.
  void Defer(Inode& inode, const ContentTally& before, Change& change);
  bool TooMuchToDefer() const { return dirty_inodes_.bytes() > store_.options().group_bytes; }
  // Applies a change that has joined a group, concerns this inode alone, and includes the inode's
  // deferred changes. The inode is then no longer dirty.
  Status ApplyJoined(Inode& inode, Change& change);
  // Saves the deferred changes of a dirty inode, which is then no longer dirty.
  Status SaveLast(Inode& inode);
  // Calls SaveLast for all dirty inodes whose changes belong to this commit or an earlier one.
  Status SaveAllDeferred(uint64_t last_commit);

 private:
  Status FlushDeferred(uint64_t number) override { return SaveAllDeferred(number); }
  // Like SaveLast, but leaves the inode in dirty_inodes_, because another change has joined a group
  // and will be deferred.
  Status SaveDeferred(Inode& inode);
  void ForgetDeferred(Inode& inode);
  // Makes Quotas count how much the deferred changes let the file grow.
  void CountDeferred(Inode& inode);
  void CountApplied(const Change& change);

  const StoreContext& store_;
  DirtyInodes dirty_inodes_;
};

}  // namespace siltfs
