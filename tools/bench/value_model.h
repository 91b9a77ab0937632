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
// and the first part of key and value. The rest of the value is stored elsewhere, and nothing else
// takes space. A lookup reads the slot, and needs a second read if there is a rest.
ValueCost PaperCost(const ItemSizes& sizes, size_t slot_size);

// The state of an index that is not being changed.
struct IndexShape {
  double hash_store_share = 0;   // the share of all entries that are in HashStores
  double hash_occupancy = 0.95;  // the share of the HashStores' slots that hold an entry
};
// The model of this implementation. With several `slot_sizes` there is a separate store for each
// slot size.
ValueCost ModelCost(const ItemSizes& sizes, const std::vector<size_t>& slot_sizes,
                    const IndexShape& shape, size_t block_bytes);

}  // namespace siltfs
