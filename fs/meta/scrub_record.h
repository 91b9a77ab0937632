// How far a scrub has come that has not ended: value behind kScrubKey. Without one the next scrub
// begins with the first segment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/location.h"
#include "store/base/result.h"

namespace siltfs {

struct ScrubRecord {
  SegmentId reached = kNoSegment;  // the last segment that was verified
  // Of the segments up to there, as they were found.
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
