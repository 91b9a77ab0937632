// A gate that threads enter and leave. A thread can wait until all threads that were inside when
// the wait began have left. During the wait, other threads may enter.
//
// Thread-safety: every call from any thread; a waiting thread must not be inside. Entering and
// leaving costs two atomic operations. No errors.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "store/base/thread_annotations.h"

namespace siltfs {

class EpochGate {
 public:
  // The owner of a Pin is inside the gate as long as the Pin exists.
  class Pin {
   public:
    explicit Pin(EpochGate& gate) : gate_(gate), side_(gate.Enter()) {}
    ~Pin() { gate_.Leave(side_); }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

   private:
    EpochGate& gate_;
    const size_t side_;
  };

  // Returns when all threads that entered before the call have left. During the wait, other threads
  // may enter and leave.
  void WaitForOthers() SILTFS_EXCLUDES(turn_, mutex_);

 private:
  size_t Enter();
  void Leave(size_t side) SILTFS_EXCLUDES(mutex_);

  std::atomic<uint64_t> epoch_{0};
  // The number of threads inside, by the parity of the epoch in which they entered.
  std::array<std::atomic<int64_t>, 2> inside_{};
  std::atomic<bool> waiting_{false};

  Mutex turn_ SILTFS_ACQUIRED_BEFORE(mutex_);  // one thread waits at a time
  Mutex mutex_;
  CondVar left_;
};

}  // namespace siltfs
