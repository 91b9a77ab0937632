// What a SILT index does with the memory it may use (SILT, section 4, "Fail-Graceful Indexing"):
// how large its LogStores and its work space are, and how much is left for filters and tries.
//
// LogStores come first: smaller ones make more HashStores, which costs writes and reads for ever,
// while a filter that is left out costs reads only as long as it is. Then the work space of
// conversions and merges, and filters and tries get the rest. The least that an index does with,
// whatever the limit, is the tails of its logs, the smallest tables, and the buffers of one merge:
// 2.4 MiB with 64 partitions, and about a KiB for each store.
//
// Functions only, safe to call from any thread. Units: bytes.
#pragma once

#include <cstdint>

#include "index/silt/silt_options.h"
#include "index/silt/slot.h"

namespace siltfs {

struct MemoryPlan {
  unsigned bucket_bits = 0;    // of LogStores that are begun
  uint32_t max_log_pages = 0;  // of a LogStore: a conversion reads it whole
  unsigned max_frozen_logs = 0;
  unsigned read_depth = 0;  // reads in flight for one call of Get, each with two pages
  uint64_t sort_memory_bytes = 0;
  uint64_t index_bytes = 0;  // for filters and tries; kNoMemoryLimit: as much as they take
  // A partition with more HashStores without a filter is merged, as each takes two reads.
  unsigned max_unfiltered_stores = 0;

  friend bool operator==(const MemoryPlan&, const MemoryPlan&) = default;
};

// `bucket_bits` as the index was made with.
MemoryPlan PlanMemory(uint64_t limit, const SiltIndexOptions& options, unsigned bucket_bits,
                      unsigned partition_bits, const SlotLayout& layout = kChunkSlots);

}  // namespace siltfs
