#include "index/silt/plan_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "index/flash/cuckoo_place.h"
#include "index/flash/ribbon_filter.h"
#include "index/flash/slot.h"
#include "store/base/size_text.h"

namespace siltfs {
namespace {

constexpr double kMostReads = 1.01;
// Smaller tables would make too many files (memory_plan.cc).
constexpr unsigned kLeastBucketBits = 8;
constexpr double kBytesOfSlice = 1.11 / 8;  // for each entry
constexpr double kNoShape = std::numeric_limits<double>::infinity();

double ReadsOf(const SiltCosts& costs) {
  return std::max(costs.growth.read_amplification, costs.updates.read_amplification);
}

// With less than this memory, the index makes its tables smaller (memory_plan.h), or drops filters.
double MemoryOf(const SiltCosts& costs, const SiltShape& shape,
                const SiltParticulars& particulars) {
  constexpr double kBytesOfPlace = 6;
  constexpr double kTablesInLimit = 2;  // the tables may take half of the limit
  const double places = static_cast<double>(kBucketWays << shape.bucket_bits);
  const double logs = std::ldexp(places * kBytesOfPlace + particulars.tail_bytes,
                                 static_cast<int>(shape.partition_bits));
  return std::max(costs.peak_memory_bytes(), kTablesInLimit * logs);
}

}  // namespace

double ExtraReads(const SiltCosts& costs, double entries, double memory_limit) {
  const double spare = std::max(0.0, memory_limit - costs.peak_memory_bytes());
  const double slices = std::min<double>(kRibbonSlices, spare / (entries * kBytesOfSlice));
  // The last slice may be loaded for a part of the partitions only.
  const double whole = std::floor(slices);
  const double passing = std::exp2(-whole) * (1 - (slices - whole) / 2);
  return (costs.growth.average_hit_reads - 1) + (ReadsOf(costs) - 1) + passing;
}

Result<SiltShape> ChooseSiltShape(const SiltShapeQuestion& question,
                                  const SiltParticulars& particulars) {
  const auto entries = static_cast<double>(question.entries);
  const auto limit = static_cast<double>(question.memory_limit);
  SiltShape best;
  double best_reads = kNoShape;
  double best_memory = kNoShape;
  double least_memory = kNoShape;
  const auto try_shape = [&](unsigned partition_bits, unsigned bucket_bits) -> Status {
    const SiltShape shape{.entries = entries,
                          .partition_bits = partition_bits,
                          .bucket_bits = bucket_bits,
                          .hash_store_share = question.hash_store_share};
    SILTFS_ASSIGN_OR_RETURN(const SiltCosts costs, PredictSiltIndex(shape, particulars));
    if (ReadsOf(costs) > kMostReads) return Status::Ok();
    const double memory = MemoryOf(costs, shape, particulars);
    least_memory = std::min(least_memory, memory);
    if (memory > limit) return Status::Ok();
    const double reads = ExtraReads(costs, entries, limit);
    if (reads > best_reads || (reads == best_reads && memory >= best_memory)) return Status::Ok();
    best = shape;
    best_reads = reads;
    best_memory = memory;
    return Status::Ok();
  };
  const unsigned first_partition_bits = question.partition_bits.value_or(0);
  const unsigned last_partition_bits = question.partition_bits.value_or(kMaxPartitionBits);
  const unsigned first_bucket_bits = question.bucket_bits.value_or(kLeastBucketBits);
  const unsigned last_bucket_bits = question.bucket_bits.value_or(kMaxBucketBits);
  for (unsigned p = first_partition_bits; p <= last_partition_bits; ++p) {
    for (unsigned b = first_bucket_bits; b <= last_bucket_bits; ++b) {
      SILTFS_RETURN_IF_ERROR(try_shape(p, b));
    }
  }
  if (best_reads < kNoShape) return best;
  if (least_memory == kNoShape) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("no parameters find {} chunks with {} reads per lookup",
                              question.entries, kMostReads));
  }
  return Status(
      StatusCode::kUnsupported,
      fmt::format(
          "the index of {} chunks needs at least {} of memory for {} reads per lookup, more "
          "than the {} of --index-memory",
          question.entries, FormatSize(least_memory, 1), kMostReads, FormatSize(limit, 1)));
}

}  // namespace siltfs
