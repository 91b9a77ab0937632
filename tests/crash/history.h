// What a sequence did to a store and what it was promised, read from the marks in its trace; and
// whether what a power cut left is legal: what the model has after some prefix of the steps, no
// older than what was promised before the cut.
//
// With several threads the order in which their steps reached the store is known only where one had
// ended before another began. Threads work on trees of their own, so a prefix of the whole is a
// number of steps for each thread, such that no step survives without all those that had ended
// before it began.
//
// Thread-safety: a value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/base/result.h"
#include "store/env/sim_env.h"
#include "tests/crash/operation.h"

namespace siltfs::testing {

// Steps of each thread, from the store's first day on.
using StepsByThread = std::vector<std::vector<Operation>>;

// Called by a sequence while its device records.
class Marks {
 public:
  // The store is made: from here on it must open.
  static void Made(SimEnv& env);
  // It has a directory for each thread: from here on steps are taken.
  static void Ready(SimEnv& env, unsigned threads);
  static void Begin(SimEnv& env, unsigned thread, const Operation& operation);
  // `taken` is false for a step that the device's failure prevented.
  static void End(SimEnv& env, unsigned thread, bool taken, const std::string& answer);
  // A step has made this inode.
  static void Inode(SimEnv& env, InodeNumber inode);
  // All that has ended is durable, as Close said.
  static void AllDurable(SimEnv& env);
};

class History {
 public:
  // `earlier` had been done, and had survived, before the trace began. kCorruption where an answer
  // in the trace is not the model's.
  static Result<History> Read(const SimTrace& trace, const StepsByThread& earlier);
  // How many threads the trace is of; 0 if it has no Ready mark.
  static unsigned ThreadsIn(const SimTrace& trace);

  size_t threads() const { return threads_.size(); }
  // A cut before this record leaves a store or none.
  size_t made() const { return made_; }
  // A cut at this record or after it leaves what Match tells about.
  size_t first_cut() const { return first_cut_; }
  // How many steps of each thread have survived a cut before record `cut`, if trees of these
  // digests are what it left. kCorruption, with what is wrong, if that is not legal.
  Result<std::vector<size_t>> Match(size_t cut, const std::vector<uint64_t>& digests) const;
  // Of those made before record `cut`, whether they have survived or not; 0 if there are none.
  InodeNumber HighestInode(size_t cut) const;
  // UINT64_MAX if none was made.
  InodeNumber LowestInode() const;
  // The earlier ones and these many of each thread's, and that the store was opened again.
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
  // From record `at` on, these many steps of each thread must survive.
  struct Promise {
    size_t at;
    std::vector<size_t> steps;
  };

  Status ReadMark(ByteView note, size_t at);
  Status RunModel(unsigned thread);
  std::vector<size_t> EndedBefore(size_t at) const;
  // The smallest number of steps, `least` at least, after which the thread's tree has this digest.
  size_t FindSteps(unsigned thread, size_t least, size_t cut, uint64_t digest) const;

  StepsByThread earlier_;
  std::vector<Thread> threads_;
  std::vector<Promise> promises_;
  std::vector<std::pair<size_t, InodeNumber>> inodes_;  // record and number
  size_t made_ = 0;
  size_t first_cut_ = 0;
};

}  // namespace siltfs::testing
