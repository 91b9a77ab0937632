// What stands at the beginning: the stores of a SILT index as they are found in its directory
// (section 4, "Crash Tolerance": logs are replayed to build the tables, filters and tries are read
// from flash).
//
// What a crash leaves is put right: a log counts up to the first page that is not the next one of
// its partition; what comes after it, and files that no manifest lists, are removed, and what was
// read is made durable before it counts (a process may die and its writes live on in memory). What
// damage leaves is used: where pages of logs are missing that were durable, the sequence that
// counts as durable falls to what lies before them. A HashStore or SortedStore whose filter, trie
// or footer is damaged makes the index kCorruption, and so do entries that a merge met damaged:
// that calls for an index made anew from the segments.
//
// Read-only, none of this is written: the stores just look like it.
#pragma once

#include <memory>
#include <vector>

#include "index/silt/partition.h"
#include "index/silt/silt_index.h"
#include "index/silt/store_manifest.h"

namespace siltfs {

struct RecoveredPartition {
  std::shared_ptr<LogStore> active;
  std::shared_ptr<const PartitionVersion> version;
};

struct RecoveredStores {
  StoreManifest manifest;
  std::vector<RecoveredPartition> partitions;
  uint64_t durable_sequence = 0;
  uint64_t damaged_pages = 0;  // found now
  uint64_t bytes_written = 0;
};

Result<RecoveredStores> RecoverStores(Env& env, const SiltIndexOptions& options);

}  // namespace siltfs
