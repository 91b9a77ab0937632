// Time and medians, the same for every benchmark.
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

// Of an odd number the middle one, of an even number the lower of the two.
double Median(std::vector<double> values);

}  // namespace siltfs
