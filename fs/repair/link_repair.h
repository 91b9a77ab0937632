// Makes names and inodes agree: the number of an inode's names, the parent of a directory, the
// types in names, and the orphan marks. Two of the repairs need a choice, and are made only with
// `all`: an inode without a name gets a name in /lost+found, and a directory with several names
// keeps one of them.
//
// Works in passes over the inodes, like the check. Each pass writes its changes atomically.
#pragma once

#include "fs/kv/kv_store.h"
#include "store/base/result.h"

namespace siltfs {

struct LinkRepairOptions {
  bool all = false;
  int64_t now = 0;                         // nanoseconds since 1970
  size_t inodes_a_pass = size_t{1} << 19;  // 40 bytes of memory for each
};

// Returns the number of changed keys.
Result<uint64_t> RepairLinks(KvStore& kv, const LinkRepairOptions& options);

}  // namespace siltfs
