// The rate limit of background writes: a writer pays for its bytes and waits while it is ahead of
// the rate.
//
// Thread-safety: any. Units: bytes, bytes per second.
#pragma once

#include <cstdint>

#include "store/base/thread_annotations.h"
#include "store/env/env.h"

namespace siltfs {

class Throttle {
 public:
  // 0: no limit. `env` gives the time.
  Throttle(Env& env, uint64_t bytes_per_second) : env_(env), rate_(bytes_per_second) {}

  void Pay(uint64_t bytes);
  // Ends all waiting permanently.
  void Open();

 private:
  Env& env_;
  const uint64_t rate_;
  Mutex mutex_;
  CondVar opened_changed_;
  bool opened_ SILTFS_GUARDED_BY(mutex_) = false;
  int64_t paid_until_ SILTFS_GUARDED_BY(mutex_) = 0;  // monotonic nanoseconds
};

}  // namespace siltfs
