// Checks that every directory's parents lead to the root, and reports cycles.
//
// Every cycle has a directory with a lower number than its parent. Numbers are allocated in
// ascending order, so only a rename makes such a directory. Walks begin only at such directories.
// Memory: none.
#pragma once

#include <optional>

#include "fs/check/check_context.h"
#include "fs/records/inode_record.h"

namespace siltfs {

class DirectoryTreeCheck {
 public:
  DirectoryTreeCheck(CheckContext& context, const KvSnapshot& snapshot)
      : context_(context), snapshot_(snapshot) {}

  Status Add(uint64_t directory, const InodeRecord& record);

 private:
  // Returns the parent; empty at the root, or at damage that other checks report.
  Result<std::optional<uint64_t>> ParentOf(uint64_t directory) const;

  CheckContext& context_;
  const KvSnapshot& snapshot_;
};

}  // namespace siltfs
