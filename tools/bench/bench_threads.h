// Threads of a benchmark.
#pragma once

#include <functional>

#include "store/base/status.h"
#include "tools/bench/bench.h"

namespace siltfs {

// Calls `work` with 0, 1, ... count - 1, each in its own thread, and returns when all calls have
// returned. If calls throw, rethrows the exception of one of them.
void RunThreads(unsigned count, const std::function<void(unsigned thread)>& work);

// Returns how many of `total` items the thread with the number `thread` gets, if `count` threads
// share them evenly.
uint64_t ShareOf(uint64_t total, unsigned thread, unsigned count);

inline void Require(const Status& status) {
  if (!status.ok()) throw BenchFailure(status.ToString());
}

}  // namespace siltfs
