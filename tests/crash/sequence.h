// A random sequence of steps on a store on a simulated device: what it is to be, and running it.
// The store is made small in everything, so that few steps fill blocks, seal segments, freeze,
// convert and merge the index's stores, and flush the metadata's.
//
// Thread-safety: functions of their arguments.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "fs/core/file_system.h"
#include "fs/core/make_store.h"
#include "store/env/sim_env.h"
#include "tests/crash/history.h"

namespace siltfs::testing {

struct SequencePlan {
  uint64_t seed = 0;
  unsigned threads = 1;
  unsigned phases = 1;  // the store is closed, or its process dies, and is opened again in between
  unsigned steps = 30;  // of each thread in each phase
  size_t most_places = 40;  // where it is cut, drawn from all; one plan in eight: every one
  uint32_t largest_write = 20000;
  OperationGenerator::Mix mix = OperationGenerator::Mix::kAll;
  // Long enough never to come, or so short that commits are always in flight.
  std::chrono::milliseconds commit_interval{3600'000};
  // So small that each change of metadata is committed alone, or as it is in earnest: the first
  // shows what should have been one change.
  size_t group_bytes = 4u << 20;
  // Before each step all is committed, so that the step's first change is a commit of its own.
  bool settled = false;
  uint32_t segment_bytes = 64u << 10;
  MakeStoreOptions store;
  unsigned partition_bits = 0;
  unsigned bucket_bits = 2;
  std::optional<SimFault> fault;  // of the device, once, while the sequence runs
};

// Everything from the seed.
SequencePlan PlanSequence(uint64_t seed);

inline const std::string kStorePath = "/store";

// Makes the store and a directory for each thread, durably.
Status MakeSmallStore(SimEnv& env, const SequencePlan& plan);
// Findings are collected in `findings`.
class FindingLog;
Result<std::unique_ptr<FileSystem>> OpenStore(Env& env, std::chrono::milliseconds commit_interval,
                                              FindingLog& findings, bool read_only = false,
                                              size_t group_bytes = 4u << 20);

// What a store reported. Thread-safe.
class FindingLog {
 public:
  void Add(const std::string& finding);
  std::string Take();  // one a line; empty if there were none

 private:
  Mutex mutex_;
  std::string findings_ SILTFS_GUARDED_BY(mutex_);
};

// The trace of the whole, from the empty device on. Errors are the sequence's own: a store that
// could not be made or opened.
Result<SimTrace> RunSequence(const SequencePlan& plan);

// Takes steps on an open store in this thread, marking them on `env`, until `count` are done or
// one fails for the device's sake, which is then the answer, unless it was a full disk's.
// `settled`, if it is not null, commits everything before each step, without a word of it in the
// trace.
Status TakeSteps(SimEnv& env, Stepper& stepper, unsigned thread, OperationGenerator& generator,
                 unsigned count, FileSystem* settled = nullptr);

}  // namespace siltfs::testing
