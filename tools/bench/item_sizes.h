// Sizes of keys with their values, from 4 bytes to 1 MiB, as in figure 7 of the SILT paper. The
// probability of a size falls with a power of the size (Zipf).
//
// Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "store/base/random.h"

namespace siltfs {

class ItemSizes {
 public:
  static constexpr uint64_t kLeast = 4;
  static constexpr uint64_t kMost = 1U << 20;

  // P(size) is proportional to size^-exponent.
  explicit ItemSizes(double exponent);

  uint64_t Draw(Random& random) const;
  double Mean() const;
  // Returns the mean of a function of the size.
  double MeanOf(const std::function<double(uint64_t)>& function) const;

 private:
  double Probability(uint64_t size) const;

  const double exponent_;
  std::vector<double> cumulative_;  // [i]: the probability of a size of at most kLeast + i
  double sum_ = 0;                  // sum of size^-exponent over all sizes
};

}  // namespace siltfs
