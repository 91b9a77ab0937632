#include "fs/control/interruptible_handler.h"

#include <chrono>
#include <thread>
#include <utility>

#include "store/base/thread_annotations.h"

namespace siltfs::control {
namespace {

constexpr std::chrono::milliseconds kInterval{50};

// Calls `interrupt` at intervals while `check` fails.
class Watch {
 public:
  Watch(const std::function<Status()>& check, const std::function<void()>& interrupt)
      : check_(check), interrupt_(interrupt), thread_([this] { Run(); }) {}
  ~Watch() {
    {
      const MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void Run() SILTFS_EXCLUDES(mutex_) {
    while (!Ended()) {
      const Status wanted = check_();
      if (wanted.ok()) continue;
      wanted.IgnoreError("the work returns its own error");
      interrupt_();
    }
  }
  bool Ended() SILTFS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!ended_) changed_.WaitFor(mutex_, kInterval);
    return ended_;
  }

  const std::function<Status()>& check_;
  const std::function<void()>& interrupt_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

HandlerWithArguments Interruptible(Handler work, std::function<void()> interrupt) {
  return [work = std::move(work), interrupt = std::move(interrupt)](
             const nlohmann::json&, const std::function<Status()>& check) {
    const Watch watch(check, interrupt);
    return work();
  };
}

}  // namespace siltfs::control
