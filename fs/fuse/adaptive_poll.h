// Adaptive polling: decides whether a thread that has answered a request polls for the next request
// for a moment before it sleeps.
//
// A sequential program sends its next request within microseconds. On an idle machine, the thread's
// processor has gone to sleep by then, and waking it takes longer than answering most requests. So
// polling is faster. On a busy machine, processors do not sleep, and polling takes processor time
// from other threads, often from the program that is about to send the request.
//
// Thread-safety: an AdaptivePoll belongs to one thread; RunnableThreads may be used from any
// thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

namespace siltfs::fuse {

// Counts the threads of the whole system that run or wait for a processor, including the caller.
class RunnableThreads {
 public:
  RunnableThreads();
  ~RunnableThreads();
  RunnableThreads(const RunnableThreads&) = delete;
  RunnableThreads& operator=(const RunnableThreads&) = delete;

  // nullopt if the system does not report it.
  std::optional<unsigned> Count() const;

 private:
  int descriptor_;
};

class AdaptivePoll {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  // How long to poll for a request.
  static constexpr std::chrono::microseconds kDuration{50};
  // If a request came within this time after the last answer, the next request probably comes
  // within kDuration. This time is longer than kDuration because it may include the waking of a
  // thread.
  static constexpr std::chrono::microseconds kSoon{200};
  static constexpr std::chrono::milliseconds kBetweenCounts{1};

  // `runnable` returns what RunnableThreads::Count returns.
  AdaptivePoll(unsigned processors, std::function<std::optional<unsigned>()> runnable)
      : processors_(processors), runnable_(std::move(runnable)) {}

  // Whether to poll; call it when the thread has no more work.
  bool Begin(Time now);
  // Call it when the first request after Begin has come.
  void Arrived(Time now) { soon_ = now - began_ <= kSoon; }

 private:
  void CountRunnable(Time now);

  const unsigned processors_;
  const std::function<std::optional<unsigned>()> runnable_;
  Time began_{};
  bool soon_ = false;
  Time counted_{};
  // Moving mean of the counts, in which older counts weigh less. nullopt before the first count, or
  // if the system does not report the number.
  std::optional<double> mean_runnable_;
};

}  // namespace siltfs::fuse
