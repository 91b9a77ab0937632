// Measures how much this process's memory has grown since a moment, as the kernel counts it. The
// kernel counts all resident pages, including code that was paged in and the allocator's slack.
//
// Thread-safety: one thread; Growth from any thread.
#pragma once

#include <cstdint>

namespace siltfs {

class MemoryMeter {
 public:
  // Growth is measured from the construction on.
  MemoryMeter();

  // Returns the peak since the last call, in bytes above the memory at the construction. If the
  // kernel's peak cannot be reset, returns the current growth.
  uint64_t PeakGrowth();
  uint64_t Growth() const;

 private:
  const uint64_t baseline_;
  const bool has_peak_;
};

}  // namespace siltfs
