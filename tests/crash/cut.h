// One power cut: the device loses its power after some record of a trace. The surviving store must
// open, be legal (history.h), pass the check, and still work. Its recovery is cut as well.
//
// Thread-safety: the functions have no state; several may run at once on different devices.
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
  // Not 0: the device fails once while the store is opened; the open is then retried without a
  // power cut.
  uint64_t failing_open = 0;
  // Number of steps after the recovery, and whether a second cut is made during them.
  unsigned more_steps = 6;
  OperationGenerator::Mix mix = OperationGenerator::Mix::kAll;  // of these steps
  bool cut_again = false;
  bool close = false;  // after the steps, close cleanly, check, and open again
  uint64_t seed = 0;   // of the steps
};

// The history of a device: it starts empty and runs these traces, each ended by a power cut or by a
// kill of the process.
struct CutChain {
  struct Link {
    SimTrace trace;
    size_t cut = 0;  // number of records before it
    CrashPolicy policy;
    // The process was killed instead: its writes are there but not yet durable.
    bool killed = false;
    CutOptions options = {};  // of its check
  };
  std::deque<Link> links;  // pointers to links stay valid when links are added
};

// The result of the check of one cut.
struct CutOutcome {
  std::string problem;        // empty: it was legal
  std::vector<size_t> steps;  // surviving steps of each thread
  SimTrace trace;             // of recovery and of the steps after it
};

// The device that `link` leaves, made from a device at the link's cut.
std::unique_ptr<SimEnv> DeviceAfter(const SimEnv& device, const CutChain::Link& link);

// `device` is in the state after the cut; its contents are consumed. `history` is of the trace that
// was cut.
CutOutcome CheckCut(SimEnv& device, const History& history, size_t cut, const CutOptions& options);

// The same for a cut while the store was being made: it must exist completely or not at all.
CutOutcome CheckCutWhileMaking(SimEnv& device);

// A policy for the nth cut at one place: at the first nothing survives, then all kinds occur at
// random.
CrashPolicy PolicyFor(uint64_t nth, Random& random);
std::string Describe(const CutChain::Link& link);

// Saves and loads a chain in a real file. Errors: those of the file; kCorruption if it holds no
// chain.
Status SaveChain(const CutChain& chain, const std::string& path);
Result<CutChain> LoadChain(const std::string& path);
// Builds the device of a chain again and checks its last cut.
Result<CutOutcome> ReplayChain(const CutChain& chain);

}  // namespace siltfs::testing
