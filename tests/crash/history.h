// The steps and promises of a sequence, read from the marks in its trace. They decide whether a
// state after a power cut is legal. The state must be the model's state after some prefix of the
// steps, and the prefix must keep the promises made before the cut.
//
// The order of two steps of different threads is known only if one ended before the other began.
// Each thread works on its own tree, so a prefix is a number of steps for each thread. If a prefix
// contains a step, it must contain all steps that ended before that step began.
//
// Thread-safety: a value.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fs/interface/file_system.h"
#include "store/base/result.h"
#include "store/env/sim_env.h"
#include "tests/crash/operation.h"

namespace siltfs::testing {

// Steps of each thread since the store was made.
using StepsByThread = std::vector<std::vector<Operation>>;

// Writes marks to the trace. A sequence calls it while its device records.
class Marks {
 public:
  // The store is made; from now on it must open.
  static void Made(SimEnv& env);
  // The store has a directory for each thread, and the steps begin.
  static void Ready(SimEnv& env, unsigned threads);
  static void Begin(SimEnv& env, unsigned thread, const Operation& operation);
  // `taken` is false if a failure of the device prevented the step.
  static void End(SimEnv& env, unsigned thread, bool taken, const std::string& answer);
  // A step made this inode.
  static void Inode(SimEnv& env, InodeNumber inode);
  // Close succeeded: all ended steps are durable.
  static void AllDurable(SimEnv& env);
};

class History {
 public:
  // Reads the marks. `earlier` are the steps that survived from before the trace began. kCorruption
  // if an answer in the trace differs from the model's.
  static Result<History> Read(const SimTrace& trace, const StepsByThread& earlier);
  // Returns the number of threads in the trace; 0 if it has no Ready mark.
  static unsigned ThreadsIn(const SimTrace& trace);

  size_t threads() const { return threads_.size(); }
  // After a cut before this record, there may be no store.
  size_t made() const { return made_; }
  // Match judges cuts from this record on.
  size_t first_cut() const { return first_cut_; }
  // Whether a step was recompressing or collecting garbage before record `at`.
  bool InMaintenance(size_t at) const;
  // Whether a step of this kind was in progress at record `at`.
  bool In(size_t at, const std::function<bool(Operation::Kind)>& is_of_kind) const;
  // Returns how many steps of each thread survived a cut before record `cut`. `digests` are those
  // of the trees after the cut. kCorruption, with the reason, if that state is not legal.
  Result<std::vector<size_t>> Match(size_t cut, const std::vector<uint64_t>& digests) const;
  // Returns the highest number of all inodes made before record `cut`, surviving or not; 0 if there
  // are none.
  InodeNumber HighestInode(size_t cut) const;
  // Returns the lowest number of all inodes made; UINT64_MAX if there are none.
  InodeNumber LowestInode() const;
  // Returns the earlier steps, followed by the first `steps` of each thread and a reopening of the
  // store.
  StepsByThread Surviving(const std::vector<size_t>& steps) const;

 private:
  static constexpr size_t kNever = SIZE_MAX;

  struct Step {
    Operation operation;
    size_t begin = kNever;  // index of its mark
    size_t end = kNever;
    bool taken = false;
    std::string answer;
  };
  struct Thread {
    std::vector<Step> steps;
    std::vector<uint64_t> digests;  // after 0, 1, 2 ... steps
  };
  // After a cut behind record `at`, at least `steps[i]` steps of thread i must survive.
  struct Promise {
    size_t at;
    std::vector<size_t> steps;
  };

  Status ReadMark(ByteView note, size_t at);
  Status RunModel(unsigned thread);
  std::vector<size_t> EndedBefore(size_t at) const;
  // Returns the smallest number of steps, at least `least`, after which the thread's tree has this
  // digest.
  size_t FindSteps(unsigned thread, size_t least, size_t cut, uint64_t digest) const;

  StepsByThread earlier_;
  std::vector<Thread> threads_;
  std::vector<Promise> promises_;
  std::vector<std::pair<size_t, InodeNumber>> inodes_;  // record and number
  size_t made_ = 0;
  size_t first_cut_ = 0;
};

}  // namespace siltfs::testing
