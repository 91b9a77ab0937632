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

struct CutOptions {
  // Not 0: the device fails once while the store is opened, which is tried again without a power
  // cut.
  uint64_t failing_open = 0;
  // Steps taken after the recovery, and whether what a second cut leaves of them is looked at.
  unsigned more_steps = 6;
  OperationGenerator::Mix mix = OperationGenerator::Mix::kAll;  // of these steps
  bool cut_again = false;
  bool close = false;  // after the steps: closed cleanly, checked, opened again
  uint64_t seed = 0;   // of the steps
};

// How a device came to be as it is: from an empty one by these traces, each ended by a power cut or
// by the death of the process.
struct CutChain {
  struct Link {
    SimTrace trace;
    size_t cut = 0;  // records of the trace before it
    CrashPolicy policy;
    // Not the power went but the process died: what it wrote is there and is not durable yet.
    bool killed = false;
    CutOptions options = {};  // of its check
  };
  std::deque<Link> links;  // stay where they are when others are added
};

// What the check of one cut brought to light.
struct CutOutcome {
  std::string problem;        // empty: it was legal
  std::vector<size_t> steps;  // of each thread that had survived
  SimTrace trace;             // of recovery and of the steps after it
};

// A device as the link leaves it, of one that is at its cut.
std::unique_ptr<SimEnv> DeviceAfter(const SimEnv& device, const CutChain::Link& link);

// `device` is as the cut left it; it is used up. `history` is of the trace that was cut.
CutOutcome CheckCut(SimEnv& device, const History& history, size_t cut, const CutOptions& options);

// The same for a cut while the store was being made: there must be a store or none.
CutOutcome CheckCutWhileMaking(SimEnv& device);

// A policy for the nth cut at one place: first nothing survives, then all kinds at random.
CrashPolicy PolicyFor(uint64_t nth, Random& random);
std::string Describe(const CutChain::Link& link);

// A chain in a file of the machine's. Errors: as of the machine's files; kCorruption for a file
// that holds none.
Status SaveChain(const CutChain& chain, const std::string& path);
Result<CutChain> LoadChain(const std::string& path);
// Makes the device of a chain anew and checks its last cut.
Result<CutOutcome> ReplayChain(const CutChain& chain);

}  // namespace siltfs::testing
