// Threads of a benchmark.
#pragma once

#include <functional>

#include "store/base/status.h"
#include "tools/bench/bench.h"

namespace siltfs {

// Calls `work` with 0, 1, ... count - 1, each in a thread of its own, and returns when all have
// returned. Throws what one of them threw.
void RunThreads(unsigned count, const std::function<void(unsigned thread)>& work);

// Of `total` things, how many fall to one of `count` threads.
uint64_t ShareOf(uint64_t total, unsigned thread, unsigned count);

inline void Require(const Status& status) {
  if (!status.ok()) throw BenchFailure(status.ToString());
}

}  // namespace siltfs
