// The progress of an unfinished scrub: the value of kScrubKey. Without it the next scrub begins
// with the first segment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/location.h"
#include "store/base/result.h"

namespace siltfs {

struct ScrubRecord {
  SegmentId reached = kNoSegment;  // the last segment that was verified
  // Results for the segments verified so far.
  uint64_t segments = 0;
  uint64_t blocks = 0;
  uint64_t chunks = 0;
  uint64_t bytes = 0;  // of segment files
  uint64_t damaged_blocks = 0;
  uint64_t damaged_chunks = 0;
  uint64_t damaged_footers = 0;

  bool operator==(const ScrubRecord&) const = default;

  std::string Encode() const;
  static Result<ScrubRecord> Decode(std::string_view value);
};

}  // namespace siltfs
