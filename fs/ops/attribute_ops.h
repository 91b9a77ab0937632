// Changes of attributes: mode, owner, times and size.
//
// Thread-safety: every call from any thread. Errors: those of FileSystem. Durability: none; changes
// are durable with their commit.
#pragma once

#include "fs/content/file_content.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/file_system.h"
#include "fs/ops/acl_ops.h"
#include "fs/ops/fold_ops.h"
#include "fs/ops/xattr_ops.h"

namespace siltfs {

class AttributeOps {
 public:
  // The arguments must outlive it.
  AttributeOps(const StoreContext& store, const FileContent& content, InodeStore& inodes,
               ChangeApplier& changes, AclOps& acls, XattrOps& xattrs, FoldOps& folds)
      : store_(store),
        content_(content),
        inodes_(inodes),
        changes_(changes),
        acls_(acls),
        xattrs_(xattrs),
        folds_(folds) {}

  // As the function of FileSystem.
  Result<Attributes> SetAttributes(InodeNumber number, const AttributeChange& wanted);

 private:
  Result<Attributes> ChangeAttributes(Inode& inode, const AttributeChange& wanted);

  const StoreContext& store_;
  const FileContent& content_;
  InodeStore& inodes_;
  ChangeApplier& changes_;
  AclOps& acls_;
  XattrOps& xattrs_;
  FoldOps& folds_;
};

}  // namespace siltfs
