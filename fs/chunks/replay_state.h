// Whether the index has the entries of all segments. A mount whose index was lost puts the entries
// again in the background (fs/core/index_replay.h). Until this has ended, chunks are found by a
// search of the segments, and no chunk can be stored, because it might be a duplicate of a chunk
// that the index does not know yet.
//
// Thread-safety: every call from any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class ReplayState {
 public:
  // A replay of so many segments begins. Without Begin, there is no replay.
  void Begin(uint64_t segments) SILTFS_EXCLUDES(mutex_);
  void NoteSegmentDone() SILTFS_EXCLUDES(mutex_);
  // The replay has ended. Wait returns `outcome` from now on.
  void End(const Status& outcome) SILTFS_EXCLUDES(mutex_);

  // Returns when no replay is going on: OK if the index has all entries.
  Status Wait() SILTFS_EXCLUDES(mutex_);
  // The same, but returns kInterrupted once `interrupted` is true. It is asked at first and after
  // WakeWaits, with the mutex held, so it must not call this object.
  Status WaitUnless(const std::function<bool()>& interrupted) SILTFS_EXCLUDES(mutex_);
  void WakeWaits() SILTFS_EXCLUDES(mutex_);

  struct Progress {
    bool running = false;
    uint64_t done = 0;  // segments
    uint64_t total = 0;
  };
  Progress progress() const SILTFS_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  CondVar ended_;
  Progress progress_ SILTFS_GUARDED_BY(mutex_);
  Status outcome_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
