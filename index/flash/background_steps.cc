#include "index/flash/background_steps.h"

#include <utility>

namespace siltfs {
namespace {

Status Copy(const Status& status) {
  Status copy = status;
  copy.IgnoreError("a copy; the caller gets it");
  return copy;
}

}  // namespace

BackgroundSteps::BackgroundSteps(bool background, Step step)
    : background_(background), step_(std::move(step)) {
  if (background_) {
    thread_ = std::thread([this] { Run(); });
  }
}

void BackgroundSteps::Stop() {
  BeginStop();
  NotifyWaiting();
  if (thread_.joinable()) thread_.join();
}

void BackgroundSteps::Wake() {
  MutexLock lock(mutex_);
  ++wakes_;
  changed_.NotifyAll();
}

void BackgroundSteps::NotifyWaiting() {
  MutexLock lock(mutex_);
  changed_.NotifyAll();
}

Status BackgroundSteps::failure() const {
  MutexLock lock(mutex_);
  return last_.ok() || last_.Is(StatusCode::kNoSpace) ? Status::Ok() : Copy(last_);
}

void BackgroundSteps::Run() {
  uint64_t seen = 0;
  while (!stopping_) {
    {
      MutexLock lock(mutex_);
      stepping_ = true;
    }
    auto stepped = step_();
    MutexLock lock(mutex_);
    stepping_ = false;
    ++steps_;
    const bool more = stepped.ok() && *stepped;
    last_ = stepped.ok() ? Status::Ok() : std::move(stepped).status();
    last_.IgnoreError("WaitUntil and failure() report it");
    changed_.NotifyAll();
    if (!last_.ok() && !last_.Is(StatusCode::kNoSpace)) return;
    if (more) continue;
    while (wakes_ == seen && !stopping_) changed_.Wait(mutex_);
    seen = wakes_;
  }
}

Status BackgroundSteps::RunAll() {
  for (;;) {
    SILTFS_ASSIGN_OR_RETURN(const bool worked, step_());
    if (!worked) return Status::Ok();
  }
}

Status BackgroundSteps::WaitUntil(const std::function<bool()>& done,
                                  const std::function<void()>& request) {
  if (!background_) {
    if (request) request();
    while (!done()) SILTFS_RETURN_IF_ERROR(step_().status());
    return Status::Ok();
  }
  MutexLock lock(mutex_);
  if (request) request();
  // A full disk may have room again, so the thread must retry.
  ++wakes_;
  changed_.NotifyAll();
  // A step that has begun may fail for a reason that has gone since, such as a full disk. Only a
  // step that begins later can serve the request.
  const uint64_t before = steps_ + (stepping_ ? 1 : 0);
  while (!done()) {
    const bool tried = steps_ > before;
    if (!last_.ok() && (tried || !last_.Is(StatusCode::kNoSpace))) return Copy(last_);
    if (stopping_) return {StatusCode::kIoError, "the index is being closed"};
    changed_.Wait(mutex_);
  }
  return Status::Ok();
}

}  // namespace siltfs
