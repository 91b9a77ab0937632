// What keys and values of any length cost by calculation: flash space and reads (SILT, section 4,
// figure 7), as the paper reckons, and with what slots, pages, blocks and stores take here.
//
// Functions only, safe to call from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/bench/item_sizes.h"

namespace siltfs {

struct ValueCost {
  double space = 0;  // bytes on flash a byte of keys and values
  double reads = 0;  // from flash, for a key that is there
};

// Slots of `slot_size` bytes that hold a header of 4 bytes, an offset of 4, and the first part of
// key and value; nothing else takes space, and what goes on in the index costs no reads.
ValueCost PaperCost(const ItemSizes& sizes, size_t slot_size);

// What an index looks like at rest.
struct IndexShape {
  double hash_store_share = 0;   // of all entries
  double hash_occupancy = 0.95;  // of the HashStores' slots
};
// Here: `slot_sizes` of more than one are segregated stores.
ValueCost ModelCost(const ItemSizes& sizes, const std::vector<size_t>& slot_sizes,
                    const IndexShape& shape, size_t block_bytes);

}  // namespace siltfs
