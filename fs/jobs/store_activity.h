// Records when the store was last used. Background maintenance waits while the store is in use.
//
// Thread-safety: every call from any thread. No errors.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "store/env/env.h"

namespace siltfs {

class StoreActivity {
 public:
  // The store counts as quiet if it was not used for the time `quiet`. Its opening counts as a use.
  // `env` must outlive the object.
  StoreActivity(Env& env, std::chrono::nanoseconds quiet)
      : env_(env), quiet_(quiet), last_use_(env.MonotonicNanoseconds()) {}

  // Call it when chunks are put or files are read.
  void NoteUse() { last_use_ = env_.MonotonicNanoseconds(); }
  bool IsQuiet() const {
    // Read the clock first. Otherwise a use after last_use_ was read would be missed, and the time
    // until the clock is read would count as quiet.
    const int64_t now = env_.MonotonicNanoseconds();
    return now - last_use_ >= quiet_.count();
  }
  std::chrono::nanoseconds quiet() const { return quiet_; }

 private:
  Env& env_;
  const std::chrono::nanoseconds quiet_;
  std::atomic<int64_t> last_use_;
};

}  // namespace siltfs
