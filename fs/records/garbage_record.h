// Estimates of the work of garbage collection, as of the last commit: the value of kGarbageKey.
// Correctness must not depend on them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

struct GarbageRecord {
  // File content removed or replaced since the last collection; approximate.
  uint64_t released_bytes = 0;
  // Dead data that the last count found in sealed segments, minus the data removed since then:
  // bytes in segment files, the number of data chunks, and their uncompressed bytes.
  uint64_t dead_bytes = 0;
  uint64_t dead_chunks = 0;
  uint64_t dead_plain_bytes = 0;

  bool operator==(const GarbageRecord&) const = default;

  std::string Encode() const;
  static Result<GarbageRecord> Decode(std::string_view value);
};

}  // namespace siltfs
