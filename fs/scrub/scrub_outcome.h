// The pace and the outcome of a scrub (scrubber.h).
#pragma once

#include <cstdint>

#include "fs/records/scrub_record.h"

namespace siltfs {

enum class ScrubPace : uint8_t {
  kFull,    // as fast as it can
  kGentle,  // at idle priority, at a limited rate, and slower while the store is in use
};

struct ScrubOutcome {
  ScrubRecord statistics;  // of the whole scrub, since its first part began
  bool resumed = false;    // the scrub continued an interrupted scrub
  bool complete = false;   // false: the scrub was interrupted, and the next scrub continues it
};

}  // namespace siltfs
