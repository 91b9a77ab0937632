// Admits the writes of one file one at a time, and those of a stream in the order of their offsets.
//
// A sequential writer arrives here as many concurrent writes. The kernel gathers its data and sends
// it in requests of 1 MiB to any free threads, which overtake each other. If writes were admitted
// in order of arrival, parts of the stream would have to wait as raw bytes. So the waiting write
// that begins where the last one ended goes next.
//
// During a stream, a write that begins a little beyond the last end also waits briefly: another
// thread may be about to make the write for the gap. If that write does not come, the stream is
// over. Writes do not wait for gaps again until enough consecutive writes make a new stream. Each
// gap that was not filled raises this number, up to a limit, and a gap that is filled resets it. So
// a program that leaves gaps on purpose does not wait at each of them. No write starves: a write
// that was overtaken often enough goes next.
//
// Thread-safety: every call from any thread. The order is best effort: writes that do not form a
// stream, for example those of several programs, are admitted in any order.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>

#include "store/base/thread_annotations.h"

namespace siltfs {

class WriteSequencer {
 public:
  // `patience`: how long a write waits for the preceding write. If another thread already has the
  // preceding write, that thread usually calls Begin sooner.
  explicit WriteSequencer(std::chrono::nanoseconds patience = std::chrono::milliseconds(2))
      : patience_(patience), stream_(kShortStream) {}

  // Returns when a write of [offset, offset + length) is admitted. No other write is admitted
  // before End.
  void Begin(uint64_t offset, uint64_t length) SILTFS_EXCLUDES(mutex_);
  void End() SILTFS_EXCLUDES(mutex_);

  // The number of writes that wait in Begin.
  size_t waiting() const SILTFS_EXCLUDES(mutex_);
  // How often a write waited for a preceding one that did not come.
  uint64_t waited_in_vain() const SILTFS_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  // The number of consecutive writes that make a stream: at first kShortStream. Each gap that is
  // not filled doubles the number, up to kLongStream. A gap that is filled resets it.
  static constexpr uint32_t kShortStream = 3;
  static constexpr uint32_t kLongStream = 512;

  struct Waiter {
    uint64_t offset = 0;
    uint64_t came = 0;  // writes admitted before this one came
    bool go = false;
    // Set for the write that would go next but begins after a gap. Until this time it waits for the
    // gap to be filled.
    std::optional<Clock::time_point> deadline = {};
    CondVar told = {};
  };
  using Waiters = std::list<Waiter*>;  // in order of arrival

  // Whether a write at `offset` probably follows one that has not come yet.
  bool LiesAhead(uint64_t offset) const SILTFS_REQUIRES(mutex_);
  // The write to go next if there is no reason to wait.
  Waiters::iterator Next() SILTFS_REQUIRES(mutex_);
  // Whether the longest waiting write was overtaken often enough.
  bool FirstIsDue() const SILTFS_REQUIRES(mutex_);
  void LetNextGo() SILTFS_REQUIRES(mutex_);
  void Enter(uint64_t offset, uint64_t length) SILTFS_REQUIRES(mutex_);

  const std::chrono::nanoseconds patience_;
  mutable Mutex mutex_;
  bool busy_ SILTFS_GUARDED_BY(mutex_) = false;
  uint64_t end_ SILTFS_GUARDED_BY(mutex_) = 0;     // of the last write admitted
  uint32_t in_row_ SILTFS_GUARDED_BY(mutex_) = 0;  // consecutive writes admitted
  uint32_t stream_ SILTFS_GUARDED_BY(mutex_);      // consecutive writes that make a stream
  uint64_t gone_ SILTFS_GUARDED_BY(mutex_) = 0;    // all writes admitted
  uint64_t in_vain_ SILTFS_GUARDED_BY(mutex_) = 0;
  Waiters waiters_ SILTFS_GUARDED_BY(mutex_);
};

// Admits a write in its constructor, and ends it in its destructor.
class SequencedWrite {
 public:
  SequencedWrite(WriteSequencer& turns, uint64_t offset, uint64_t length) : turns_(turns) {
    turns_.Begin(offset, length);
  }
  ~SequencedWrite() { turns_.End(); }
  SequencedWrite(const SequencedWrite&) = delete;
  SequencedWrite& operator=(const SequencedWrite&) = delete;

 private:
  WriteSequencer& turns_;
};

}  // namespace siltfs
