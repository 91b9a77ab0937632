// Folds files: a whole file at once; a whole file part by part, so that other threads can use it
// between the parts; or one part of a file.
//
// Thread-safety: every call from any thread. The caller holds the lock of an inode that it passes,
// exclusively, and holds no inode's lock when it passes a number. Errors: those of FileContent and
// ChangeApplier. If a fold fails, the file keeps its content and takes more space. Durability:
// none; a fold is durable with its commit.
#pragma once

#include <atomic>
#include <cstdint>

#include "fs/content/file_content.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"

namespace siltfs {

class FoldOps {
 public:
  // The arguments must outlive it.
  FoldOps(const StoreContext& store, const FileContent& content, InodeStore& inodes,
          ChangeApplier& changes)
      : store_(store), content_(content), inodes_(inodes), changes_(changes) {}

  // A file without links is not worth folding: it will be deleted.
  static bool NeedsFold(const InodeRecord& record);
  bool NeedsFold(Inode& inode);  // loads it

  // Counts the raw bytes that a change of the overlay has added for this commit. Call it after the
  // change.
  static void CountFresh(Inode& inode, uint64_t plain_before, uint64_t commit);

  Status FoldLocked(Inode& inode, FileContent::FoldMode mode);
  // Folds a part of a locked file, so that other threads do not wait long for its lock.
  Status FoldSomeLocked(Inode& inode, FileContent::FoldMode mode);

  // Folds a regular file part by part. Returns OK, too, if concurrent writes outpace the fold.
  Status FoldForCopy(InodeNumber number);
  // Folds a file part by part, and reports failures other than a full disk. Meant for files that
  // are not being written.
  void FoldAndLog(InodeNumber number);
  // Whether a FoldAndLog has met a full disk since the last TakeWaitForRoom.
  bool TakeWaitForRoom() { return wait_for_room_.exchange(false); }

 private:
  // Folds a part of a file; true if nothing is left to fold.
  Result<bool> FoldStep(InodeNumber number);
  // Folds the file part by part; kInUse if writes outpace the fold.
  Status FoldInSteps(InodeNumber number);

  const StoreContext& store_;
  const FileContent& content_;
  InodeStore& inodes_;
  ChangeApplier& changes_;
  std::atomic<bool> wait_for_room_{false};  // a FoldAndLog has met a full disk
};

}  // namespace siltfs
