#include "index/flash/throttle.h"

#include <atomic>
#include <thread>

#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

// An Env with a clock that stands still; it counts the reads of the clock.
class CountingEnv : public SimEnv {
 public:
  int64_t MonotonicNanoseconds() override {
    const int64_t now = SimEnv::MonotonicNanoseconds();
    ++asked;
    return now;
  }
  std::atomic<uint64_t> asked{0};
};

// Calls Throttle::Pay in a thread of its own.
class Payer {
 public:
  Payer(CountingEnv& env, Throttle& throttle, uint64_t bytes)
      : env_(env), thread_([this, &throttle, bytes] {
          throttle.Pay(bytes);
          paid_ = true;
        }) {
    const bool waits = StillWaits();
    CHECK(waits);
  }
  ~Payer() { thread_.join(); }
  bool paid() const { return paid_; }

  // Whether the payer still waits after it has read the clock again.
  bool StillWaits() const {
    const uint64_t before = env_.asked;
    while (env_.asked < before + 2 && !paid_) std::this_thread::yield();
    return !paid_;
  }

 private:
  CountingEnv& env_;
  std::atomic<bool> paid_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("without a limit no writer waits") {
  SimEnv env;
  Throttle throttle(env, 0);
  for (int i = 0; i < 100; ++i) throttle.Pay(UINT64_MAX);
}

TEST_CASE("a writer waits until the clock has caught up with the rate") {
  CountingEnv env;
  Throttle throttle(env, 1'000'000);
  for (int i = 0; i < 3; ++i) {
    Payer payer(env, throttle, 4'000);  // 4 ms
    for (int step = 0; step < 4; ++step) {
      CHECK(payer.StillWaits());
      env.AdvanceClock(kMillisecond - (step == 3 ? 1 : 0));
    }
    CHECK(payer.StillWaits());
    env.AdvanceClock(1);
    while (!payer.paid()) std::this_thread::yield();
  }
}

TEST_CASE("a later writer also waits for the earlier ones") {
  CountingEnv env;
  Throttle throttle(env, 1'000'000);
  Payer first(env, throttle, 2'000);
  Payer second(env, throttle, 3'000);
  env.AdvanceClock(2 * kMillisecond);
  while (!first.paid()) std::this_thread::yield();
  env.AdvanceClock(2 * kMillisecond);
  CHECK(second.StillWaits());
  env.AdvanceClock(kMillisecond);
  while (!second.paid()) std::this_thread::yield();
}

TEST_CASE("unused time does not accumulate") {
  CountingEnv env;
  Throttle throttle(env, 1'000'000);
  env.AdvanceClock(1000 * kMillisecond);
  Payer payer(env, throttle, 2'000);
  env.AdvanceClock(kMillisecond);
  CHECK(payer.StillWaits());
  env.AdvanceClock(kMillisecond);
  while (!payer.paid()) std::this_thread::yield();
}

TEST_CASE("an opened throttle ends all waiting permanently") {
  CountingEnv env;
  Throttle throttle(env, 1'000);
  Payer payer(env, throttle, 20);  // reads the clock every 20 ms
  CHECK(payer.StillWaits());
  throttle.Open();
  while (!payer.paid()) std::this_thread::yield();
  throttle.Pay(1'000'000'000);
}

}  // namespace siltfs
