// Ends the pauses of all threads of a BucketSegmentStore when it is closed; and the pauses between
// the repetitions of a failing request.
//
// Thread-safety of StopSignal: every call from any thread. A RetryPauses object belongs to one
// thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "store/base/random.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class StopSignal {
 public:
  void Stop() SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    stopped_ = true;
    wakes_.NotifyAll();
  }
  bool stopped() const SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return stopped_;
  }
  // Returns false if the signal came before or during the pause.
  bool Pause(std::chrono::nanoseconds time) SILTFS_EXCLUDES(mutex_) {
    const auto end = std::chrono::steady_clock::now() + time;
    MutexLock lock(mutex_);
    while (!stopped_) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left.count() <= 0) return true;
      wakes_.WaitFor(mutex_, left);
    }
    return false;
  }

 private:
  mutable Mutex mutex_;
  CondVar wakes_;
  bool stopped_ SILTFS_GUARDED_BY(mutex_) = false;
};

// Pauses that double, with a random part (jitter), so that clients do not repeat at the same time.
class RetryPauses {
 public:
  RetryPauses(std::chrono::nanoseconds first, std::chrono::nanoseconds most, uint64_t seed)
      : next_(first), most_(most), random_(seed) {}

  std::chrono::nanoseconds Next() {
    const auto half = static_cast<uint64_t>(next_.count()) / 2;
    next_ = std::min(next_ * 2, most_);
    return std::chrono::nanoseconds(half + random_.Below(half + 1));
  }

 private:
  std::chrono::nanoseconds next_;
  const std::chrono::nanoseconds most_;
  Random random_;
};

}  // namespace siltfs
