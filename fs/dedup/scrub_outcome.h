// How a scrub is to be made, and what came of it (scrubber.h).
#pragma once

#include <cstdint>

#include "fs/meta/scrub_record.h"

namespace siltfs {

enum class ScrubPace : uint8_t {
  kFull,    // as fast as it can
  kGentle,  // at idle priority, no more than so much a second, and less while the store is in use
};

struct ScrubOutcome {
  ScrubRecord figures;    // of the whole scrub, since its first part began
  bool resumed = false;   // it has gone on where another one had ended
  bool complete = false;  // else it was interrupted, and the next one goes on
};

}  // namespace siltfs
