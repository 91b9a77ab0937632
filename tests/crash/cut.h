// One power cut: the device as it was after some record of a trace, loses its power; what it keeps
// must open, be legal (history.h), pass the check, and go on working, its recovery cut as well.
//
// Thread-safety: functions of their arguments; several may run at once on devices of their own.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/env/sim_env.h"
#include "tests/crash/history.h"

namespace siltfs::testing {

// How a device came to be as it is: from an empty one by these traces, each ended by a power cut.
struct CutChain {
  struct Link {
    SimTrace trace;
    size_t cut = 0;  // records of the trace before it
    CrashPolicy policy;
  };
  std::deque<Link> links;  // stay where they are when others are added
};

struct CutOptions {
  // Steps taken after the recovery, and whether what a second cut leaves of them is looked at.
  unsigned more_steps = 6;
  bool cut_again = false;
  bool close = false;  // after the steps: closed cleanly, checked, opened again
  uint64_t seed = 0;   // of the steps
};

// What the check of one cut brought to light.
struct CutOutcome {
  std::string problem;         // empty: it was legal
  std::vector<size_t> steps;   // of each thread that had survived
  SimTrace trace;              // of recovery and of the steps after it
};

// `device` is as the cut left it; it is used up. `history` is of the trace that was cut.
CutOutcome CheckCut(SimEnv& device, const History& history, size_t cut, const CutOptions& options);

// The same for a cut while the store was being made: there must be a store or none.
CutOutcome CheckCutWhileMaking(SimEnv& device);

// A policy for the nth cut at one place: first nothing survives, then all kinds at random.
CrashPolicy PolicyFor(uint64_t nth, Random& random);
std::string Describe(const CrashPolicy& policy);

// A chain in a file of the machine's. Errors: as of the machine's files; kCorruption for a file
// that holds none.
Status SaveChain(const CutChain& chain, const std::string& path);
Result<CutChain> LoadChain(const std::string& path);
// Makes the device of a chain anew and checks its last cut.
Result<CutOutcome> ReplayChain(const CutChain& chain);

}  // namespace siltfs::testing
