// Lists the entries of a partition: reads it and sorts it in memory.
//
// Functions only, safe to call from any thread. Memory: 24 bytes for each entry of the partition,
// replaced entries included.
#pragma once

#include <functional>
#include <vector>

#include "index/flash/flash_partition.h"

namespace siltfs {

struct EntryListing {
  std::vector<FlashEntry> entries;  // by hash, the newest of each hash, without tombstones
  uint64_t damaged_pages = 0;       // their entries are missing
};

// Lists the entries of a snapshot; the caller must have a pin (PageFiles) that is older. Leaves out
// entries that lead into segments for which `gone` is true, unless it is empty.
Result<EntryListing> ListEntries(const PartitionSnapshot& snapshot,
                                 const std::function<bool(SegmentId)>& gone = {});

}  // namespace siltfs
