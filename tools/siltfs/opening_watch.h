// Reports how far the opening of a store is, while a daemon starts.
//
// Thread-safety: one thread makes and destroys it; `report` runs on a thread of its own.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "store/base/progress_meter.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// Reports the work of the opening at intervals, while it exists.
class OpeningWatch {
 public:
  explicit OpeningWatch(const std::function<void(const WorkProgress&)>& report)
      : report_(report), thread_([this] { Run(); }) {}
  ~OpeningWatch() {
    {
      const MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  OpeningWatch(const OpeningWatch&) = delete;
  OpeningWatch& operator=(const OpeningWatch&) = delete;

  ProgressMeter& meter() { return meter_; }

 private:
  static constexpr std::chrono::milliseconds kInterval{250};

  void Run() SILTFS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (!ended_) {
      changed_.WaitFor(mutex_, kInterval);
      if (!ended_ && report_) report_(meter_.Now());
    }
  }

  const std::function<void(const WorkProgress&)>& report_;  // may be empty
  ProgressMeter meter_;
  Mutex mutex_;  // held while report_ runs
  CondVar changed_;
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace siltfs
