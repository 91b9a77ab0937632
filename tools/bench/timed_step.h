// The time of a step that several threads take together: from the moment when all of them are ready
// to the moment when all have finished. What a thread does between two steps is not counted.
//
// Thread-safety: each thread has a Member of its own; `seconds` is valid when the threads have
// ended. Ownership: members borrow the step. A member that is destroyed, also by an exception,
// takes no part in further steps, so the other threads do not wait for it.
#pragma once

#include <barrier>

#include "tools/bench/rounds.h"

namespace siltfs {

class TimedStep {
 public:
  explicit TimedStep(unsigned threads) : barrier_(threads, Toggle{this}) {}

  class Member {
   public:
    explicit Member(TimedStep& step) : barrier_(step.barrier_) {}
    ~Member() { barrier_.arrive_and_drop(); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    // Each waits until all members have called it.
    void Begin() { barrier_.arrive_and_wait(); }
    void End() { barrier_.arrive_and_wait(); }

   private:
    friend class TimedStep;
    struct Toggle {
      TimedStep* step;
      void operator()() noexcept { step->Turn(); }
    };
    std::barrier<Toggle>& barrier_;
  };

  // The sum of all steps.
  double seconds() const { return seconds_; }
  // Of all threads of the process.
  double processor_seconds() const { return processor_seconds_; }

 private:
  using Toggle = Member::Toggle;

  void Turn() {
    if (running_) {
      seconds_ += stopwatch_.seconds();
      processor_seconds_ += ProcessorSeconds() - processor_begin_;
    } else {
      stopwatch_ = Stopwatch();
      processor_begin_ = ProcessorSeconds();
    }
    running_ = !running_;
  }

  bool running_ = false;
  double seconds_ = 0;
  double processor_seconds_ = 0;
  double processor_begin_ = 0;
  Stopwatch stopwatch_;
  std::barrier<Toggle> barrier_;
};

}  // namespace siltfs
