// Access control lists: their effect on modes, and the effect of modes on them.
//
// The kernel enforces the lists and reads them as extended attributes. AclOps keeps them in step
// with the permission bits, and hands down a directory's default list.
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

  // Sets the list of this name; `present`: there is such a list. Applies the change. Errors: those
  // of FileSystem::SetXattr.
  Status SetAcl(Inode& inode, std::string_view name, std::string_view value, bool present,
                XattrMode mode);
  // Adds the access list's update for new permission bits to the change.
  Status AdaptAcl(Inode& inode, uint32_t mode, Change& change) const;
  // Null if the directory has no default list.
  Result<std::shared_ptr<const PosixAcl>> DefaultAclOf(Inode& directory) const;
  // Clears the bits in a new inode's mode that `inherited` does not grant; without inherited lists,
  // the bits of the umask. Adds the inherited lists to the change.
  static void SetFirstMode(Inode& inode, const std::shared_ptr<const PosixAcl>& inherited,
                           uint32_t umask, Change& change);

 private:
  const StoreContext& store_;
  ChangeApplier& changes_;
};

}  // namespace siltfs
