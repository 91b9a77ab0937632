// A histogram of latencies in a fixed amount of memory (15 KiB), whatever the number of samples.
// Each power of two has 32 buckets of the same width, so a percentile is at most 1/32 too high.
//
// Thread-safety: one thread; threads have their own histograms, which Add merges. Units:
// nanoseconds.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace siltfs {

class LatencyHistogram {
 public:
  void Record(uint64_t nanoseconds) {
    ++counts_[BucketOf(nanoseconds)];
    ++count_;
    sum_ += nanoseconds;
    if (nanoseconds > max_) max_ = nanoseconds;
  }
  void Add(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }  // exact; 0 without samples
  double Mean() const;                   // exact; 0 without samples
  // Returns a latency that `share` of the samples (0 to 1) do not exceed: the upper end of a
  // bucket, but at most max(). 0 without samples.
  uint64_t Percentile(double share) const;

 private:
  static constexpr unsigned kStepBits = 5;
  static constexpr uint64_t kSteps = uint64_t{1} << kStepBits;
  // Latencies below 2 * kSteps have a bucket each. Behind these, each power of two has kSteps.
  static constexpr size_t kBuckets = (64 - kStepBits + 1) * kSteps;

  static size_t BucketOf(uint64_t value) {
    if (value < kSteps) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kStepBits;
    return shift * kSteps + (value >> shift);
  }
  static uint64_t LastOf(size_t bucket);

  std::array<uint64_t, kBuckets> counts_ = {};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
};

}  // namespace siltfs
