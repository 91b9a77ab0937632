// The inodes of one snapshot, for reading: the same operations as on the live file system, over the
// snapshot's metadata. Chunks are read from the live store.
//
// Thread-safety: every call from any thread. Ownership: borrows the parts of the live store, which
// must outlive it. Errors: those of FileSystem. Memory: some inodes, as for the live file system.
#pragma once

#include <memory>

#include "fs/content/file_content.h"
#include "fs/content/overlay_memory.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_lifetimes.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/meta/metadata_store.h"
#include "fs/ops/acl_ops.h"
#include "fs/ops/attribute_ops.h"
#include "fs/ops/content_ops.h"
#include "fs/ops/directory_names.h"
#include "fs/ops/file_ops.h"
#include "fs/ops/fold_ops.h"
#include "fs/ops/namespace_ops.h"
#include "fs/ops/xattr_ops.h"

namespace siltfs {

class SnapshotTree {
 public:
  SnapshotTree(const StoreContext& live, const FileContent& content,
               const NumberedSnapshot& snapshot);

  NamespaceOps& names() { return namespace_; }
  InodeStore& inodes() { return inodes_; }
  XattrOps& xattrs() { return xattrs_; }
  FileOps& files() { return files_; }
  ContentOps& contents() { return contents_; }
  // The number of inodes that the kernel has looked up and not forgotten.
  uint64_t lookups() const { return lifetimes_.lookups().inodes(); }

 private:
  const std::unique_ptr<MetadataStore> metadata_;
  const FileSystemOptions options_;
  const StoreContext store_;
  OverlayMemory overlay_memory_;  // outlives the inodes
  ChangeApplier changes_;
  InodeStore inodes_;
  InodeLifetimes lifetimes_;
  AclOps acls_;
  XattrOps xattrs_;
  FoldOps folds_;
  AttributeOps attributes_;
  DirectoryNames names_;
  NamespaceOps namespace_;
  FileOps files_;
  ContentOps contents_;
};

}  // namespace siltfs
