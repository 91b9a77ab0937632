// Whether a thread that has answered a request should look for the next one for a moment before it
// sleeps until one comes.
//
// A program that does one thing after the other asks again within microseconds. On a machine with
// nothing else to do, the thread's processor has gone to sleep by then, and to wake it takes longer
// than most answers. Where other threads want the processors, looking takes them away from those,
// often from the very program that is about to ask, and there processors never sleep.
//
// Thread-safety: Linger is one thread's, RunnableThreads any's.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

namespace siltfs::fuse {

// How many threads run or wait for a processor, in the whole system, the caller included.
class RunnableThreads {
 public:
  RunnableThreads();
  ~RunnableThreads();
  RunnableThreads(const RunnableThreads&) = delete;
  RunnableThreads& operator=(const RunnableThreads&) = delete;

  // Nothing where the system does not say.
  std::optional<unsigned> Count() const;

 private:
  int descriptor_;
};

class Linger {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  // How long it is looked for a request.
  static constexpr std::chrono::microseconds kDuration{50};
  // Who asked within this time will ask within kDuration if nobody has to be woken.
  static constexpr std::chrono::microseconds kSoon{200};
  static constexpr std::chrono::milliseconds kBetweenCounts{1};

  // `runnable` as RunnableThreads::Count.
  Linger(unsigned processors, std::function<std::optional<unsigned>()> runnable)
      : processors_(processors), runnable_(std::move(runnable)) {}

  // Whether to look; called when the thread has nothing to do any more.
  bool Begin(Time now);
  // The request has come for which it was idle since Begin.
  void Arrived(Time now) { soon_ = now - began_ <= kSoon; }

 private:
  void CountRunnable(Time now);

  const unsigned processors_;
  const std::function<std::optional<unsigned>()> runnable_;
  Time began_{};
  bool soon_ = false;
  Time counted_{};
  // The mean of the last counts, the older ones weighing less. Nothing before the first, or where
  // the system does not say.
  std::optional<double> mean_runnable_;
};

}  // namespace siltfs::fuse
