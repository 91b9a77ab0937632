// Verifies the stores of a partition: every page is as it was written, filters and tries lead to
// every entry, SortedStores are in order, and entry counts are correct.
//
// Thread-safety: the stores are only read. Findings, by code: "page-checksum", "store-index",
// "entry-place", "entry-order", "entry-partition", "entry-count".
#pragma once

#include <functional>

#include "index/silt/partition.h"

namespace siltfs {

struct VerifyOptions {
  NameHash name_hash;
  unsigned partition_bits = 0;
  uint32_t partition = 0;
  SlotLayout layout = kChunkSlots;
};

// Reports each finding to `report`. Returns kIoError if a store cannot be read.
Status VerifyPartition(const PartitionVersion& version, const VerifyOptions& options,
                       const std::function<void(const IndexFinding&)>& report);

}  // namespace siltfs
