// Whether the stores of a partition are what they should be: every page what was written, every
// entry where filters and tries lead lookups, SortedStores in order, as many entries as they say.
//
// Thread-safety: the stores are only read. Findings, by code: "page-checksum", "page-missing",
// "entry-place", "entry-order", "entry-partition", "entry-count".
#pragma once

#include <functional>

#include "index/silt/partition.h"

namespace siltfs {

struct VerifyOptions {
  uint64_t hash_secret = 0;
  unsigned partition_bits = 0;
  uint32_t partition = 0;
  SlotLayout layout = kChunkSlots;
};

// kIoError where something can't be read.
Status VerifyPartition(const PartitionVersion& version, const VerifyOptions& options,
                       const std::function<void(const IndexFinding&)>& report);

}  // namespace siltfs
