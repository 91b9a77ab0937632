// Repairs the records of lineages (fs/records/lineage.h, fs/check/lineage_check.h).
//
// A lineage whose record is malformed, or that has records of inodes but no record of its own,
// becomes one that is changed. So the next mount restores what its newest snapshot shows. If it has
// no snapshot, the next mount removes its records. A restore of a head that is right changes
// nothing.
//
// Not thread-safe. The caller holds the store's lock. Memory: the records. Errors: those of the
// key-value store. Durability: one batch.
#pragma once

#include <cstdint>

#include "fs/kv/kv_store.h"
#include "store/base/result.h"

namespace siltfs {

// Returns the number of changed keys. `all`: all lineages become changed, because the record of a
// snapshot may have been lost.
Result<uint64_t> RepairLineages(KvStore& kv, bool all);

}  // namespace siltfs
