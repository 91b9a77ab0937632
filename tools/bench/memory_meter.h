// Measures how much this process's memory has grown since a moment, as the kernel counts it: all
// resident pages, including code that was paged in and the allocator's slack.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>

namespace siltfs {

class MemoryMeter {
 public:
  // Measures from now on.
  MemoryMeter();

  // The peak growth since the last call, in bytes above the beginning; the current growth if the
  // kernel's peak cannot be reset.
  uint64_t PeakGrowth();
  uint64_t Growth() const;

 private:
  const uint64_t baseline_;
  const bool has_peak_;
};

}  // namespace siltfs
