// How much memory this process has come to hold since a moment, as the kernel counts it: resident
// pages, whatever holds them (code that was paged in, the allocator's slack).
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>

namespace siltfs {

class MemoryMeter {
 public:
  // From now on.
  MemoryMeter();

  // The most there was at any time since the last call, in bytes more than at the beginning; what
  // there is now where the kernel's peak can't be reset.
  uint64_t PeakGrowth();
  uint64_t Growth() const;

 private:
  const uint64_t baseline_;
  const bool has_peak_;
};

}  // namespace siltfs
