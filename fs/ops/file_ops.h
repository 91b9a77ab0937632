// Open files: opening, reading, seeking, syncing, and releasing. The last release folds the file.
//
// Thread-safety: every call from any thread. Errors: those of FileSystem. Durability: Fsync.
#pragma once

#include <cstdint>
#include <optional>

#include "fs/content/file_content.h"
#include "fs/inodes/inode_lifetimes.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/file_system.h"
#include "fs/ops/attribute_ops.h"
#include "fs/ops/damage_reporter.h"
#include "fs/ops/fold_ops.h"

namespace siltfs {

class FileOps {
 public:
  // The arguments must outlive it.
  FileOps(const StoreContext& store, const FileContent& content, InodeStore& inodes,
          InodeLifetimes& lifetimes, AttributeOps& attributes, FoldOps& folds)
      : store_(store),
        content_(content),
        inodes_(inodes),
        lifetimes_(lifetimes),
        attributes_(attributes),
        folds_(folds),
        damage_(store.options()) {}

  // As the functions of FileSystem.
  Status OpenFile(InodeNumber number, bool truncate);
  void ReleaseFile(InodeNumber number);
  Result<size_t> Read(InodeNumber number, uint64_t offset, MutableByteView out);
  Result<std::optional<uint64_t>> Seek(InodeNumber number, uint64_t offset, SeekTarget target);
  Status Fsync(InodeNumber number);

 private:
  const StoreContext& store_;
  const FileContent& content_;
  InodeStore& inodes_;
  InodeLifetimes& lifetimes_;
  AttributeOps& attributes_;
  FoldOps& folds_;
  DamageReporter damage_;
};

}  // namespace siltfs
