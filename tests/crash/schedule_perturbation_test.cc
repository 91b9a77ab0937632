#include "tests/support/schedule_perturbation.h"

#include <thread>

#include "store/base/thread_annotations.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Reads and writes the counter in two critical sections, so an addition between the two is lost.
class RacyCounter {
 public:
  void Add() { Set(Get() + 1); }
  uint64_t Get() {
    MutexLock lock(mutex_);
    return value_;
  }

 private:
  void Set(uint64_t value) {
    MutexLock lock(mutex_);
    value_ = value;
  }

  Mutex mutex_;
  uint64_t value_ SILTFS_GUARDED_BY(mutex_) = 0;
};

constexpr uint64_t kAdditions = 2000;  // per thread

// Builds with sanitizers do not call this function.
[[maybe_unused]] uint64_t LostUpdates(uint64_t seed) {
  RacyCounter counter;
  PerturbSchedule(seed);
  std::thread other([&counter] {
    for (uint64_t i = 0; i < kAdditions; ++i) counter.Add();
  });
  for (uint64_t i = 0; i < kAdditions; ++i) counter.Add();
  other.join();
  PerturbSchedule(0);
  return 2 * kAdditions - counter.Get();
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST_CASE("a perturbed schedule exposes a race between two critical sections, with every seed") {
  for (uint64_t seed = 1; seed <= 8; ++seed) CHECK(LostUpdates(seed) > 0);
}

TEST_CASE("without a seed no thread is perturbed") {
  PerturbSchedule(0);
  const uint64_t before = SchedulePerturbations();
  LostUpdates(0);
  CHECK(SchedulePerturbations() == before);
  LostUpdates(1);
  CHECK(SchedulePerturbations() > before);
}

#endif

}  // namespace siltfs::testing
