#include "fs/inodes/operation_gate.h"

namespace siltfs {

Result<OperationGate::Pass> OperationGate::Enter() {
  for (;;) {
    ++passes_;
    if (!closed_) return Pass(*this);
    Leave();
    const MutexLock lock(mutex_);
    while (has_closure_) opened_.Wait(mutex_);
    SILTFS_RETURN_IF_ERROR(broken_);
  }
}

void OperationGate::Leave() {
  if (--passes_ > 0 || !closed_) return;
  const MutexLock lock(mutex_);
  left_.NotifyAll();
}

Result<std::optional<OperationGate::Closure>> OperationGate::Close(
    std::chrono::nanoseconds patience) {
  const MutexLock lock(mutex_);
  while (has_closure_) opened_.Wait(mutex_);
  const auto end = std::chrono::steady_clock::now() + patience;
  SILTFS_RETURN_IF_ERROR(broken_);
  has_closure_ = true;
  closed_ = true;
  while (passes_ > 0) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) {
      has_closure_ = false;
      closed_ = false;
      opened_.NotifyAll();
      return std::optional<Closure>();
    }
    left_.WaitFor(mutex_, left);
  }
  return std::optional<Closure>(std::in_place, *this);
}

void OperationGate::Open() {
  const MutexLock lock(mutex_);
  has_closure_ = false;
  closed_ = !broken_.ok();
  opened_.NotifyAll();
}

void OperationGate::Break(const Status& why) {
  const MutexLock lock(mutex_);
  broken_ = why;
  closed_ = true;
}

bool OperationGate::broken() const {
  const MutexLock lock(mutex_);
  return !broken_.ok();
}

}  // namespace siltfs
