// Whether the bucket has not answered for longer than a read may wait.
//
// A read of a file needs many blocks, one after another. If each waited for the whole timeout, a
// program would wait for hours before its read fails. So after one request has failed for that
// long, others fail at once. From time to time one request is sent, to see whether the bucket
// answers again.
//
// Thread-safety: every call from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class Outage {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kBetweenTries{1};

  // What a request may do now.
  enum class Turn : uint8_t {
    kRepeat,  // there is no outage: repeat it until the timeout
    kTryOnce,
    kFail,  // with Failure()
  };
  Turn NextTurn(Clock::time_point now) SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (cause_.empty()) return Turn::kRepeat;
    if (now < next_try_) return Turn::kFail;
    next_try_ = now + kBetweenTries;
    return Turn::kTryOnce;
  }

  void Ended() SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    cause_.clear();
  }
  // A request has failed without an answer, for whatever reason.
  void CountUnanswered() SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++unanswered_;
  }
  uint64_t unanswered() const SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return unanswered_;
  }
  // A request has had no answer until its timeout.
  void Began(Clock::time_point now, std::string_view cause) SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    constexpr std::string_view kPrefix = "the bucket does not answer: ";
    if (cause.starts_with(kPrefix)) cause.remove_prefix(kPrefix.size());
    cause_ = cause.empty() ? "no answer" : std::string(cause);
    next_try_ = now + kBetweenTries;
  }
  Status Failure() const SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return {StatusCode::kIoError, "the bucket does not answer: " + cause_};
  }

 private:
  mutable Mutex mutex_;
  std::string cause_ SILTFS_GUARDED_BY(mutex_);  // empty: there is no outage
  Clock::time_point next_try_ SILTFS_GUARDED_BY(mutex_);
  uint64_t unanswered_ SILTFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace siltfs
