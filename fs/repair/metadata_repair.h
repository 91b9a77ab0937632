// Metadata brought into agreement with itself, table against table: step by step, each one write.
// Whatever interrupts it leaves a state between two steps, from which another repair goes on.
//
// Not thread-safe. The caller holds the store's lock. Errors: kCorruption where a table cannot be
// read; those of the key-value store.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "fs/meta/kv_store.h"
#include "store/base/result.h"
#include "store/env/file_owner.h"

namespace siltfs {

struct MetadataRepairOptions {
  // Also what loses something, or needs a choice.
  bool all = false;
  int64_t now = 0;       // nanoseconds since 1970
  FileOwner owner = {};  // of directories that are made anew
  // Directories that lie in themselves, whose names are taken from them.
  std::set<uint64_t> detached;
};

struct MetadataRepairResult {
  uint64_t changes = 0;        // of keys
  std::vector<uint64_t> lost;  // inodes whose records were removed
};

Result<MetadataRepairResult> RepairMetadata(KvStore& kv, const MetadataRepairOptions& options);

}  // namespace siltfs
