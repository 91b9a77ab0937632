// The progress of an import or export on standard error.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "store/base/thread_annotations.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/progress_display.h"

namespace siltfs {

// Shows the number of files that are done, from a thread of its own.
class TransferProgress {
 public:
  // `command`: "import" or "export".
  TransferProgress(Surroundings& surroundings, std::string command, std::string target,
                   const std::atomic<uint64_t>& files)
      : display_(surroundings, {.command = std::move(command),
                                .subject = std::move(target),
                                .quiet = false,
                                .descriptor = {}}),
        files_(files),
        thread_([this] { Run(); }) {}
  ~TransferProgress() {
    {
      const MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
    display_.Clear();
  }
  TransferProgress(const TransferProgress&) = delete;
  TransferProgress& operator=(const TransferProgress&) = delete;

  // Keeps the display away while the caller prints.
  void Print(const std::function<void()>& print) {
    const MutexLock lock(mutex_);
    display_.Clear();
    print();
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{250};

  void Run() {
    const MutexLock lock(mutex_);
    while (!ended_) {
      changed_.WaitFor(mutex_, kInterval);
      if (!ended_) display_.Show({.number = 1, .name = "files", .done = files_}, false);
    }
  }

  ProgressDisplay display_;
  const std::atomic<uint64_t>& files_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace siltfs
