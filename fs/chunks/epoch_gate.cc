#include "fs/chunks/epoch_gate.h"

namespace siltfs {

// If the epoch is unchanged after a thread has counted itself, the thread was counted before the
// next epoch began. So the next WaitForOthers waits for this thread. All accesses are sequentially
// consistent.
size_t EpochGate::Enter() {
  for (;;) {
    const uint64_t epoch = epoch_;
    const size_t side = epoch & 1;
    ++inside_[side];
    if (epoch_ == epoch) return side;
    Leave(side);
  }
}

void EpochGate::Leave(size_t side) {
  if (--inside_[side] > 0 || !waiting_) return;
  MutexLock lock(mutex_);
  left_.NotifyAll();
}

void EpochGate::WaitForOthers() {
  MutexLock turn(turn_);
  waiting_ = true;
  const size_t side = epoch_++ & 1;
  {
    MutexLock lock(mutex_);
    while (inside_[side] > 0) left_.Wait(mutex_);
  }
  waiting_ = false;
}

}  // namespace siltfs
