// Divides the memory of a SILT index (SILT, section 4, "Fail-Graceful Indexing") between LogStores,
// work space, and filters and tries.
//
// LogStores come first: smaller LogStores make more HashStores, which cost writes and reads
// permanently. A missing filter costs reads only as long as it is missing. Next comes the work
// space of conversions and merges; filters and tries get the rest. Even if the limit is lower, the
// index takes the memory for the tails of the logs, the smallest tables, and the buffers of one
// merge. With 64 partitions these take 2.4 MiB. Each HashStore or SortedStore takes about a KiB in
// addition.
//
// Functions only, safe to call from any thread. Units: bytes.
#pragma once

#include <cstdint>

#include "index/flash/slot.h"
#include "index/silt/silt_options.h"

namespace siltfs {

// Memory of a HashStore or SortedStore without its filter or page index.
inline constexpr uint64_t kStoreBytes = 1024;

struct MemoryPlan {
  unsigned bucket_bits = 0;    // of new LogStores
  uint32_t max_log_pages = 0;  // of a LogStore; a conversion reads a whole log into memory
  unsigned max_frozen_logs = 0;
  unsigned read_depth = 0;  // reads in flight for one Get call, each with two pages
  uint64_t sort_memory_bytes = 0;
  uint64_t index_bytes = 0;  // for filters and tries; kNoMemoryLimit: no limit
  // A partition with more than this many HashStores without a filter is merged, because each of
  // these stores costs two reads.
  unsigned max_unfiltered_stores = 0;

  friend bool operator==(const MemoryPlan&, const MemoryPlan&) = default;
};

// Returns the plan for `limit`. `bucket_bits` is the value that the index wants; the plan has a
// lower one if the tables would take too much of the limit.
MemoryPlan PlanMemory(uint64_t limit, const SiltIndexOptions& options, unsigned bucket_bits,
                      unsigned partition_bits, const SlotLayout& layout = kChunkSlots);

}  // namespace siltfs
