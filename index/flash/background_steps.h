// Background work that is done in steps, mostly by a thread of its own. The thread runs steps as
// long as there is work, and then waits until it is woken. Other threads can wait until steps have
// worked.
//
// Errors: after a step that failed with kNoSpace, the thread waits until it is woken, and tries
// again. Any other failure is permanent and ends the thread.
//
// Without a thread, which tests use to fix the order of device calls, the caller runs the steps in
// RunAll and WaitUntil.
//
// Thread-safety: any. Steps run one at a time, if there is a thread or the callers of RunAll and
// WaitUntil take turns. What the step uses must outlive this object.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class BackgroundSteps {
 public:
  // Does one piece of work. Returns false if there is none.
  using Step = std::function<Result<bool>()>;

  // background: the steps have a thread, which this call starts.
  BackgroundSteps(bool background, Step step);
  ~BackgroundSteps() { Stop(); }

  // Runs steps until there is no work. Only without a thread.
  Status RunAll();
  // Wakes the thread. Without a thread, the call does nothing.
  void Wake();
  // Lets all calls of WaitUntil test their conditions again, as at the end of each step. The step
  // calls it if it has done a part of its work.
  void NotifyWaiting();
  // Calls `request`, which may be empty, wakes the thread, and waits until `done` returns true. No
  // step ends during `request`. Both functions may take locks, but must not call this object.
  // Fails as the last step did, if that failure is permanent, or if the step began after
  // `request`. Without a
  // thread, the call runs steps until `done` returns true; so `done` must become true with the
  // work.
  Status WaitUntil(const std::function<bool()>& done, const std::function<void()>& request = {});
  // The permanent failure, if any. Without a thread always Ok, because the caller has the failure.
  Status failure() const;

  // Ends the thread permanently after the present step. A step can use stopping() to end early.
  // Calls of WaitUntil fail.
  void Stop();
  // Lets stopping() be true, and does not wait for the present step. Call Stop afterwards.
  void BeginStop() { stopping_ = true; }
  bool stopping() const { return stopping_; }

 private:
  void Run();

  const bool background_;
  const Step step_;
  std::atomic<bool> stopping_{false};

  mutable Mutex mutex_;  // only the locks that `done` and `request` take are taken under it
  CondVar changed_;
  uint64_t wakes_ SILTFS_GUARDED_BY(mutex_) = 0;
  // Ended steps, including failed ones.
  uint64_t steps_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool stepping_ SILTFS_GUARDED_BY(mutex_) = false;  // a step has begun and not ended
  Status last_ SILTFS_GUARDED_BY(mutex_);            // how the last step ended
  std::thread thread_;
};

}  // namespace siltfs
