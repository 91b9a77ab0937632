// The trees of the snapshots that are being read.
//
// The directory of snapshots and each mount of a single snapshot have trees of their own, because
// each of these views has its own lookup counts. When a view ends, its trees and counts are gone,
// even if the kernel has not forgotten its inodes.
//
// Thread-safety: every call from any thread. Ownership: borrows the parts of the live store.
// Errors: kStale if there is no such snapshot, or if it is being removed. Memory: in each view one
// tree for each snapshot of which the kernel knows inodes, or which a call uses.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "fs/snapshots/snapshot_tree.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SnapshotTrees {
 public:
  using View = uint64_t;
  static constexpr View kDirectory = 0;  // the directory of snapshots

  // The arguments must outlive it.
  SnapshotTrees(const StoreContext& live, const FileContent& content)
      : live_(live), content_(content) {}

  // Holds a tree while a call uses it.
  class Use {
   public:
    Use(SnapshotTrees& trees, uint64_t number, View view, SnapshotTree& tree)
        : trees_(&trees), number_(number), view_(view), tree_(&tree) {}
    Use(Use&& other) noexcept
        : trees_(std::exchange(other.trees_, nullptr)),
          number_(other.number_),
          view_(other.view_),
          tree_(other.tree_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (trees_ != nullptr) trees_->Leave({number_, view_});
    }
    SnapshotTree* operator->() const { return tree_; }
    SnapshotTree& operator*() const { return *tree_; }

   private:
    SnapshotTrees* trees_;
    const uint64_t number_;
    const View view_;
    SnapshotTree* const tree_;
  };
  Result<Use> Enter(uint64_t number, View view) SILTFS_EXCLUDES(mutex_);
  // Like Enter, but only if the tree is in memory already.
  Result<Use> EnterKnown(uint64_t number, View view) SILTFS_EXCLUDES(mutex_);

  // Adds a view of one snapshot, which cannot be removed while the view exists.
  Result<View> AddView(uint64_t number) SILTFS_EXCLUDES(mutex_);
  // Frees the trees of the view. No call may use them.
  void RemoveView(View view) SILTFS_EXCLUDES(mutex_);
  // Whether there is a view of this snapshot.
  bool HasView(uint64_t number) const SILTFS_EXCLUDES(mutex_);

  // Keeps a snapshot from being removed, like a view.
  class Hold {
   public:
    Hold(SnapshotTrees& trees, View view) : trees_(&trees), view_(view) {}
    Hold(Hold&& other) noexcept
        : trees_(std::exchange(other.trees_, nullptr)), view_(other.view_) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (trees_ != nullptr) trees_->RemoveView(view_);
    }

   private:
    SnapshotTrees* trees_;
    const View view_;
  };
  Result<Hold> HoldSnapshot(uint64_t number) {
    SILTFS_ASSIGN_OR_RETURN(const View view, AddView(number));
    return Hold(*this, view);
  }

  // Makes further calls of Enter fail, and waits until no call uses the snapshot. Call it before
  // the snapshot is removed. kInUse, without any effect, if there is a view of the snapshot.
  Status Close(uint64_t number) SILTFS_EXCLUDES(mutex_);
  // Ends what Close began: from now on, metadata says whether the snapshot can be used.
  void EndClosing(uint64_t number) SILTFS_EXCLUDES(mutex_);

 private:
  struct Key {
    uint64_t number = 0;
    View view = kDirectory;
    auto operator<=>(const Key&) const = default;
  };
  struct Slot {
    std::unique_ptr<SnapshotTree> tree;
    uint64_t users = 0;
  };
  Use EnterSlot(const Key& key) SILTFS_REQUIRES(mutex_);
  void Leave(const Key& key) SILTFS_EXCLUDES(mutex_);
  bool IsViewed(uint64_t number) const SILTFS_REQUIRES(mutex_);

  const StoreContext& live_;
  const FileContent& content_;
  mutable Mutex mutex_;
  CondVar left_;
  std::map<Key, Slot> slots_ SILTFS_GUARDED_BY(mutex_);
  std::set<uint64_t> closed_ SILTFS_GUARDED_BY(mutex_);       // numbers of snapshots
  std::map<View, uint64_t> views_ SILTFS_GUARDED_BY(mutex_);  // the number of each one's snapshot
  View last_view_ SILTFS_GUARDED_BY(mutex_) = kDirectory;
};

}  // namespace siltfs
