// The outcome of a garbage collection or of an estimate. Units: bytes of segment files, counts.
#pragma once

#include <cstdint>

namespace siltfs {

struct GarbageOutcome {
  uint64_t segments = 0;  // examined
  uint64_t segments_removed = 0;
  uint64_t segments_left = 0;  // left alone because of damage
  uint64_t bytes_removed = 0;  // of the segments removed
  uint64_t bytes_copied = 0;   // of live chunks, as appended to new segments
  uint64_t dead_bytes = 0;     // in the sealed segments that were not removed
  uint64_t dead_chunks = 0;    // before the collection
  uint64_t live_chunks = 0;
};

}  // namespace siltfs
