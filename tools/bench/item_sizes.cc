#include "tools/bench/item_sizes.h"

#include <algorithm>
#include <cmath>

namespace siltfs {

ItemSizes::ItemSizes(double exponent) : exponent_(exponent) {
  cumulative_.reserve(kMost - kLeast + 1);
  for (uint64_t size = kLeast; size <= kMost; ++size) {
    sum_ += std::pow(static_cast<double>(size), -exponent_);
    cumulative_.push_back(sum_);
  }
  for (double& value : cumulative_) value /= sum_;
}

uint64_t ItemSizes::Draw(Random& random) const {
  const double at = static_cast<double>(random.Next() >> 11) / (uint64_t{1} << 53);
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, at);
  return kLeast + static_cast<uint64_t>(found - cumulative_.begin());
}

double ItemSizes::Probability(uint64_t size) const {
  return std::pow(static_cast<double>(size), -exponent_) / sum_;
}

double ItemSizes::MeanOf(const std::function<double(uint64_t)>& function) const {
  double mean = 0;
  for (uint64_t size = kLeast; size <= kMost; ++size) mean += Probability(size) * function(size);
  return mean;
}

double ItemSizes::Mean() const {
  return MeanOf([](uint64_t size) { return static_cast<double>(size); });
}

}  // namespace siltfs
