// Time and medians, shared by all benchmarks.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace siltfs {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Returns the median; for an even number of values, the lower of the two middle ones.
double Median(std::vector<double> values);

}  // namespace siltfs
