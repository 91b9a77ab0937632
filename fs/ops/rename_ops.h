// Renames: within a directory and across, over an existing entry, or by exchange.
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
  // A name, the directory it is in and the inode it means; all locked and loaded.
  struct Place {
    Inode& directory;
    std::string_view name;
    std::optional<NameEntry> entry;
    Inode* inode = nullptr;  // null if the name is free
  };
  Status RenameLocked(const Place& from, const Place& to, RenameMode mode);
  Status Replace(const Place& from, const Place& to, int64_t now, Change& change);
  static void Exchange(const Place& from, const Place& to, int64_t now, Change& change);
  // Walks up from `directory`: kInvalidArgument if `ancestor` is on the way. The caller holds
  // rename_mutex_.
  Status CheckNotInside(InodeNumber directory, InodeNumber ancestor) const;

  const StoreContext& store_;
  InodeStore& inodes_;
  InodeLifetimes& lifetimes_;
  ChangeApplier& changes_;
  DirectoryNames& names_;
  Mutex rename_mutex_;  // held while an entry moves to another directory, so that the tree above it
                        // does not change
};

}  // namespace siltfs
