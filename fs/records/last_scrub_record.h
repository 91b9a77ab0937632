// The end of the last complete scrub: the value of kLastScrubKey. A store that was never verified
// as a whole has no such record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

struct LastScrubRecord {
  int64_t ended_ns = 0;  // nanoseconds since 1970, UTC
  // What the scrub found. The damage may have been repaired since.
  uint64_t damaged_blocks = 0;
  uint64_t damaged_chunks = 0;
  uint64_t damaged_footers = 0;

  bool operator==(const LastScrubRecord&) const = default;

  std::string Encode() const;
  // kCorruption if the value is malformed, kNeedsNewer if another version of siltfs has written it.
  static Result<LastScrubRecord> Decode(std::string_view value);
};

}  // namespace siltfs
