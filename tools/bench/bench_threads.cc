#include "tools/bench/bench_threads.h"

#include <exception>
#include <thread>
#include <vector>

namespace siltfs {

void RunThreads(unsigned count, const std::function<void(unsigned)>& work) {
  std::vector<std::exception_ptr> failures(count);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

uint64_t ShareOf(uint64_t total, unsigned thread, unsigned count) {
  return total * (thread + 1) / count - total * thread / count;
}

}  // namespace siltfs
