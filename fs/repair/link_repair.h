// Names against inodes, mended: how many names an inode has, where a directory's one name stands,
// of what type a name says it is, and which inodes are orphans. Where something is to be chosen,
// and only with `all`: inodes without a name get one in /lost+found, and a directory with several
// names keeps one.
//
// Inodes are taken in passes, as the check does it; each pass is a step of its own.
#pragma once

#include "fs/meta/kv_store.h"
#include "store/base/result.h"

namespace siltfs {

struct LinkRepairOptions {
  bool all = false;
  int64_t now = 0;                         // nanoseconds since 1970
  size_t inodes_a_pass = size_t{1} << 19;  // 48 bytes each
};

// How many keys were changed.
Result<uint64_t> RepairLinks(KvStore& kv, const LinkRepairOptions& options);

}  // namespace siltfs
