// Waits between attempts: exponential backoff with full jitter. Each wait is a random time between
// zero and a bound, which doubles from attempt to attempt. So clients that failed together do not
// return together.
//
// Thread-safety: one thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "store/env/env.h"

namespace siltfs {

class Backoff {
 public:
  Backoff(Env& env, std::chrono::nanoseconds first, std::chrono::nanoseconds longest)
      : env_(env), bound_(first), longest_(longest) {}

  // The next wait. Without randomness, it is the bound itself.
  std::chrono::nanoseconds Next() {
    const std::chrono::nanoseconds bound = std::min(bound_, longest_);
    bound_ = std::min(bound * 2, longest_);
    uint8_t bytes[8] = {};
    if (bound.count() <= 0 || !env_.FillRandom(bytes).ok()) return bound;
    uint64_t number = 0;
    for (const uint8_t byte : bytes) number = number << 8 | byte;
    return std::chrono::nanoseconds(number % static_cast<uint64_t>(bound.count() + 1));
  }

 private:
  Env& env_;
  std::chrono::nanoseconds bound_;
  const std::chrono::nanoseconds longest_;
};

}  // namespace siltfs
