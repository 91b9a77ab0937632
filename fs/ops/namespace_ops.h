// Names: lookup, creation, links, removal and listing. Renames are in rename_ops.h.
//
// Thread-safety: every call from any thread. Errors: those of FileSystem. Durability: none; changes
// are durable with their commit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "fs/inodes/change.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_lifetimes.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/file_system.h"
#include "fs/meta/id_allocator.h"
#include "fs/ops/acl_ops.h"
#include "fs/ops/directory_names.h"
#include "fs/records/directory_entry.h"

namespace siltfs {

class NamespaceOps {
 public:
  // The arguments must outlive it. `ids` is null when read-only.
  NamespaceOps(const StoreContext& store, IdAllocator* ids, InodeStore& inodes,
               InodeLifetimes& lifetimes, ChangeApplier& changes, AclOps& acls,
               DirectoryNames& names)
      : store_(store),
        ids_(ids),
        inodes_(inodes),
        lifetimes_(lifetimes),
        changes_(changes),
        acls_(acls),
        names_(names) {}

  // As the functions of FileSystem.
  Result<Attributes> Lookup(InodeNumber parent, std::string_view name);
  void Forget(InodeNumber inode, uint64_t lookups);
  Result<Attributes> MakeNode(InodeNumber parent, std::string_view name, uint32_t mode,
                              uint64_t device, Caller caller);
  Result<Attributes> MakeDirectory(InodeNumber parent, std::string_view name, uint32_t mode,
                                   Caller caller);
  Result<Attributes> MakeSymlink(InodeNumber parent, std::string_view name, std::string_view target,
                                 Caller caller);
  Result<Attributes> CreateFile(InodeNumber parent, std::string_view name, uint32_t mode,
                                Caller caller);
  Result<Attributes> MakeTemporaryFile(InodeNumber directory, uint32_t mode, Caller caller);
  Result<Attributes> Link(InodeNumber number, InodeNumber new_parent, std::string_view new_name);
  Status Unlink(InodeNumber parent, std::string_view name);
  Status RemoveDirectory(InodeNumber parent, std::string_view name);
  Result<std::string> ReadLink(InodeNumber number);
  Status ReadDirectory(InodeNumber number, uint64_t cookie,
                       const std::function<bool(const DirectoryRecord&)>& visit);

 private:
  struct NewInode {
    uint32_t mode = 0;
    uint64_t device = 0;
    Caller caller;
    std::string_view target;
    bool open = false;
    bool temporary = false;  // without a name
  };
  Result<Attributes> LookupSelf(InodeNumber number);
  Result<Attributes> LookupParent(InodeNumber directory);
  Result<Attributes> MakeInode(InodeNumber parent, std::string_view name, const NewInode& wanted);
  Status RemoveName(InodeNumber parent, std::string_view name, bool directory);
  Status RemoveNameLocked(Inode& from, std::string_view name, const NameEntry& entry, Inode& inode,
                          bool directory);

  const StoreContext& store_;
  IdAllocator* const ids_;
  InodeStore& inodes_;
  InodeLifetimes& lifetimes_;
  ChangeApplier& changes_;
  AclOps& acls_;
  DirectoryNames& names_;
};

}  // namespace siltfs
