// Lets the writers of one file in one at a time, those of a stream in the order of its bytes.
//
// A program that writes a file from its beginning to its end arrives here as many writes at once:
// the kernel gathers them and sends a megabyte each to whichever thread is free, and threads
// overtake each other. Cut in the order in which they happen to come, the stream would have to wait
// in pieces, plain. So of those that wait the one goes next that continues the last; and while a
// stream goes on, one that lies a little ahead waits a moment for the one before it, which a thread
// may have in its hands. When that was in vain there is no stream, and nobody waits for gaps until
// there is one again: a longer one each time, up to a limit, until a gap is filled, so that a
// program that leaves gaps on purpose does not wait at each of them. And nobody is overtaken for
// ever: whoever saw enough others go is the next.
//
// Thread-safety: every call from any thread. It orders, and promises no more: writes that do not
// form a stream come in some order, as those of several programs do.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>

#include "store/base/thread_annotations.h"

namespace siltfs {

class WriteTurns {
 public:
  // `patience`: how long a write waits for the one before it. A thread that was told to run and has
  // not come by then won't soon.
  explicit WriteTurns(std::chrono::nanoseconds patience = std::chrono::milliseconds(2))
      : patience_(patience), stream_(kShortStream) {}

  // Returns when it is the turn of a write of [offset, offset + length).
  void Begin(uint64_t offset, uint64_t length) SILTFS_EXCLUDES(mutex_);
  void End() SILTFS_EXCLUDES(mutex_);

  // How many wait in Begin.
  size_t waiting() const SILTFS_EXCLUDES(mutex_);
  // How often a write waited for one before it that did not come.
  uint64_t waited_in_vain() const SILTFS_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  // What counts as a stream: so many in a row; more after each gap that nobody filled.
  static constexpr uint32_t kShortStream = 3;
  static constexpr uint32_t kLongStream = 512;

  struct Waiter {
    uint64_t offset = 0;
    uint64_t came = 0;  // how many had gone before
    bool go = false;
    // Until when it waits for a gap to be filled, if it would be the next.
    std::optional<Clock::time_point> deadline = {};
    CondVar told = {};
  };
  using Waiters = std::list<Waiter*>;  // in the order in which they came

  // Whether a write there is likely to come after one that is missing.
  bool LiesAhead(uint64_t offset) const SILTFS_REQUIRES(mutex_);
  // The one to go next if there is no reason to wait.
  Waiters::iterator Next() SILTFS_REQUIRES(mutex_);
  // Whether others have gone before the one that waits longest for long enough.
  bool FirstIsDue() const SILTFS_REQUIRES(mutex_);
  void LetNextGo() SILTFS_REQUIRES(mutex_);
  void Enter(uint64_t offset, uint64_t length) SILTFS_REQUIRES(mutex_);

  const std::chrono::nanoseconds patience_;
  mutable Mutex mutex_;
  bool busy_ SILTFS_GUARDED_BY(mutex_) = false;
  uint64_t end_ SILTFS_GUARDED_BY(mutex_) = 0;     // of the last that went
  uint32_t in_row_ SILTFS_GUARDED_BY(mutex_) = 0;  // how many went one behind the other
  uint32_t stream_ SILTFS_GUARDED_BY(mutex_);      // so many in a row are a stream
  uint64_t gone_ SILTFS_GUARDED_BY(mutex_) = 0;    // how many have had their turn
  uint64_t in_vain_ SILTFS_GUARDED_BY(mutex_) = 0;
  Waiters waiters_ SILTFS_GUARDED_BY(mutex_);
};

// A turn, as long as it lives.
class WriteTurn {
 public:
  WriteTurn(WriteTurns& turns, uint64_t offset, uint64_t length) : turns_(turns) {
    turns_.Begin(offset, length);
  }
  ~WriteTurn() { turns_.End(); }
  WriteTurn(const WriteTurn&) = delete;
  WriteTurn& operator=(const WriteTurn&) = delete;

 private:
  WriteTurns& turns_;
};

}  // namespace siltfs
