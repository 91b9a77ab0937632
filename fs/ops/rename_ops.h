// Renames: within a directory or to another one, to a free name, over an existing entry, or as an
// exchange of two entries.
//
// Thread-safety: every call from any thread. Lock order: rename_mutex_, then the inodes concerned.
// Errors: those of FileSystem. Durability: none; a rename is durable with its commit.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "fs/inodes/change.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_lifetimes.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/file_system.h"
#include "fs/ops/directory_names.h"
#include "fs/records/directory_entry.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class RenameOps {
 public:
  // The arguments must outlive it.
  RenameOps(const StoreContext& store, InodeStore& inodes, InodeLifetimes& lifetimes,
            ChangeApplier& changes, DirectoryNames& names)
      : store_(store), inodes_(inodes), lifetimes_(lifetimes), changes_(changes), names_(names) {}

  // As the function of FileSystem.
  Status Rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                std::string_view new_name, RenameMode mode);

 private:
  // A name, its directory, and the inode that has this name. The directory and the inode are locked
  // and loaded.
  struct Place {
    Inode& directory;
    std::string_view name;
    std::optional<NameEntry> entry;
    Inode* inode = nullptr;  // null if the name is free
  };
  Status RenameLocked(const Place& from, const Place& to, RenameMode mode);
  Status Replace(const Place& from, const Place& to, int64_t now, Change& change);
  static void Exchange(const Place& from, const Place& to, int64_t now, Change& change);

  const StoreContext& store_;
  InodeStore& inodes_;
  InodeLifetimes& lifetimes_;
  ChangeApplier& changes_;
  DirectoryNames& names_;
  // Held while an entry moves to another directory. So while CheckNotInside (directory_names.h)
  // walks up to the root, no other rename moves a directory to another parent.
  Mutex rename_mutex_;
};

}  // namespace siltfs
