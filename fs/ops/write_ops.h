// Changes of file contents: writes, allocation and copies, and the folds that follow.
//
// Thread-safety: every call from any thread. Errors: those of FileSystem. Durability: none; changes
// are durable with their commit.
#pragma once

#include <cstdint>

#include "fs/content/file_content.h"
#include "fs/content/overlay_memory.h"
#include "fs/inodes/change.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/file_system.h"
#include "fs/ops/fold_ops.h"
#include "fs/ops/fold_thread.h"
#include "fs/ops/xattr_ops.h"

namespace siltfs {

class WriteOps {
 public:
  // The arguments must outlive it.
  WriteOps(const StoreContext& store, const FileContent& content, InodeStore& inodes,
           ChangeApplier& changes, XattrOps& xattrs, FoldOps& folds, FoldThread& fold_thread,
           const OverlayMemory& overlay_memory)
      : store_(store),
        content_(content),
        inodes_(inodes),
        changes_(changes),
        xattrs_(xattrs),
        folds_(folds),
        fold_thread_(fold_thread),
        overlay_memory_(overlay_memory) {}

  // As the functions of FileSystem.
  Status Write(InodeNumber number, uint64_t offset, ByteView data, Privileges privileges,
               WriteTimes times);
  Status Allocate(InodeNumber number, AllocateMode mode, uint64_t offset, uint64_t length,
                  bool keep_size, Privileges privileges);
  Result<uint64_t> CopyRange(InodeNumber source_number, uint64_t source_offset,
                             InodeNumber target_number, uint64_t target_offset, uint64_t length,
                             Privileges privileges);

 private:
  // Saves a change of content that was made in memory. If the change has joined a group, the
  // function may defer it instead. Folds a part of the overlay if the overlay has grown too large.
  Status ApplyContent(Inode& inode, const ContentTally& before, Change& change,
                      Privileges privileges, WriteTimes times = WriteTimes::kNow);

  // Reserves room in the inode's quota for new data in this range, of which at most `most` bytes
  // are no hole. The quota must have room only for the bytes by which the file grows.
  Result<Quotas::Reservation> Reserve(Inode& inode, uint64_t offset, uint64_t length,
                                      uint64_t most);
  Result<Quotas::Reservation> ReserveForCopy(const Inode& source, uint64_t source_offset,
                                             Inode& target, uint64_t target_offset,
                                             uint64_t length);
  // The bytes of the range that are holes or beyond the end of the file.
  Result<uint64_t> HoleBytes(const Inode& inode, uint64_t offset, uint64_t length) const;

  const StoreContext& store_;
  const FileContent& content_;
  InodeStore& inodes_;
  ChangeApplier& changes_;
  XattrOps& xattrs_;
  FoldOps& folds_;
  FoldThread& fold_thread_;
  const OverlayMemory& overlay_memory_;
};

}  // namespace siltfs
