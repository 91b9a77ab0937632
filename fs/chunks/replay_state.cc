#include "fs/chunks/replay_state.h"

namespace siltfs {

void ReplayState::Begin(uint64_t segments) {
  MutexLock lock(mutex_);
  progress_ = {.running = true, .done = 0, .total = segments};
}

void ReplayState::NoteSegmentDone() {
  MutexLock lock(mutex_);
  ++progress_.done;
}

void ReplayState::End(const Status& outcome) {
  MutexLock lock(mutex_);
  progress_.running = false;
  outcome_ = outcome;
  outcome_.IgnoreError("Wait returns it");
  ended_.NotifyAll();
}

Status ReplayState::Wait() {
  return WaitUnless([] { return false; });
}

Status ReplayState::WaitUnless(const std::function<bool()>& interrupted) {
  MutexLock lock(mutex_);
  while (progress_.running) {
    if (interrupted()) return Status(StatusCode::kInterrupted, "the wait for the index has ended");
    ended_.Wait(mutex_);
  }
  return outcome_;
}

void ReplayState::WakeWaits() {
  MutexLock lock(mutex_);
  ended_.NotifyAll();
}

ReplayState::Progress ReplayState::progress() const {
  MutexLock lock(mutex_);
  return progress_;
}

}  // namespace siltfs
