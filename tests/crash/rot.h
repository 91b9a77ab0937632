// One byte that has rotted on a device whose process was killed (everything it wrote is there): the
// store must say so, in one way or another, or show what it would have shown; never wrong bytes,
// and no older state but one that lacks what nobody was told of (a commit that was under way is no
// more than a torn end).
//
// Thread-safety: functions of their arguments.
#pragma once

#include <string>

#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "tests/crash/history.h"

namespace siltfs::testing {

struct RotOutcome {
  std::string place;    // file, offset, and what the byte became
  std::string problem;  // empty: legal
  bool noticed = false;
};

// `device` is as a kill before record `cut` left it, and is not changed. Which byte is decided by
// `random`: all kinds of files as often.
RotOutcome CheckRot(const SimEnv& device, const History& history, size_t cut, Random& random);

}  // namespace siltfs::testing
