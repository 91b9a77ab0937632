// Extended attributes, and the removal of the privileges of executable files.
//
// Thread-safety: every call from any thread. Errors: those of FileSystem. Durability: none; changes
// are durable with their commit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fs/inodes/change.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/file_system.h"
#include "fs/ops/acl_ops.h"

namespace siltfs {

class XattrOps {
 public:
  // The arguments must outlive it.
  XattrOps(const StoreContext& store, InodeStore& inodes, ChangeApplier& changes, AclOps& acls)
      : store_(store), inodes_(inodes), changes_(changes), acls_(acls) {}

  // As the functions of FileSystem.
  Result<std::string> GetXattr(InodeNumber number, std::string_view name);
  Status SetXattr(InodeNumber number, std::string_view name, std::string_view value,
                  XattrMode mode);
  Result<std::vector<std::string>> ListXattrs(InodeNumber number);
  Status RemoveXattr(InodeNumber number, std::string_view name);

  // Removes `privileges` from the inode, which is loaded and locked exclusively. The caller saves
  // the inode in the same change.
  Status DropPrivileges(Inode& inode, Privileges privileges, Change& change) const;

 private:
  const StoreContext& store_;
  InodeStore& inodes_;
  ChangeApplier& changes_;
  AclOps& acls_;
};

}  // namespace siltfs
