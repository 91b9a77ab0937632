// Polls whether the user wants an end, while another thread waits for requests.
//
// Thread-safety: one thread makes and destroys it; the functions run on a thread of its own.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "store/base/thread_annotations.h"

namespace siltfs {

class InterruptionPoll {
 public:
  // Calls `action` once, when `interrupted` returns true for the first time.
  InterruptionPoll(std::function<bool()> interrupted, std::function<void()> action)
      : interrupted_(std::move(interrupted)),
        action_(std::move(action)),
        thread_([this] { Run(); }) {}
  ~InterruptionPoll() {
    {
      const MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  InterruptionPoll(const InterruptionPoll&) = delete;
  InterruptionPoll& operator=(const InterruptionPoll&) = delete;

 private:
  static constexpr std::chrono::milliseconds kInterval{50};

  void Run() SILTFS_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      while (!ended_ && !interrupted_()) changed_.WaitFor(mutex_, kInterval);
      if (ended_) return;
    }
    action_();
  }

  const std::function<bool()> interrupted_;
  const std::function<void()> action_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace siltfs
