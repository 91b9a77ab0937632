// Access control lists: setting them, and changing lists and permission bits together.
//
// The kernel enforces the lists and reads them as extended attributes. AclOps keeps an inode's list
// and its permission bits consistent, and gives a directory's default list to new entries.
//
// Thread-safety: every call from any thread; the caller holds the locks of the inodes exclusively,
// and the inodes are loaded. Errors: kCorruption for a malformed stored list, those of metadata,
// and as stated. Durability: none; changes are durable with their commit.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "fs/inodes/change.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/file_system.h"
#include "fs/interface/posix_acl.h"

namespace siltfs {

class AclOps {
 public:
  // The arguments must outlive it.
  AclOps(const StoreContext& store, ChangeApplier& changes) : store_(store), changes_(changes) {}

  // Sets the list of this name and applies the change. `present`: whether the inode has a list of
  // this name already. Errors: those of FileSystem::SetXattr.
  Status SetAcl(Inode& inode, std::string_view name, std::string_view value, bool present,
                XattrMode mode);
  // If the inode has an access list, adds the list with the new permission bits to the change.
  Status AdaptAcl(Inode& inode, uint32_t mode, Change& change) const;
  // Null if the directory has no default list.
  Result<std::shared_ptr<const PosixAcl>> DefaultAclOf(Inode& directory) const;
  // Clears permission bits in the mode of a new inode: those that the default list `inherited` does
  // not grant, or those in the umask if `inherited` is null. Adds the lists that the inode inherits
  // to the change.
  static void SetFirstMode(Inode& inode, const std::shared_ptr<const PosixAcl>& inherited,
                           uint32_t umask, Change& change);

 private:
  const StoreContext& store_;
  ChangeApplier& changes_;
};

}  // namespace siltfs
