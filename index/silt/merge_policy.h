// When HashStores are merged into SortedStores: the share of all entries that HashStores may hold.
//
// A larger share takes more memory, for the filters of HashStores. A smaller share causes more
// writes: each merge rewrites a partition for the sake of fewer new entries (SILT, section 5: write
// amplification is about 2.1 + 1 / (2 share)). So the share follows from the bytes that a put may
// write. If the filters do not fit into memory, the share is lowered, until a put would write more
// than an upper bound; below that, filters are dropped, which costs reads (residency.h).
//
// Functions only, safe to call from any thread.
#pragma once

#include <cstdint>

#include "index/silt/memory_plan.h"
#include "index/silt/silt_options.h"

namespace siltfs {

// A SortedStore's filter on flash, for each entry: eight slices of 1.11 bits (ribbon_filter.h).
inline constexpr double kSortedFilterBytes = 1.11;
// A HashStore's filter, for each place.
inline constexpr double kPlaceTagBytes = 2;

// The bytes that an entry takes in each kind of file, if stores are full.
struct EntryCosts {
  double log_bytes = 0;
  double hash_bytes = 0;     // of a HashStore or sorted run, with its part of the filter
  double sorted_bytes = 0;   // with its part of the page index, and of the filter if there is one
  double filter_memory = 0;  // of a HashStore or sorted run, in memory
};
// `run_filter_bytes`: of a sorted run's filter, for each entry; 0 if logs become HashStores.
EntryCosts CostsOf(const SlotLayout& layout, bool sorted_filters, double run_filter_bytes = 0);
// The costs of an index with these options. A partition has `hash_stores` HashStores or sorted runs
// on average.
EntryCosts CostsOf(const SiltIndexOptions& options, const SlotLayout& layout, bool sorted_filters,
                   double hash_stores);

// The bytes that a put may write.
double BytesPerPutOf(const SiltIndexOptions& options, const SlotLayout& layout);
// Bytes written per put with this share of all entries in HashStores, in an index of constant size
// whose names are put again: a merge of a partition rewrites the other entries, (1 - share) of all,
// when its HashStores hold twice their average. A growing index writes less. Half-filled last pages
// and manifests add some 3 %.
double BytesPerPut(const EntryCosts& costs, double share);
// The share for which BytesPerPut is `bytes`; at most kMostHashStoreShare, also if no share is
// large enough.
inline constexpr double kMostHashStoreShare = 0.5;
double ShareFor(const EntryCosts& costs, double bytes);
// The share if memory is not short: the one in the options, or that of BytesPerPutOf.
double WantedShare(const SiltIndexOptions& options, const SlotLayout& layout,
                   const EntryCosts& costs);

struct IndexSizes {
  uint64_t entries = 0;
  uint64_t page_index_bytes = 0;  // of boundaries, which stay in memory
  uint64_t stores = 0;
  double hash_stores = 0;  // of a partition, on average
};
// Whether merges write filters of SortedStores. If the options do not say so, they do if a limited
// memory has room for more than the filters of HashStores. If it has not, the filters would only
// make merges more expensive, and the share smaller than it must be.
bool HasRoomForSortedFilters(const SiltIndexOptions& options, const SlotLayout& layout,
                             const MemoryPlan& plan, const IndexSizes& sizes);
// The share at which the fullest partition is merged.
double HashStoreShare(const SiltIndexOptions& options, const SlotLayout& layout,
                      const MemoryPlan& plan, const IndexSizes& sizes);

// The bucket bits of new LogStores, at least `least`, with which a partition has at most
// kMostStores HashStores on average. With more HashStores, lookups read more pages without success.
inline constexpr double kMostStores = 38;
unsigned BucketBitsFor(uint64_t entries, unsigned partition_bits, double share, unsigned least);

}  // namespace siltfs
