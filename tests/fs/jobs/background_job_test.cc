// How the thread of a maintenance job waits, yields and ends. Time passes only when a test says so:
// the job's waits end when the test wakes them.
#include "fs/jobs/background_job.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kPoll = std::chrono::seconds(1);

// A job whose waits a test controls.
class JobUnderTest {
 public:
  JobUnderTest()
      : job_(env_, {.store = "/store",
                    .interrupted = "the job was interrupted",
                    .wait = [this](CondVar& wakes, Mutex& mutex, nanoseconds at_most) {
                      Wait(wakes, mutex, at_most);
                    }}) {}
  ~JobUnderTest() { job_.Stop(); }

  BackgroundJob& job() { return job_; }
  SimEnv& env() { return env_; }

  // Returns when the job has begun `count` waits in all.
  void AwaitWaits(size_t count) {
    MutexLock lock(mutex_);
    while (waits_.size() < count) changed_.Wait(mutex_);
  }
  // Returns when the job is in a wait that Elapse has not ended.
  void AwaitWait() { AwaitWaits(ended_ + 1); }
  // Advances the clock by `time` while the job waits, and wakes the job.
  void Elapse(nanoseconds time) {
    AwaitWait();
    {
      MutexLock lock(mutex_);
      ended_ = waits_.size();
    }
    env_.AdvanceClock(time.count());
    job_.Wake();
  }
  nanoseconds last_wait() {
    MutexLock lock(mutex_);
    return waits_.back();
  }
  size_t waits() {
    MutexLock lock(mutex_);
    return waits_.size();
  }

 private:
  // Called with the job's mutex held.
  void Wait(CondVar& wakes, Mutex& mutex, nanoseconds at_most) SILTFS_NO_THREAD_SAFETY_ANALYSIS {
    {
      MutexLock lock(mutex_);
      waits_.push_back(at_most);
      changed_.NotifyAll();
    }
    wakes.Wait(mutex);
  }

  SimEnv env_;
  Mutex mutex_;  // taken after the job's mutex
  CondVar changed_;
  std::vector<nanoseconds> waits_ SILTFS_GUARDED_BY(mutex_);
  size_t ended_ = 0;  // used by the test's thread alone
  BackgroundJob job_;
};

// A flag that a thread can wait for.
class Flag {
 public:
  void Set() {
    MutexLock lock(mutex_);
    set_ = true;
    changed_.NotifyAll();
  }
  void Await() {
    MutexLock lock(mutex_);
    while (!set_) changed_.Wait(mutex_);
  }
  bool IsSet() {
    MutexLock lock(mutex_);
    return set_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ SILTFS_GUARDED_BY(mutex_) = false;
};

// Returns when `done` is true. For conditions that become true soon, without an event to wait for.
void AwaitSoon(const std::function<bool()>& done) {
  while (!done()) std::this_thread::yield();
}

// Gives other threads time to run. Tests use it to show that another thread waits. If that thread
// does not wait, as it should, the test may miss the error. But it never fails without an error.
void GiveWay() {
  for (int i = 0; i < 1000; ++i) sched_yield();
}

BackgroundJob::Loop LoopOf(std::function<nanoseconds()> work) {
  BackgroundJob::Loop loop;
  loop.poll = kPoll;
  loop.work = std::move(work);
  return loop;
}

}  // namespace

TEST_CASE(
    "a job's thread pauses before its first attempt, and then as long as the last attempt says") {
  JobUnderTest at;
  std::atomic<int> attempts = 0;
  at.job().Start(LoopOf([&] {
    ++attempts;
    return 3 * kPoll;
  }));
  at.AwaitWait();
  CHECK(at.last_wait() == kPoll);
  CHECK(attempts == 0);
  at.Elapse(kPoll);
  at.AwaitWait();
  CHECK(attempts == 1);
  for (int poll = 0; poll < 2; ++poll) {
    at.Elapse(kPoll);
    at.AwaitWait();
    CHECK(attempts == 1);
  }
  at.Elapse(kPoll);
  at.AwaitWait();
  CHECK(attempts == 2);
}

TEST_CASE("the thread of a job sleeps until there is work, and no wake-up is lost") {
  constexpr int kRounds = 2000;
  SimEnv env;
  std::atomic<int> added = 0;
  std::atomic<int> done = 0;
  Flag finished;
  BackgroundJob job(env, {.store = "/store", .interrupted = "interrupted"});
  BackgroundJob::Loop loop;
  loop.has_work = [&] { return added > done; };
  loop.work = [&] {
    ++done;
    return nanoseconds(0);
  };
  job.Start(loop);
  // Each round adds work at about the moment at which the thread finds none. A lost wake-up would
  // let the round wait for ever.
  for (int round = 1; round <= kRounds; ++round) {
    ++added;
    job.Wake();
    AwaitSoon([&] { return done == round; });
  }
  job.Stop();
  CHECK(done == kRounds);
}

TEST_CASE(
    "a background run ends for a caller, but a caller's run does not end for another caller") {
  JobUnderTest at;
  Flag begun;
  Status ended;
  at.job().Start(LoopOf([&] {
    const BackgroundJob::Run run(at.job(), BackgroundJob::Runner::kBackground);
    CHECK(at.job().in_background());
    CHECK(at.job().CheckRunning().ok());
    begun.Set();
    ended = at.job().RestUntil(
        INT64_MAX, [] { return true; }, kPoll);
    return kPoll;
  }));
  at.Elapse(kPoll);
  begun.Await();
  at.AwaitWait();
  {
    const BackgroundJob::Caller caller(at.job());
    const BackgroundJob::Run run(at.job(), BackgroundJob::Runner::kCaller);
    CHECK(ended.Is(StatusCode::kInterrupted));
    CHECK(ended.path() == "/store");
    CHECK_FALSE(at.job().in_background());
    CHECK(at.job().CheckRunning().ok());
    // Another caller does not end the run of the first one, even if it is urgent.
    const BackgroundJob::Caller other(at.job());
    CHECK(at.job().CheckRunning().ok());
    const BackgroundJob::Caller urgent(at.job(), BackgroundJob::Priority::kUrgent);
    CHECK(at.job().CheckRunning().ok());
  }
}

TEST_CASE("in_background is false for a caller that comes after a background run") {
  JobUnderTest at;
  at.job().Start(LoopOf([&] {
    const BackgroundJob::Run run(at.job(), BackgroundJob::Runner::kBackground);
    return kPoll;
  }));
  at.Elapse(kPoll);
  at.AwaitWait();
  const BackgroundJob::Caller caller(at.job());
  CHECK_FALSE(at.job().in_background());
  CHECK(at.job().CheckRunning().ok());
}

TEST_CASE("the background thread does not begin while there is a caller") {
  const auto priority =
      GENERATE(BackgroundJob::Priority::kNormal, BackgroundJob::Priority::kUrgent);
  JobUnderTest at;
  std::atomic<int> attempts = 0;
  at.job().Start(LoopOf([&] {
    ++attempts;
    return nanoseconds(0);
  }));
  at.AwaitWait();
  {
    const BackgroundJob::Caller caller(at.job(), priority);
    at.AwaitWaits(2);  // `caller` woke the thread
    at.Elapse(kPoll);
    at.AwaitWait();
    CHECK(attempts == 0);
  }
  AwaitSoon([&] { return attempts > 0; });
}

TEST_CASE("a rest that is woken too early goes on until its time has come") {
  JobUnderTest at;
  const int64_t end = at.env().MonotonicNanoseconds() + (3 * kPoll).count();
  std::atomic<bool> quiet = false;
  std::optional<Status> rested;
  std::thread resting([&] {
    const BackgroundJob::Run run(at.job(), BackgroundJob::Runner::kCaller);
    rested = at.job().RestUntil(
        end, [&] { return quiet.load(); }, kPoll);
  });
  at.AwaitWait();
  CHECK(at.last_wait() == 3 * kPoll);
  at.Elapse(kPoll);
  at.AwaitWait();
  CHECK(at.last_wait() == 2 * kPoll);
  at.Elapse(2 * kPoll);
  at.AwaitWait();
  CHECK(at.last_wait() == kPoll);  // the rest polls until `quiet` is true
  quiet = true;
  at.Elapse(kPoll);
  resting.join();
  REQUIRE(rested.has_value());
  CHECK(rested->ok());
}

TEST_CASE("an interruption ends the runs of all callers, also of one that has not begun its run") {
  JobUnderTest at;
  BackgroundJob& job = at.job();
  job.Interrupt();  // there is no caller: it does nothing
  CHECK(job.CheckRunning().ok());
  {
    const BackgroundJob::Caller first(job);
    const BackgroundJob::Caller second(job);
    CHECK(job.CheckRunning().ok());
    job.Interrupt();
    // Another caller that arrives now does not cancel the interruption.
    const BackgroundJob::Caller joining(job);
    for (int run = 0; run < 3; ++run) {
      const BackgroundJob::Run begun(job, BackgroundJob::Runner::kCaller);
      CHECK(job.CheckRunning().Is(StatusCode::kInterrupted));
      job.Rest(kPoll);  // returns at once
    }
    CHECK(at.waits() == 0);
  }
  const BackgroundJob::Caller later(job);
  CHECK(job.CheckRunning().ok());
}

TEST_CASE("an interruption wakes a caller that rests") {
  JobUnderTest at;
  Status rested;
  std::thread resting([&] {
    const BackgroundJob::Caller caller(at.job());
    const BackgroundJob::Run run(at.job(), BackgroundJob::Runner::kCaller);
    rested = at.job().RestUntil(
        INT64_MAX, [] { return true; }, kPoll);
  });
  at.AwaitWait();
  at.job().Interrupt();
  resting.join();
  CHECK(rested.Is(StatusCode::kInterrupted));
}

TEST_CASE("other runs make way for an urgent caller") {
  JobUnderTest at;
  std::optional<BackgroundJob::Caller> urgent;
  urgent.emplace(at.job(), BackgroundJob::Priority::kUrgent);
  Flag arrived;
  Flag began;
  std::thread other([&] {
    arrived.Set();
    at.job().MakeWay();
    began.Set();
  });
  arrived.Await();
  GiveWay();  // if MakeWay did not wait, it would return now
  CHECK_FALSE(began.IsSet());
  urgent.reset();
  began.Await();
  other.join();
}

TEST_CASE("stop ends a resting run, and no other begins") {
  JobUnderTest at;
  Status ended;
  at.job().Start(LoopOf([&] {
    const BackgroundJob::Run run(at.job(), BackgroundJob::Runner::kBackground);
    ended = at.job().RestUntil(
        INT64_MAX, [] { return true; }, kPoll);
    return nanoseconds(0);
  }));
  at.Elapse(kPoll);
  at.AwaitWait();
  at.job().Stop();
  CHECK(ended.Is(StatusCode::kInterrupted));
  at.job().Stop();
  const size_t waits = at.waits();
  const BackgroundJob::Caller caller(at.job());
  CHECK(at.job().CheckRunning().Is(StatusCode::kInterrupted));
  at.job().Rest(kPoll);
  CHECK(at.waits() == waits);
}

TEST_CASE("a stop waits for the thread, also if another stop began before") {
  constexpr int kStops = 3;
  JobUnderTest at;
  Flag working;
  Flag go_on;
  std::atomic<bool> worked = false;
  at.job().Start(LoopOf([&] {
    working.Set();
    go_on.Await();  // there is no Run, so Stop must wait for the thread's end
    worked = true;
    return nanoseconds(0);
  }));
  at.Elapse(kPoll);
  working.Await();
  std::atomic<int> stopping = 0;
  std::atomic<int> too_early = 0;
  std::vector<std::thread> stops;
  for (int i = 0; i < kStops; ++i) {
    stops.emplace_back([&] {
      ++stopping;
      at.job().Stop();
      if (!worked) ++too_early;
    });
  }
  AwaitSoon([&] { return stopping == kStops; });
  GiveWay();  // a Stop that did not wait would return now
  go_on.Set();
  for (std::thread& stop : stops) stop.join();
  CHECK(too_early == 0);
}

TEST_CASE("a stop waits for the run of a caller") {
  JobUnderTest at;
  Flag running;
  std::atomic<bool> ended = false;
  std::thread caller([&] {
    const BackgroundJob::Caller call(at.job());
    const BackgroundJob::Run run(at.job(), BackgroundJob::Runner::kCaller);
    running.Set();
    AwaitSoon([&] { return !at.job().CheckRunning().ok(); });
    ended = true;
  });
  running.Await();
  at.job().Stop();
  CHECK(ended);
  caller.join();
}

TEST_CASE("a stop during the start leaves no thread") {
  for (int round = 0; round < 300; ++round) {
    SimEnv env;
    BackgroundJob job(env, {.store = "/store", .interrupted = "interrupted"});
    std::atomic<int> ready = 0;
    const auto together = [&ready] {
      ++ready;
      while (ready < 2) std::this_thread::yield();
    };
    std::atomic<bool> started = false;
    BackgroundJob::Loop loop;
    // The job's thread holds a copy of the loop as long as it exists.
    const auto held = std::make_shared<int>(0);
    loop.work = [held] { return nanoseconds(0); };
    std::thread starting([&] {
      together();
      job.Start(std::move(loop));
      started = true;
    });
    together();
    job.Stop();
    starting.join();
    CHECK(started);
    // Whether the start came before the stop or after it, there is no thread now.
    CHECK(held.use_count() == 1);
  }
}

TEST_CASE("a start after a stop makes no thread") {
  SimEnv env;
  BackgroundJob job(env, {.store = "/store", .interrupted = "interrupted"});
  job.Stop();
  // The job's thread would hold a copy of the loop until it is joined.
  const auto held = std::make_shared<int>(0);
  BackgroundJob::Loop loop;
  loop.work = [held] { return nanoseconds(0); };
  job.Start(std::move(loop));
  CHECK(held.use_count() == 1);
}

}  // namespace siltfs::testing
