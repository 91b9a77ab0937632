// The trees of the snapshots that are being read.
//
// Thread-safety: every call from any thread. Ownership: borrows the parts of the live store.
// Errors: kStale if there is no such snapshot, or if it is being removed. Memory: one tree for each
// snapshot of which the kernel knows inodes, or which a call uses.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "fs/snapshots/snapshot_tree.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SnapshotTrees {
 public:
  // The arguments must outlive it.
  SnapshotTrees(const StoreContext& live, const FileContent& content)
      : live_(live), content_(content) {}

  // Holds a tree while a call uses it.
  class Use {
   public:
    Use(SnapshotTrees& trees, uint64_t number, SnapshotTree& tree)
        : trees_(&trees), number_(number), tree_(&tree) {}
    Use(Use&& other) noexcept
        : trees_(std::exchange(other.trees_, nullptr)),
          number_(other.number_),
          tree_(other.tree_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (trees_ != nullptr) trees_->Leave(number_);
    }
    SnapshotTree* operator->() const { return tree_; }
    SnapshotTree& operator*() const { return *tree_; }

   private:
    SnapshotTrees* trees_;
    const uint64_t number_;
    SnapshotTree* const tree_;
  };
  Result<Use> Enter(uint64_t number) SILTFS_EXCLUDES(mutex_);
  // Like Enter, but only if the tree is in memory already.
  Result<Use> EnterKnown(uint64_t number) SILTFS_EXCLUDES(mutex_);

  // Makes further calls of Enter fail, and waits until no call uses the snapshot. Call it before
  // the snapshot is removed.
  void Close(uint64_t number) SILTFS_EXCLUDES(mutex_);
  // Ends what Close began: from now on, metadata says whether the snapshot can be used.
  void EndClosing(uint64_t number) SILTFS_EXCLUDES(mutex_);

 private:
  struct Slot {
    std::unique_ptr<SnapshotTree> tree;  // null only if closed
    uint64_t users = 0;
    bool closed = false;
  };
  Result<Use> EnterSlot(uint64_t number) SILTFS_REQUIRES(mutex_);
  void Leave(uint64_t number) SILTFS_EXCLUDES(mutex_);

  const StoreContext& live_;
  const FileContent& content_;
  Mutex mutex_;
  CondVar left_;
  std::map<uint64_t, Slot> slots_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
