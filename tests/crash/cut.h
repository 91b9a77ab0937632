// Checks one power cut: the device loses its power after some record of a trace. The surviving
// store must open, be legal (history.h), pass fsck's check, and still work. The recovery is cut,
// too.
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
#include "tests/crash/operation_generator.h"

namespace siltfs::testing {

struct CutOptions {
  // If not 0, the device fails once while the store is opened. The value is the seed that chooses
  // the failure. The store is then opened again, without a power cut in between.
  uint64_t failing_open = 0;
  // more_steps: number of steps of each thread after the recovery. cut_again: whether the store is
  // synced after these steps, and then the power is cut again.
  unsigned more_steps = 6;
  OperationGenerator::Mix mix = OperationGenerator::Mix::kAll;  // of the steps after the recovery
  bool cut_again = false;
  bool close = false;  // after the steps, close cleanly, check, and open again
  uint64_t seed = 0;   // determines the steps
};

// The history of a device. The device starts empty and goes through the traces of the links in
// order. Each trace ends with a power cut or with a kill of the process.
struct CutChain {
  struct Link {
    SimTrace trace;
    size_t cut = 0;  // number of records before the cut
    CrashPolicy policy;
    // If true, the process was killed instead: its writes are present but not yet durable.
    bool killed = false;
    CutOptions options = {};  // for the check of the cut
  };
  std::deque<Link> links;  // pointers to links stay valid when links are added
};

// The result of the check of one cut.
struct CutOutcome {
  std::string problem;        // empty: the state was legal
  std::vector<size_t> steps;  // surviving steps of each thread
  bool deltas = false;        // whether the store had segments with deltas
  SimTrace trace;             // of recovery and of the steps after it
};

// Returns the device that `link` leaves. `device` is in the state at the link's cut.
std::unique_ptr<SimEnv> DeviceAfter(const SimEnv& device, const CutChain::Link& link);

// Checks the cut before record `cut` of the trace that `history` was read from. `device` is in the
// state after the cut; its contents are consumed.
CutOutcome CheckCut(SimEnv& device, const History& history, size_t cut, const CutOptions& options);

// Checks a cut while the store was being made: the store must exist completely or not at all.
CutOutcome CheckCutWhileMaking(SimEnv& device);

// Returns the policy for the nth cut at one place. At the first cut no write survives; later cuts
// use all kinds of policies at random.
CrashPolicy PolicyFor(uint64_t nth, Random& random);
std::string Describe(const CutChain::Link& link);

// Saves and loads a chain in a file of the real file system. Errors: those of the file; kCorruption
// if it holds no chain.
Status SaveChain(const CutChain& chain, const std::string& path);
Result<CutChain> LoadChain(const std::string& path);
// Builds the device of a chain again and checks its last cut.
Result<CutOutcome> ReplayChain(const CutChain& chain);

}  // namespace siltfs::testing
