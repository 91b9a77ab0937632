// Computes the cost of keys and values of any length in flash space and reads (SILT, section 4,
// figure 7): by the paper's formula, and with the sizes of slots, pages, blocks and stores used
// here.
//
// Thread-safety: the functions have no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/bench/item_sizes.h"

namespace siltfs {

struct ValueCost {
  double space = 0;  // bytes on flash per byte of keys and values
  double reads = 0;  // from flash, for a present key
};

// The paper's model: slots of `slot_size` bytes hold a header of 4 bytes, an offset of 4, and the
// first part of key and value. Nothing else takes space, and the index's own work costs no reads.
ValueCost PaperCost(const ItemSizes& sizes, size_t slot_size);

// The state of an index at rest.
struct IndexShape {
  double hash_store_share = 0;   // share of all entries
  double hash_occupancy = 0.95;  // share of the HashStores' slots
};
// The model of this implementation; several `slot_sizes` mean segregated stores.
ValueCost ModelCost(const ItemSizes& sizes, const std::vector<size_t>& slot_sizes,
                    const IndexShape& shape, size_t block_bytes);

}  // namespace siltfs
