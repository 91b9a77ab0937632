// One byte that has rotted on a device whose process was killed (everything it wrote is there): the
// store must say so, in one way or another, or show exactly what it would have shown; never an older
// state and never wrong bytes.
//
// Thread-safety: functions of their arguments.
#pragma once

#include <string>

#include "store/base/random.h"
#include "store/env/sim_env.h"

namespace siltfs::testing {

struct RotOutcome {
  std::string place;    // file, offset, and what the byte became
  std::string problem;  // empty: legal
  bool noticed = false;
};

// `device` is not changed. Which byte is decided by `random`: all kinds of files as often.
RotOutcome CheckRot(const SimEnv& device, unsigned threads, Random& random);

}  // namespace siltfs::testing
