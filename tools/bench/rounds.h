// Time and medians, shared by all benchmarks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace siltfs {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  uint64_t nanoseconds() const {
    const auto passed = std::chrono::steady_clock::now() - start_;
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count());
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The processor time of all threads of the process, in user mode and in the kernel, since an
// unspecified moment.
double ProcessorSeconds();

// Returns the median; for an even number of values, the lower of the two middle ones.
double Median(std::vector<double> values);

}  // namespace siltfs
