#include "index/silt/memory_plan.h"

#include <algorithm>

#include "index/flash/cuckoo_place.h"
#include "index/flash/frozen_file.h"
#include "index/flash/log_page.h"
#include "index/silt/ribbon_file.h"

namespace siltfs {
namespace {

// Smaller LogStores would make too many files.
constexpr unsigned kLeastBucketBits = 8;
constexpr unsigned kMaxUnfilteredStores = 16;
constexpr uint64_t kLeastSortBytes = 64U << 10;
// Memory of two scans, and of the write buffers for entries and the filter.
constexpr uint64_t kMergeBuffers =
    (2 * (kFrozenBatchPages + 1) + 32) * kPageSize + RibbonFileWriter::kMostMemory;

// Threads, queues, lists, and memory that the allocator can't return.
constexpr uint64_t kOverhead = 512U << 10;

constexpr unsigned kLeastReadDepth = 4;

// Buffers of one Get call.
uint64_t ReadBytes(unsigned depth) { return uint64_t{2} * depth * kPageSize; }

// Returns twice the number of pages that the entries of a full table take. So the log also has room
// for names that are put again.
uint32_t LogPages(unsigned bucket_bits, const SlotLayout& layout) {
  return 2 * static_cast<uint32_t>((kBucketWays << bucket_bits) / LogSlotsPerPage(layout) + 1);
}

// Sort memory grows with the tables, and these with the partitions. So a merge reads each HashStore
// a bounded number of times.
uint64_t SortMemory(const SiltIndexOptions& options, unsigned bucket_bits) {
  const unsigned doublings = bucket_bits - std::min(bucket_bits, kDefaultBucketBits);
  return uint64_t{options.sort_memory_bytes} << doublings;
}

// A tag and a value for each place.
uint64_t TableBytes(unsigned bucket_bits) { return (kBucketWays << bucket_bits) * uint64_t{6}; }

// A conversion to a sorted run sorts hashes and slots (16 bytes) and solves the filter's equations
// (8 bytes for each of 1.11 bits). Up to 14 slices of 1.11 bits are the result, and are encoded.
uint64_t RunBytes(const SiltIndexOptions& options, unsigned bucket_bits, const SlotLayout& layout) {
  if (!options.sorted_runs || !layout.hashed()) return 0;
  return (kBucketWays << bucket_bits) * uint64_t{29};
}

// The pages not yet written, and the page being filled.
uint64_t TailBytes(const SiltIndexOptions& options) {
  return (uint64_t{options.write_batch_pages} + 1) * kPageSize;
}

}  // namespace

MemoryPlan PlanMemory(uint64_t limit, const SiltIndexOptions& options, unsigned bucket_bits,
                      unsigned partition_bits, const SlotLayout& layout) {
  MemoryPlan plan{.bucket_bits = bucket_bits,
                  .max_log_pages = options.max_log_pages,
                  .max_frozen_logs = options.max_frozen_logs,
                  .read_depth = options.read_depth,
                  .sort_memory_bytes = SortMemory(options, bucket_bits),
                  .index_bytes = kNoMemoryLimit,
                  .max_unfiltered_stores = kMaxUnfilteredStores};
  if (limit == kNoMemoryLimit) return plan;
  const uint64_t partitions = uint64_t{1} << partition_bits;
  const auto active = [&] {
    return partitions * (TableBytes(plan.bucket_bits) + TailBytes(options));
  };
  while (plan.bucket_bits > kLeastBucketBits && active() > limit / 2) --plan.bucket_bits;
  plan.max_log_pages = std::clamp(LogPages(plan.bucket_bits, layout), options.write_batch_pages,
                                  options.max_log_pages);
  const uint64_t depth = limit / 64 / ReadBytes(1);
  plan.read_depth = static_cast<unsigned>(std::clamp<uint64_t>(
      depth, std::min(kLeastReadDepth, options.read_depth), options.read_depth));
  const uint64_t frozen = limit / 16 / TableBytes(plan.bucket_bits);
  plan.max_frozen_logs =
      static_cast<unsigned>(std::clamp<uint64_t>(frozen, 1, options.max_frozen_logs));
  plan.sort_memory_bytes =
      std::min<uint64_t>(std::max(limit / 16, kLeastSortBytes), plan.sort_memory_bytes);
  const uint64_t used = active() + plan.max_frozen_logs * TableBytes(plan.bucket_bits) +
                        plan.sort_memory_bytes + uint64_t{plan.max_log_pages} * kPageSize +
                        RunBytes(options, plan.bucket_bits, layout) + ReadBytes(plan.read_depth) +
                        kMergeBuffers + kOverhead;
  plan.index_bytes = limit > used ? limit - used : 0;
  return plan;
}

}  // namespace siltfs
