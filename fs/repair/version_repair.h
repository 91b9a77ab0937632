// Repairs the records of snapshots, and the versions of records that metadata keeps for them
// (fs/versions/version_key.h, fs/check/version_check.h).
//
// A snapshot whose record is malformed stays, with the name "recovered-N". A snapshot whose name
// another one has gets a suffix. A malformed version is removed, and the snapshots that it served
// then show the next newer value of the record. The list of versions is made again from the
// versions, because it follows from them. Versions that no snapshot needs are removed.
//
// Not thread-safe. The caller holds the store's lock. Memory: the snapshots, and a batch of
// changes. Errors: those of the key-value store. Durability: several batches. After an interruption
// another check finds the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/kv/kv_store.h"
#include "store/base/result.h"

namespace siltfs {

struct VersionRepairResult {
  uint64_t changes = 0;  // changed keys
  // The inodes of removed versions, and the snapshots that these were kept for.
  struct Lost {
    uint64_t inode = 0;
    uint64_t snapshot = 0;
  };
  std::vector<Lost> lost;
};

// `now`: nanoseconds since 1970, the time of a snapshot whose record is malformed.
Result<VersionRepairResult> RepairVersions(KvStore& kv, int64_t now);

// Makes the list of versions again, and removes malformed versions and those that no snapshot
// needs.
Result<VersionRepairResult> RelistVersions(KvStore& kv);

}  // namespace siltfs
