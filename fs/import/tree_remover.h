// Removes a name with everything below it. Each entry is an operation of its own, children before
// their directories, so a crash or an interruption leaves a part of the tree.
//
// Not thread-safe: one object per call. Ownership: borrows its arguments. Memory: some names of
// each directory on the path. Errors: those of CallerRights and FileSystem; kInterrupted if
// `stopped` returns true.
#pragma once

#include <functional>
#include <string_view>

#include "fs/import/change_announcer.h"
#include "fs/interface/file_system.h"
#include "fs/transfer/caller_rights.h"

namespace siltfs {

class TreeRemover {
 public:
  TreeRemover(FileSystem& file_system, const CallerRights& rights, ChangeAnnouncer& announcer,
              const std::function<bool()>& stopped)
      : file_system_(file_system), rights_(rights), announcer_(announcer), stopped_(stopped) {}

  // Returns the number of removed names. Nothing happens if there is no such name.
  Result<uint64_t> Remove(InodeNumber parent, std::string_view name);

 private:
  Status RemoveOne(InodeNumber parent, std::string_view name, InodeNumber inode, bool directory);

  FileSystem& file_system_;
  const CallerRights& rights_;
  ChangeAnnouncer& announcer_;
  const std::function<bool()>& stopped_;
  uint64_t removed_ = 0;
};

}  // namespace siltfs
