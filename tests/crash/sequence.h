// Plans and runs a random sequence of steps on a store on a simulated device. All parts of the
// store are small, so that a few steps have many effects: they fill blocks and seal segments,
// freeze, convert and merge the index's stores, and flush the stores of metadata.
//
// Thread-safety: the functions have no state.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "fs/interface/file_system.h"
#include "fs/open/make_store.h"
#include "store/env/sim_env.h"
#include "tests/crash/history.h"
#include "tests/crash/operation_generator.h"
#include "tests/crash/stepper.h"

namespace siltfs::testing {

struct SequencePlan {
  uint64_t seed = 0;
  unsigned threads = 1;
  unsigned phases = 1;      // between phases the store is closed, or killed, and opened again
  unsigned steps = 30;      // per thread and phase
  size_t most_places = 40;  // places of cuts; SIZE_MAX: every place
  uint32_t largest_write = 20000;
  OperationGenerator::Mix mix = OperationGenerator::Mix::kAll;
  // Either so long that no commit is made during the sequence, or so short that a commit is always
  // in progress.
  std::chrono::milliseconds commit_interval{3600'000};
  // Either the product's size, or so small that each change of metadata is committed alone. The
  // small size exposes an operation that makes two changes but should make one.
  size_t group_bytes = 4u << 20;
  // If true, everything is committed before each step, so that the step's first change is a
  // separate commit.
  bool commit_first = false;
  // If true, another thread recompresses all the time, as the background thread of a quiet store.
  // So recompression runs during collections, too.
  bool recompress_beside = false;
  uint32_t segment_bytes = 64u << 10;
  MakeStoreOptions store;
  unsigned partition_bits = 0;
  unsigned bucket_bits = 2;
  std::optional<SimFault> fault;  // one failure of the device while the sequence runs
};

// What the steps of all sequences of a campaign do. One sequence in four of kPrograms is one of
// kVersions.
enum class Workload : uint8_t {
  kPrograms,   // calls that programs cause
  kImports,    // also the calls of imports (EntryStore)
  kVersions,   // versions of files, in stores with deltas
  kSnapshots,  // snapshots among all other operations, also received ones, and rollbacks
  kQuotas,     // as kSnapshots, in a directory with a quota
};

// Returns a plan that depends only on the arguments.
SequencePlan PlanSequence(uint64_t seed, Workload workload = Workload::kPrograms);

inline const std::string kStorePath = "/store";

// Makes the store and a directory for each thread, durably.
Status MakeSmallStore(SimEnv& env, const SequencePlan& plan);
// OpenStore opens the store; the store's findings are collected in `findings`.
class FindingLog;
Result<std::unique_ptr<FileSystem>> OpenStore(Env& env, std::chrono::milliseconds commit_interval,
                                              FindingLog& findings, bool read_only = false,
                                              size_t group_bytes = 4u << 20);
// Closes the store when its index has all entries. Otherwise a check would report the unfinished
// rebuild of the index.
Status CloseStore(FileSystem& fs);

// Whether the store has segments with deltas.
Result<bool> HasDeltas(FileSystem& fs);

// Collects the findings that a store reported. Thread-safe.
class FindingLog {
 public:
  void Add(const std::string& finding);
  std::string Take();  // one per line; empty if there were none

 private:
  Mutex mutex_;
  std::string findings_ SILTFS_GUARDED_BY(mutex_);
};

// Runs the sequence. Returns the trace of the whole run, beginning with the empty device. Errors:
// the store could not be made or opened.
Result<SimTrace> RunSequence(const SequencePlan& plan);

// Takes steps on an open store in this thread and marks them on `env`, until `count` steps are done
// or the device makes one fail. Returns that failure, except if the disk was full. If
// `commit_first` is not null, commits everything before each step, without marks in the trace.
Status TakeSteps(SimEnv& env, Stepper& stepper, unsigned thread, OperationGenerator& generator,
                 unsigned count, FileSystem* commit_first = nullptr);

}  // namespace siltfs::testing
