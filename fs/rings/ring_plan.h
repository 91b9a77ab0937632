// Decides how many rings there are, and how large: one ring for each processor in use, with memory
// that is bounded for any number of processors.
//
// Pure computation, except ReadProcessors. Thread-safety: the functions have no state.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "store/base/result.h"

namespace siltfs::fuse {

// Numbers of processors, ascending.
struct Processors {
  std::vector<unsigned> possible;  // the kernel wants a slot for each
  std::vector<unsigned> online;
};

// Parses a list such as "0-3,8" (the files in /sys/devices/system/cpu). kCorruption if it is not
// one.
Result<std::vector<unsigned>> ParseProcessorList(std::string_view text);
Result<Processors> ReadProcessors();

struct RingPlan {
  struct Ring {
    unsigned processor = 0;
    // The queue of each slot. A queue is the number of the processor on which a program runs.
    std::vector<unsigned> slot_queues;
  };
  std::vector<Ring> rings;
  size_t payload_bytes = 0;  // of each slot; the largest READ or WRITE
};

// Buffers of all slots together take at most this much, unless there are more than 64 processors:
// each needs at least two slots of 128 KiB. A processor that is possible but not online has one
// slot, in the ring of another processor, so that its first programs are served once it is online.
inline constexpr size_t kRingBytes = size_t{16} << 20;

RingPlan PlanRings(const Processors& processors);

}  // namespace siltfs::fuse
