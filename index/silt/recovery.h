// What stands at the beginning: the stores of a SILT index as they are found in its directory
// (section 4, "Crash Tolerance": logs are replayed to build the tables).
//
// What a crash leaves is put right: logs that no manifest lists are removed, the torn tail of the
// last log is cut off, and what was read is made durable before it counts (a process may die and
// its writes live on in memory). What damage leaves is used: pages of frozen logs that are not what
// was written are dropped, and the sequence that counts as durable falls to what lies before the
// first of them. The manifest then lists them, so that they are not mourned again once their
// entries have been put anew; the last log is frozen with it, for its claims are void.
//
// Read-only, none of this is written: the stores just look like it.
#pragma once

#include <memory>

#include "index/silt/log_store.h"
#include "index/silt/silt_index.h"
#include "index/silt/store_lookup.h"
#include "index/silt/store_manifest.h"

namespace siltfs {

struct RecoveredStores {
  StoreManifest manifest;
  std::shared_ptr<LogStore> active;
  StoreList frozen;
  uint64_t durable_sequence = 0;
  uint64_t damaged_pages = 0;  // found now
  uint64_t bytes_written = 0;
};

Result<RecoveredStores> RecoverStores(Env& env, const SiltIndexOptions& options);

}  // namespace siltfs
