#include "index/flash/throttle.h"

#include <algorithm>

namespace siltfs {

void Throttle::Pay(uint64_t bytes) {
  if (rate_ == 0) return;
  MutexLock lock(mutex_);
  const int64_t now = env_.MonotonicNanoseconds();
  // Bandwidth that was not used in the past is not available later.
  paid_until_ = std::max(paid_until_, now) +
                static_cast<int64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(rate_));
  const int64_t until = paid_until_;
  while (!opened_) {
    const int64_t wait = until - env_.MonotonicNanoseconds();
    if (wait <= 0) return;
    opened_changed_.WaitFor(mutex_, std::chrono::nanoseconds(wait));
  }
}

void Throttle::Open() {
  MutexLock lock(mutex_);
  opened_ = true;
  opened_changed_.NotifyAll();
}

}  // namespace siltfs
