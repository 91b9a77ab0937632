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
  MutexLock lock(mutex_);
  while (progress_.running) ended_.Wait(mutex_);
  return outcome_;
}

ReplayState::Progress ReplayState::progress() const {
  MutexLock lock(mutex_);
  return progress_;
}

}  // namespace siltfs
