// Compares an inode of one state with an inode of another one, without reading data.
//
// Thread-safety: pure functions, safe to call from any thread. Errors: those of the key-value
// store.
#pragma once

#include <cstdint>

#include "fs/kv/kv_store.h"
#include "fs/records/inode_record.h"

namespace siltfs {

struct InodeInState {
  const KvSnapshot& state;
  uint64_t number = 0;
  const InodeRecord& record;
};

struct InodeDifference {
  bool content = false;
  bool metadata = false;
  bool any() const { return content || metadata; }
};

// Both inodes have the same type. `since`: see ComparedStates.
//
// Content differs if size, recipe or overlay differ. A fold in the background looks like a
// change of content if the file was also changed otherwise, or about when the older state was made.
// Metadata are the permissions, owners, device and extended attributes, and except for directories
// also mtime and a link's target. The mtime of a directory follows its entries. Times of access and
// of changes of the inode do not count.
Result<InodeDifference> CompareInodes(const InodeInState& before, const InodeInState& after,
                                      int64_t since);

}  // namespace siltfs
