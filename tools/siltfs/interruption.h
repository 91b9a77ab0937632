// The interruption of a long command by a signal.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "store/base/thread_annotations.h"
#include "store/env/process.h"

namespace siltfs {

// Runs an action when a signal asks this process to end. Repeats the action until OnRequest
// replaces it, because the operation that the action interrupts may not have begun yet.
//
// Thread-safety: one thread constructs it and calls OnRequest; any thread may call requested().
class Interruption {
 public:
  explicit Interruption(TerminationSignals& signals)
      : signals_(signals), thread_([this] { Run(); }) {}
  ~Interruption() {
    {
      MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    signals_.Cancel();
    thread_.join();
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  bool requested() const { return requested_; }
  // Replaces the action; an empty one does nothing. Returns when the previous action no longer
  // runs.
  void OnRequest(std::function<void()> action) {
    MutexLock lock(mutex_);
    action_ = std::move(action);
    changed_.NotifyAll();
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{50};

  void Run() {
    if (!signals_.Wait()) return;
    requested_ = true;
    MutexLock lock(mutex_);
    while (!ended_) {
      if (action_) action_();
      changed_.WaitFor(mutex_, kInterval);
    }
  }

  TerminationSignals& signals_;
  std::atomic<bool> requested_{false};
  Mutex mutex_;  // held while the action runs
  CondVar changed_;
  std::function<void()> action_ SILTFS_GUARDED_BY(mutex_);
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace siltfs
