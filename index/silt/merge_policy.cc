#include "index/silt/merge_policy.h"

#include <algorithm>

#include "index/flash/cuckoo_place.h"
#include "index/flash/log_page.h"
#include "index/flash/page_header.h"
#include "index/silt/run_filter.h"

namespace siltfs {
namespace {

// How full a table is when it refuses an entry.
constexpr double kOccupancy = 0.95;
// Part of the room for filters that is kept for the merge to come.
constexpr double kSlack = 0.92;

double BytesOfPage(const SlotLayout& layout) {
  return static_cast<double>(kPageSize) +
         (layout.hashed() ? 0 : static_cast<double>(kPageChecksumSize));
}

// The share of HashStores whose filters fit into a limited memory.
double FittingShare(const EntryCosts& costs, const MemoryPlan& plan, const IndexSizes& sizes) {
  const uint64_t taken = sizes.page_index_bytes + sizes.stores * kStoreBytes;
  const double room =
      plan.index_bytes > taken ? static_cast<double>(plan.index_bytes - taken) * kSlack : 0;
  return room / (costs.filter_memory * static_cast<double>(sizes.entries));
}

}  // namespace

EntryCosts CostsOf(const SlotLayout& layout, bool sorted_filters, double run_filter_bytes) {
  const auto slots = static_cast<double>(layout.slots_per_page());
  EntryCosts costs;
  costs.log_bytes = static_cast<double>(kPageSize) / static_cast<double>(LogSlotsPerPage(layout));
  costs.hash_bytes = (BytesOfPage(layout) / slots + kPlaceTagBytes) / kOccupancy;
  costs.sorted_bytes = BytesOfPage(layout) / slots + (sorted_filters ? kSortedFilterBytes : 0);
  costs.filter_memory = kPlaceTagBytes / kOccupancy;
  if (run_filter_bytes > 0) {
    costs.hash_bytes = BytesOfPage(layout) / slots + run_filter_bytes;
    costs.filter_memory = run_filter_bytes;
  }
  return costs;
}

EntryCosts CostsOf(const SiltIndexOptions& options, const SlotLayout& layout, bool sorted_filters,
                   double hash_stores) {
  if (!options.sorted_runs || !layout.hashed()) return CostsOf(layout, sorted_filters);
  const double entries = kOccupancy * static_cast<double>(kBucketWays << options.bucket_bits);
  const auto whole = static_cast<uint64_t>(entries);
  return CostsOf(layout, sorted_filters,
                 RunFilterSlices::For(hash_stores, whole).MemoryBytes(whole) / entries);
}

double BytesPerPutOf(const SiltIndexOptions& options, const SlotLayout& layout) {
  return options.bytes_per_put.value_or(
      options.sorted_runs && layout.hashed() ? kBytesPerPutOfRuns : kBytesPerPutOfHashStores);
}

double BytesPerPut(const EntryCosts& costs, double share) {
  return costs.log_bytes + costs.hash_bytes + costs.sorted_bytes * (1 - share) / (2 * share);
}

double ShareFor(const EntryCosts& costs, double bytes) {
  const double for_merges = bytes - costs.log_bytes - costs.hash_bytes;
  if (for_merges <= 0) return kMostHashStoreShare;
  return std::min(kMostHashStoreShare, costs.sorted_bytes / (2 * for_merges + costs.sorted_bytes));
}

double WantedShare(const SiltIndexOptions& options, const SlotLayout& layout,
                   const EntryCosts& costs) {
  return options.hash_store_share.value_or(ShareFor(costs, BytesPerPutOf(options, layout)));
}

bool HasRoomForSortedFilters(const SiltIndexOptions& options, const SlotLayout& layout,
                             const MemoryPlan& plan, const IndexSizes& sizes) {
  if (options.sorted_filters) return *options.sorted_filters;
  if (plan.index_bytes == kNoMemoryLimit) return false;
  if (sizes.entries == 0) return true;
  const EntryCosts costs = CostsOf(options, layout, /*sorted_filters=*/true, sizes.hash_stores);
  return FittingShare(costs, plan, sizes) > WantedShare(options, layout, costs);
}

double HashStoreShare(const SiltIndexOptions& options, const SlotLayout& layout,
                      const MemoryPlan& plan, const IndexSizes& sizes) {
  const EntryCosts costs = CostsOf(
      options, layout, HasRoomForSortedFilters(options, layout, plan, sizes), sizes.hash_stores);
  const double wanted = WantedShare(options, layout, costs);
  if (plan.index_bytes == kNoMemoryLimit || sizes.entries == 0) return wanted;
  const double least = std::min(wanted, ShareFor(costs, options.most_bytes_per_put));
  return std::clamp(FittingShare(costs, plan, sizes), least, wanted);
}

unsigned BucketBitsFor(uint64_t entries, unsigned partition_bits, double share, unsigned least) {
  const double in_partition =
      share * static_cast<double>(entries) / static_cast<double>(uint64_t{1} << partition_bits);
  unsigned bits = least;
  while (bits < kMaxBucketBits &&
         in_partition > kMostStores * kOccupancy * static_cast<double>(kBucketWays << bits)) {
    ++bits;
  }
  return bits;
}

}  // namespace siltfs
