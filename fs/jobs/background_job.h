// The thread and the running state of a maintenance job: recompression, garbage collection, scrub.
//
// A job has *runs*, one at a time. A run is made by a thread that calls the job, or by the job's
// background thread. Background runs yield: when a thread calls the job, they end soon, so that the
// caller does not wait for their pauses. Runs of callers end early only after Interrupt or Stop.
//
// Thread-safety: every call from any thread, except where stated. Lock order: the run mutex, then
// the job's own mutex, then the locks that Loop::has_work takes. Errors: CheckRunning and RestUntil
// return kInterrupted when the current run must end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "store/base/status.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"

namespace siltfs {

class BackgroundJob {
 public:
  // How a thread of the job waits: for `at_most`, or until `wakes` is notified. Called with `mutex`
  // held, as a condition variable requires.
  using Wait = std::function<void(CondVar& wakes, Mutex& mutex, std::chrono::nanoseconds at_most)>;
  struct Options {
    std::string store;        // path, for errors
    std::string interrupted;  // the sentence of kInterrupted
    Wait wait = {};           // empty: waits in real time. Tests set it, to wait by Env's clock
  };
  // `env` must outlive the job.
  BackgroundJob(Env& env, Options options);
  ~BackgroundJob();  // stops

  // --- The background thread

  struct Loop {
    // While has_work returns false, the thread sleeps until Wake. The thread calls has_work with
    // the job's mutex held. If has_work is empty, the job counts as having work at any time.
    std::function<bool()> has_work = {};
    std::chrono::nanoseconds poll{0};  // the pause before each `work`
    // Makes a run, if it is time for one. Returns the least pause before the next call. The thread
    // does not begin a call while a Caller exists.
    std::function<std::chrono::nanoseconds()> work;
  };
  // Starts the thread. Does nothing if the thread was started before, or after Stop.
  void Start(Loop loop) SILTFS_EXCLUDES(thread_mutex_, mutex_);
  // Call it after has_work may have become true.
  void Wake() SILTFS_EXCLUDES(mutex_);
  // Permanently stops the job: the thread and all runs end soon. When Stop returns, the thread has
  // ended and there is no run. This also holds for concurrent calls of Stop. A thread that makes a
  // run must not call it.
  void Stop() SILTFS_EXCLUDES(thread_mutex_, run_mutex_, mutex_);

  // --- Callers

  enum class Priority : uint8_t {
    kNormal,
    kUrgent,  // MakeWay waits until no such Caller exists
  };
  // Exists while a thread calls the job. While it exists, a background run must end, and the
  // background thread begins no other.
  class Caller {
   public:
    explicit Caller(BackgroundJob& job, Priority priority = Priority::kNormal);
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    BackgroundJob& job_;
    const Priority priority_;
  };
  // Makes the runs of all Callers that exist now end with kInterrupted, including runs that have
  // not begun yet. New Callers are interrupted, too, until no Caller of normal priority is left.
  // Does nothing if there is no Caller of normal priority now.
  void Interrupt() SILTFS_EXCLUDES(mutex_);

  // --- Runs

  enum class Runner : uint8_t { kCaller, kBackground };
  // Exists during a run. The constructor waits until other runs have ended.
  class SILTFS_SCOPED_CAPABILITY Run {
   public:
    Run(BackgroundJob& job, Runner runner) SILTFS_ACQUIRE(job.run_mutex());
    ~Run() SILTFS_RELEASE();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    BackgroundJob& job_;
  };
  // Use it in thread-safety annotations of data that is accessed only while a Run exists.
  Mutex& run_mutex() SILTFS_RETURN_CAPABILITY(run_mutex_) { return run_mutex_; }
  bool in_background() const { return runner_ == Runner::kBackground; }
  // Whether there is a run now. Needs no lock.
  bool running() const { return running_; }

  // kInterrupted if the current run must end. If the job has no background thread, a thread that
  // has a Caller may also call this function outside of runs.
  Status CheckRunning() SILTFS_EXCLUDES(mutex_);
  // Waits for `time`, or until the run must end. May return early.
  void Rest(std::chrono::nanoseconds time) SILTFS_EXCLUDES(mutex_);
  // Waits until Env's monotonic clock has reached `time`, and then until `may_continue` returns
  // true. Calls `may_continue` every `poll`, with the job's mutex held.
  Status RestUntil(int64_t time, const std::function<bool()>& may_continue,
                   std::chrono::nanoseconds poll) SILTFS_EXCLUDES(mutex_);
  // Returns when no urgent Caller exists. Call it before making a Run: the run mutex is not fair,
  // and a thread that has just released it usually gets it again before an urgent Caller.
  void MakeWay() SILTFS_EXCLUDES(mutex_);

  // Runs `work` on a thread that gets processor time only when no other thread wants it, and
  // returns when `work` has returned. `work` must not hold locks that other threads wait for. If
  // the machine has no thread to spare, `work` runs on the calling thread.
  static void RunOnIdleThread(const std::function<void()>& work);

 private:
  void ThreadMain(const Loop& loop);
  void Enter(Priority priority) SILTFS_EXCLUDES(mutex_);
  void Leave(Priority priority) SILTFS_EXCLUDES(mutex_);
  bool MustYield() const SILTFS_REQUIRES(mutex_) { return callers_ > 0 || urgent_ > 0; }
  // Whether the current run must end.
  bool MustEnd() const SILTFS_REQUIRES(mutex_) {
    return stopping_ || (in_background() ? MustYield() : interrupted_);
  }
  Status Interrupted() const;
  void WaitAtMost(std::chrono::nanoseconds time) SILTFS_REQUIRES(mutex_);

  Env& env_;
  const Options options_;

  // Held while the thread is started and joined. A second Stop waits for the first one's join.
  Mutex thread_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);
  std::thread thread_ SILTFS_GUARDED_BY(thread_mutex_);

  Mutex run_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);  // held during a run, also during I/O
  std::atomic<Runner> runner_{Runner::kCaller};     // of the current run
  std::atomic<bool> running_{false};

  Mutex mutex_;
  CondVar wakes_;
  int callers_ SILTFS_GUARDED_BY(mutex_) = 0;           // of normal priority
  int urgent_ SILTFS_GUARDED_BY(mutex_) = 0;            // of urgent priority
  bool interrupted_ SILTFS_GUARDED_BY(mutex_) = false;  // applies to all of callers_
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs
