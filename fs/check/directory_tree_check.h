// Checks that every directory's parents lead to the root: finds cycles of parents.
//
// Inode numbers are allocated in ascending order, so a cycle has a directory whose parent's number
// is higher than its own, which only a rename can cause. Walks begin only at such directories.
// Memory: none.
#pragma once

#include <optional>

#include "fs/check/check_context.h"
#include "fs/meta/inode_record.h"

namespace siltfs {

class DirectoryTreeCheck {
 public:
  DirectoryTreeCheck(CheckContext& context, const KvSnapshot& snapshot)
      : context_(context), snapshot_(snapshot) {}

  Status Add(uint64_t directory, const InodeRecord& record);

 private:
  // The parent; empty at the root, or at damage that other checks report.
  Result<std::optional<uint64_t>> ParentOf(uint64_t directory) const;

  CheckContext& context_;
  const KvSnapshot& snapshot_;
};

}  // namespace siltfs
