// Whether every directory leads to the root: a cycle of parents hangs in the air.
//
// Numbers are given away in ascending order, so a cycle has a directory whose parent's number is
// higher than its own, as only a rename makes it: the walks begin at these alone. Memory: none.
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
  // The parent; empty where the way ends, at the root or because of damage that others tell of.
  Result<std::optional<uint64_t>> ParentOf(uint64_t directory) const;

  CheckContext& context_;
  const KvSnapshot& snapshot_;
};

}  // namespace siltfs
