// Makes the metadata's tables consistent with each other, in steps of one atomic write each. After
// an interruption another repair continues with the next step.
//
// Not thread-safe. The caller holds the store's lock. Errors: kCorruption if a table cannot be
// read; those of the key-value store.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "fs/kv/kv_store.h"
#include "store/base/result.h"
#include "store/env/file_owner.h"

namespace siltfs {

struct MetadataRepairOptions {
  // False: make only repairs that lose no data and have one possible result. True: make all
  // repairs. For example, if a directory has two names, only one of them stays.
  bool all = false;
  int64_t now = 0;       // nanoseconds since 1970
  FileOwner owner = {};  // of recreated directories
  // Directories that contain themselves; their names are removed.
  std::set<uint64_t> detached;
};

struct MetadataRepairResult {
  uint64_t changes = 0;        // changed keys
  std::vector<uint64_t> lost;  // inodes whose unreadable records were removed
};

Result<MetadataRepairResult> RepairMetadata(KvStore& kv, const MetadataRepairOptions& options);

}  // namespace siltfs
