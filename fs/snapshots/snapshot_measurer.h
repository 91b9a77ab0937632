// Measures the space that snapshots take (fs/mark/snapshot_space.h).
//
// References that do not fit into memory are sorted in the store's directory `sort`. If the store
// is read-only, or its disk is full, they are sorted in the directory for temporary files.
//
// Thread-safety: every call from any thread; one measurement at a time. Ownership: borrows the
// parts of the store, which must outlive it. Errors: those of MeasureSnapshots and of `check`;
// kInterrupted after Stop. While it runs, garbage collection removes no segment (ChunkStore::Use):
// a collection that begins meanwhile waits for its end, and so does a clone that begins after this
// collection. Memory: as in snapshot_space.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/inodes/store_context.h"
#include "fs/mark/snapshot_space.h"
#include "fs/records/snapshot_record.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SnapshotMeasurer {
 public:
  // `progress` must outlive it.
  SnapshotMeasurer(const StoreContext& store, ProgressMeter& progress)
      : store_(store), progress_(progress) {}

  struct Measured {
    NumberedSnapshot snapshot;
    SnapshotBytes bytes;
  };
  // Measures all snapshots that are not being removed, as of a commit after the beginning of the
  // call. If nothing can be committed, as of the last commit. Calls `check` at intervals, and ends
  // if it fails; may be empty.
  Result<std::vector<Measured>> Measure(const std::function<Status()>& check)
      SILTFS_EXCLUDES(mutex_);

  // Ends the running measurement, and makes all later ones fail.
  void Stop() SILTFS_EXCLUDES(mutex_);

 private:
  // Sorts in this directory.
  Result<SnapshotSpaces> MeasureWith(const std::string& directory, const KvSnapshot& metadata,
                                     const std::vector<SnapshotBounds>& bounds,
                                     const std::function<Status()>& check);
  Status CheckRunning(const std::function<Status()>& check) const;

  const StoreContext& store_;
  ProgressMeter& progress_;
  Mutex mutex_;  // held during a measurement
  std::atomic<bool> stopping_{false};
};

}  // namespace siltfs
