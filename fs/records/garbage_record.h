// Estimates of how much garbage collection can remove, as of the last commit: the value of
// kGarbageKey. Correctness must not depend on these estimates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

struct GarbageRecord {
  // File content removed or replaced since the last collection; approximate.
  uint64_t released_bytes = 0;
  // The dead data that the last collection counted in sealed segments, without the data that was
  // removed since then: bytes in segment files, data chunks, and their uncompressed bytes.
  uint64_t dead_bytes = 0;
  uint64_t dead_chunks = 0;
  uint64_t dead_plain_bytes = 0;

  bool operator==(const GarbageRecord&) const = default;

  std::string Encode() const;
  static Result<GarbageRecord> Decode(std::string_view value);
};

}  // namespace siltfs
