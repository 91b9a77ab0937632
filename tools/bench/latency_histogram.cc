#include "tools/bench/latency_histogram.h"

#include <algorithm>
#include <cmath>

namespace siltfs {

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

double LatencyHistogram::Mean() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

uint64_t LatencyHistogram::LastOf(size_t bucket) {
  if (bucket < 2 * kSteps) return bucket;
  const unsigned shift = static_cast<unsigned>(bucket / kSteps) - 1;
  const uint64_t first = (bucket - shift * kSteps) << shift;
  return first + ((uint64_t{1} << shift) - 1);
}

uint64_t LatencyHistogram::Percentile(double share) const {
  const auto rank = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < kBuckets && count_ > 0; ++bucket) {
    seen += counts_[bucket];
    if (seen >= std::max<uint64_t>(rank, 1)) return std::min(LastOf(bucket), max_);
  }
  return max_;
}

}  // namespace siltfs
