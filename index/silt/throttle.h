// The rate limit of background writes: whoever writes pays for the bytes and is made to wait when
// he is ahead of the rate.
//
// Thread-safety: any. Units: bytes, bytes a second.
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
  // Ends all waiting, for good.
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
