// One byte rots on a device after a kill of the process; all writes of the process are present. The
// store must report damage, or show the same state as without the rot. It must never show wrong
// bytes. It may show an older state only if the missing steps were never acknowledged as durable,
// because an unfinished commit looks like a torn end.
//
// Thread-safety: the functions have no state.
#pragma once

#include <string>

#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "tests/crash/history.h"

namespace siltfs::testing {

struct RotOutcome {
  std::string place;    // file, offset, and the byte's new value
  std::string problem;  // empty: the state is legal
  bool noticed = false;
  bool deltas = false;  // whether the store had deltas before the rot
};

// Checks one rotten byte. `device` is in the state after a kill before record `cut`, and is not
// changed. `random` chooses the byte; all kinds of files are equally likely.
RotOutcome CheckRot(const SimEnv& device, const History& history, size_t cut, Random& random);

}  // namespace siltfs::testing
