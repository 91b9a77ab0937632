// Keeps a program on its processor when it gets a reply.
//
// The kernel wakes the program that waits for a reply on an idle processor, if there is one. The
// thread that hands in the reply occupies its own processor, so a sequential program would change
// its processor with each request, and each time a sleeping processor is woken. To the scheduler, a
// processor that runs only threads with the policy SCHED_IDLE is idle. So the thread takes this
// policy while it hands in the reply, and the program continues on the thread's processor.
//
// While a thread has the policy SCHED_IDLE, any other thread may keep it from its processor. If
// that is the woken program, it will soon wait for its next request, and nothing is lost. Two rules
// limit the harm of other threads. A thread that watches gives the policy back after some
// milliseconds (Rescue). After a stay that was not short, many replies are handed in without one;
// their number doubles with each such stay and is reset by a short one. So if another program keeps
// the processor busy, there is one stay for kMostSkipped replies in the long run. If no processor
// is idle, there is none: the program would not change its processor anyway.
//
// Thread-safety: HandIn belongs to one thread at a time; Rescue belongs to one watching thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace siltfs::fuse {

class LocalWake {
 public:
  using Clock = std::chrono::steady_clock;
  // Shorter than the time after which Rescue ends a stay.
  static constexpr std::chrono::milliseconds kShortStay{3};
  static constexpr std::chrono::milliseconds kBetweenLooks{1};  // for an idle processor
  static constexpr unsigned kFewSkipped = 64;
  static constexpr unsigned kMostSkipped = 16384;

  // Whether this process may change the policy of its threads to SCHED_IDLE and back, and the
  // calling thread has the usual policy. Without CAP_SYS_NICE a process usually may not change it
  // back. Tries it on a thread of its own.
  static bool Permitted();

  // `any_idle`: whether a processor is idle.
  LocalWake(bool permitted, std::function<bool()> any_idle,
            std::function<Clock::time_point()> now = Clock::now)
      : permitted_(permitted), any_idle_(std::move(any_idle)), now_(std::move(now)) {}

  // Calls `hand_in`, which must not wait, and usually with the policy SCHED_IDLE. Calls `watch`
  // when such a stay begins, still with the usual policy: from then on Rescue must be called
  // regularly.
  void HandIn(const std::function<void()>& watch, const std::function<void()>& hand_in);

  // Ends a stay in SCHED_IDLE that has lasted since the last call. False if there is none.
  bool Rescue();

 private:
  bool Useful(Clock::time_point now);

  const bool permitted_;
  const std::function<bool()> any_idle_;
  const std::function<Clock::time_point()> now_;
  // These belong to the thread that hands in.
  std::optional<Clock::time_point> looked_;
  bool idle_seen_ = false;
  uint64_t stays_ = 0;
  unsigned to_skip_ = 0;
  unsigned next_skip_ = kFewSkipped;
  // The number of the present stay, 0 if there is none, and the thread that stays.
  std::atomic<uint64_t> stay_ = 0;
  std::atomic<pid_t> thread_ = 0;
  uint64_t seen_ = 0;  // belongs to the watching thread
};

}  // namespace siltfs::fuse
