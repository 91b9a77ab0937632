// Runs the steps of a piece of work on several threads, in order of their numbers.
//
// Thread-safety: one thread calls RunSteps; `step` runs on its threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// Calls `step` with 0 to count - 1. After a step has failed, no further one begins. Returns the
// first failure.
inline Status RunSteps(size_t count, unsigned threads, const std::function<Status(size_t)>& step) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  Mutex mutex;
  Status failure;
  const auto run = [&] {
    while (!failed) {
      const size_t number = next++;
      if (number >= count) return;
      Status status = step(number);
      if (status.ok()) continue;
      const MutexLock lock(mutex);
      if (failed.exchange(true)) {
        status.IgnoreError("the first failure is returned");
      } else {
        failure = std::move(status);
      }
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < std::min<size_t>(threads, count); ++i) others.emplace_back(run);
  run();
  for (std::thread& thread : others) thread.join();
  return failure;
}

}  // namespace siltfs
