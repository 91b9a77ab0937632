// The entries of directories: names, cookies and entry counts.
//
// Thread-safety: every call from any thread. Functions that take an Inode require that the caller
// holds its lock, exclusively if they change it, and that it is loaded. Errors: those of metadata,
// and as stated. Durability: none; changes are durable with their commit.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "fs/inodes/change.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/file_system.h"
#include "fs/records/directory_entry.h"

namespace siltfs {

class DirectoryNames {
 public:
  // The arguments must outlive it.
  DirectoryNames(const StoreContext& store, InodeStore& inodes) : store_(store), inodes_(inodes) {}

  // kNameTooLong or kInvalidArgument if no entry can have this name.
  static Status CheckName(std::string_view name);
  // kNotADirectory, or kNotFound if the directory was removed.
  static Status CheckDirectory(const Inode& directory);
  Result<std::optional<NameEntry>> FindName(InodeNumber directory, std::string_view name) const;
  // The same for a directory that is locked, which may know that it has no such name.
  Result<std::optional<NameEntry>> FindName(const Inode& directory, std::string_view name) const;
  // Returns why a name was not found: there is no such directory, or no such name in it. The caller
  // does not hold the directory's lock.
  Status NoSuchName(InodeNumber directory);
  // Walks from `directory` up to the root. Returns kInvalidArgument if it meets `ancestor`. If
  // directories move to other parents meanwhile, the result may be wrong.
  Status CheckNotInside(InodeNumber directory, InodeNumber ancestor) const;

  // These functions enter or remove a name. They do not change link counts. AddName and DropName
  // change the directory's entry count. AddName and PutName set the child's parent, unless it is a
  // directory; the caller saves the child afterwards.
  static void AddName(Inode& directory, std::string_view name, Inode& child, Change& change);
  // Enters a name with the cookie of an existing entry, in whose place it is listed. Does not
  // change the entry count.
  static void PutName(Inode& directory, std::string_view name, Inode& child, uint64_t cookie,
                      Change& change);
  static void DropName(Inode& directory, std::string_view name, const NameEntry& entry,
                       Change& change);

 private:
  const StoreContext& store_;
  InodeStore& inodes_;
};

}  // namespace siltfs
