#include "fs/control/interruptible_handler.h"

#include <chrono>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "store/base/thread_annotations.h"

namespace siltfs::control {
namespace {

constexpr std::chrono::milliseconds kInterval{50};

using Check = std::function<Status()>;

}  // namespace

class Interruption {
 public:
  explicit Interruption(std::function<void()> interrupt) : interrupt_(std::move(interrupt)) {}

  // Adds a call, which is wanted. Fails if its client no longer wants the answer.
  Status Enter(const Check& check) SILTFS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    // The work of an interrupted call would make this call's work end, too.
    while (interrupted_) {
      SILTFS_RETURN_IF_ERROR(check());
      changed_.WaitFor(mutex_, kInterval);
    }
    ++calls_;
    return Status::Ok();
  }
  void Leave(bool unwanted) SILTFS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (unwanted) --unwanted_;
    if (--calls_ == 0) interrupted_ = false;
    changed_.NotifyAll();
  }

  // Watches over one call until `ended` is true, which changes with the mutex held. Sets `unwanted`
  // once the client no longer wants the answer.
  void Watch(const Check& check, const bool& ended, bool& unwanted) SILTFS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (!ended) {
      changed_.WaitFor(mutex_, kInterval);
      if (!ended) Look(check, unwanted);
    }
  }
  void End(bool& ended) SILTFS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ended = true;
    changed_.NotifyAll();
  }

 private:
  void Look(const Check& check, bool& unwanted) SILTFS_REQUIRES(mutex_) {
    if (!unwanted) {
      const Status wanted = check();
      if (wanted.ok()) return;
      wanted.IgnoreError("the work returns its own error");
      unwanted = true;
      ++unwanted_;
    }
    if (unwanted_ < calls_) return;
    interrupted_ = true;
    interrupt_();
  }

  const std::function<void()> interrupt_;
  Mutex mutex_;  // held while interrupt_ and the checks run
  CondVar changed_;
  size_t calls_ SILTFS_GUARDED_BY(mutex_) = 0;          // that run
  size_t unwanted_ SILTFS_GUARDED_BY(mutex_) = 0;       // of them
  bool interrupted_ SILTFS_GUARDED_BY(mutex_) = false;  // until all of them have ended
};

namespace {

// A call that has entered the interruption, and the thread that watches over it.
class WatchedCall {
 public:
  // May throw std::system_error.
  WatchedCall(Interruption& interruption, const Check& check)
      : interruption_(interruption),
        thread_([this, &check] { interruption_.Watch(check, ended_, unwanted_); }) {}
  ~WatchedCall() {
    interruption_.End(ended_);
    thread_.join();
    interruption_.Leave(unwanted_);
  }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

 private:
  Interruption& interruption_;
  bool ended_ = false;     // guarded by the interruption's mutex
  bool unwanted_ = false;  // as well
  std::thread thread_;
};

}  // namespace

std::shared_ptr<Interruption> MakeInterruption(std::function<void()> interrupt) {
  return std::make_shared<Interruption>(std::move(interrupt));
}

HandlerWithArguments Interruptible(Handler work, std::shared_ptr<Interruption> interruption) {
  return [work = std::move(work), interruption = std::move(interruption)](
             const nlohmann::json&, const Check& check) -> Result<nlohmann::json> {
    SILTFS_RETURN_IF_ERROR(interruption->Enter(check));
    std::optional<WatchedCall> call;
    try {
      call.emplace(*interruption, check);
    } catch (const std::system_error&) {
      interruption->Leave(/*unwanted=*/false);
      return Status(StatusCode::kIoError,
                    "no thread is available for the command; try again later");
    }
    return work();
  };
}

}  // namespace siltfs::control
