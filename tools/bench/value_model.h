// Computes the flash space and the reads that keys and values of any length cost (SILT, section 4,
// figure 7). One function uses the paper's formula; the other uses the sizes of slots, pages,
// blocks and stores in this implementation.
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

// The paper's model. A slot of `slot_size` bytes holds a header of 4 bytes, an offset of 4 bytes,
// and the first part of key and value. Nothing else takes space, and the index itself costs no
// reads.
ValueCost PaperCost(const ItemSizes& sizes, size_t slot_size);

// The state of an index that is not being changed.
struct IndexShape {
  double hash_store_share = 0;   // share of all entries
  double hash_occupancy = 0.95;  // share of the HashStores' slots
};
// The model of this implementation; several `slot_sizes` mean segregated stores.
ValueCost ModelCost(const ItemSizes& sizes, const std::vector<size_t>& slot_sizes,
                    const IndexShape& shape, size_t block_bytes);

}  // namespace siltfs
