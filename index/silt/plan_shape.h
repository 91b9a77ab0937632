// Chooses the number of partitions and the size of the LogStores' tables of a new index, from the
// number of entries that it will have and its memory limit.
//
// Functions only, safe to call from any thread. Units: bytes, entries.
#pragma once

#include <cstdint>
#include <optional>

#include "index/silt/plan_strategy.h"

namespace siltfs {

struct SiltShapeQuestion {
  uint64_t entries = 0;
  uint64_t memory_limit = 0;
  double hash_store_share = 0;
  // Chosen already.
  std::optional<unsigned> partition_bits = std::nullopt;
  std::optional<unsigned> bucket_bits = std::nullopt;
};

// The reads that an index of this shape needs for the lookup of a present and of an absent name
// together, beyond the one read of the present name's page. The memory that the limit leaves holds
// slices of the SortedStores' filters (ribbon_filter.h).
double ExtraReads(const SiltCosts& costs, double entries, double memory_limit);

// Returns the shape with the fewest ExtraReads; of equal ones, that with the least memory. A lookup
// that reaches the SortedStore takes at most 1.01 reads, and the peak of memory is within the
// limit. kUnsupported if no shape keeps to both, with one sentence that names the least memory.
Result<SiltShape> ChooseSiltShape(const SiltShapeQuestion& question,
                                  const SiltParticulars& particulars);

}  // namespace siltfs
