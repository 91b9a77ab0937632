// The thread that folds files in the background: files that a crash or a full disk left unfolded,
// and open files that were not written for a while. It also fills the reserve, and drops overlays
// from memory if they take too much of it.
//
// Thread-safety: one thread calls Start, Stop and the destructor; any thread may call Wake. Errors:
// failed folds are reported (FoldOps::FoldAndLog). Durability: none.
#pragma once

#include <thread>

#include "fs/content/overlay_memory.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/operation_gate.h"
#include "fs/inodes/store_context.h"
#include "fs/ops/fold_ops.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class FoldThread {
 public:
  // The arguments must outlive it.
  FoldThread(const StoreContext& store, OperationGate& gate, InodeStore& inodes,
             ChangeApplier& changes, FoldOps& folds, const OverlayMemory& overlay_memory)
      : store_(store),
        gate_(gate),
        inodes_(inodes),
        changes_(changes),
        folds_(folds),
        overlay_memory_(overlay_memory) {}
  ~FoldThread() { Stop(); }
  FoldThread(const FoldThread&) = delete;
  FoldThread& operator=(const FoldThread&) = delete;

  // Not for a read-only store.
  void Start();
  // Makes the thread begin its next round now.
  void Wake();
  // Returns when the thread has ended.
  void Stop();

 private:
  void Run();
  // Each passes the gate for each file by itself.
  void FoldLeftovers();
  void FoldIdle();
  // The caller has a pass. Drops overlays from memory until the remaining ones are small enough.
  // Metadata keeps all of them.
  void RelievePressure();

  const StoreContext& store_;
  OperationGate& gate_;
  InodeStore& inodes_;
  ChangeApplier& changes_;
  FoldOps& folds_;
  const OverlayMemory& overlay_memory_;

  Mutex mutex_;
  CondVar wakes_;
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace siltfs
