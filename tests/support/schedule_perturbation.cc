#include "tests/support/schedule_perturbation.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atomic>

namespace siltfs::testing {
namespace {

constexpr int64_t kMostPausedNanoseconds = 300'000'000;  // after one call of PerturbSchedule

std::atomic<uint64_t> seed{0};     // 0: no perturbation
std::atomic<uint64_t> threads{0};  // number of threads that have begun this seed
std::atomic<int64_t> left{0};      // nanoseconds
std::atomic<uint64_t> perturbations{0};

// The state of one thread, reinitialized for each new seed.
struct ThreadPace {
  uint64_t seed = 0;
  uint64_t random = 0;
  uint64_t yield_one_in = 0;
  uint64_t pause_one_in = 0;
  uint64_t longest_pause = 0;  // nanoseconds

  // splitmix64
  uint64_t Next() {
    random += 0x9E3779B97F4A7C15;
    uint64_t mixed = random;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
  }

  // Begins a new seed. Makes some threads much slower than others, so that their actions come late.
  void Begin(uint64_t now) {
    seed = now;
    random = now + 0x632BE59BD9B4E019 * (1 + threads.fetch_add(1, std::memory_order_relaxed));
    yield_one_in = 32 + Next() % 224;
    const bool slow = Next() % 3 == 0;
    pause_one_in = slow ? 8 + Next() % 32 : 200 + Next() % 2000;
    longest_pause = slow ? 300'000 : 2'000'000;
  }
};

thread_local ThreadPace pace;

void Pause(uint64_t nanoseconds) {
  if (left.fetch_sub(static_cast<int64_t>(nanoseconds), std::memory_order_relaxed) <= 0) return;
  const timespec time = {0, static_cast<long>(nanoseconds)};
  nanosleep(&time, nullptr);
}

[[maybe_unused]] void Perturb() {
  const uint64_t now = seed.load(std::memory_order_relaxed);
  if (now == 0) return;
  if (pace.seed != now) pace.Begin(now);
  if (pace.Next() % pace.pause_one_in == 0) {
    // Short pauses are more frequent than long ones.
    Pause(1 + pace.Next() % (1 + pace.Next() % pace.longest_pause));
  } else if (pace.Next() % pace.yield_one_in == 0) {
    sched_yield();
  } else {
    return;
  }
  perturbations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void PerturbSchedule(uint64_t new_seed) {
  threads = 0;
  left = kMostPausedNanoseconds;
  seed = new_seed;
}

uint64_t SchedulePerturbations() { return perturbations; }

}  // namespace siltfs::testing

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

// The next function of this name after the program's own in the library search order.
template <typename Function>
class NextFunction {
 public:
  explicit constexpr NextFunction(const char* name) : name_(name) {}

  // Concurrent first calls all find the same function.
  Function* get() {
    Function* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
      found_.store(found, std::memory_order_relaxed);
    }
    return found;
  }

 private:
  const char* const name_;
  std::atomic<Function*> found_{nullptr};
};

}  // namespace

// A thread may pause before it takes a lock and after it releases one, so that other threads can
// take the lock in this time. It may also pause before it signals a condition, and before and after
// it waits for one.
#define SILTFS_PERTURBED_BEFORE(name, type)                \
  extern "C" int name(type* object) noexcept {             \
    static constinit NextFunction<int(type*)> next(#name); \
    siltfs::testing::Perturb();                            \
    return next.get()(object);                             \
  }
#define SILTFS_PERTURBED_AFTER(name, type)                 \
  extern "C" int name(type* object) noexcept {             \
    static constinit NextFunction<int(type*)> next(#name); \
    const int answer = next.get()(object);                 \
    siltfs::testing::Perturb();                            \
    return answer;                                         \
  }

SILTFS_PERTURBED_BEFORE(pthread_mutex_lock, pthread_mutex_t)
SILTFS_PERTURBED_AFTER(pthread_mutex_unlock, pthread_mutex_t)
SILTFS_PERTURBED_BEFORE(pthread_rwlock_rdlock, pthread_rwlock_t)
SILTFS_PERTURBED_BEFORE(pthread_rwlock_wrlock, pthread_rwlock_t)
SILTFS_PERTURBED_AFTER(pthread_rwlock_unlock, pthread_rwlock_t)
SILTFS_PERTURBED_BEFORE(pthread_cond_signal, pthread_cond_t)
SILTFS_PERTURBED_BEFORE(pthread_cond_broadcast, pthread_cond_t)

extern "C" int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static constinit NextFunction<int(pthread_cond_t*, pthread_mutex_t*)> next("pthread_cond_wait");
  siltfs::testing::Perturb();
  const int answer = next.get()(condition, mutex);
  siltfs::testing::Perturb();
  return answer;
}

#endif
