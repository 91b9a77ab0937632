// The background work of a SILT index: frozen LogStores become HashStores, HashStores are merged
// into SortedStores (SILT, sections 3.2, 3.3 and 5).
//
// Conversions come first, and in the middle of merges too, as a frozen LogStore takes three times
// the memory of its HashStore. Merges follow memory: as long as HashStores hold more than their
// share of all entries, the partition with the most of them is merged. So merges are staggered by
// themselves: partitions are spread between just merged and fullest, and the filters' memory stays
// at its average instead of swinging between nothing and twice that. One partition is merged at a
// time, so that flash holds only one SortedStore twice.
//
// Back-pressure: Put comes by at each LogStore that is full, and waits while too many are frozen,
// HashStores hold a twentieth more than their share, or a partition has a quarter more of them than
// it should. So neither memory nor lookups grow when work comes in faster than it is done.
//
// A merge also leaves out entries that lead into segments which are gone, if it is told which those
// are. Of a name the newest entry counts, gone or not: what a lookup would not have answered before
// the merge, it does not answer after it.
//
// What waits is done first: recovery where the index serves before it (recovery.h), conversions,
// filters and tries that are to be read from flash, a few at a time between conversions, merges.
//
// Thread-safety: any. The StoreSet must outlive it.
#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "index/silt/entry_merge.h"
#include "index/silt/residency.h"
#include "index/silt/store_set.h"
#include "index/silt/throttle.h"

namespace siltfs {

class Upkeep {
 public:
  explicit Upkeep(StoreSet& stores);
  ~Upkeep();

  // Returns when there is room for one more frozen LogStore; does the work itself if there is no
  // thread. kNoSpace may be tried again, any other failure is for good.
  Status WaitForRoom();
  // There is a new frozen LogStore, or something to be read into memory. Without a thread the
  // latter is done at once.
  void Wake();
  // Filters and tries to be taken out of memory, or read, as the memory plan has changed.
  void FitMemory();
  // Merges that begin from now on leave out entries of segments for which this is true. Entries in
  // LogStores and HashStores stay until they are merged.
  void SetGone(std::function<bool(SegmentId)> gone);
  // Returns when the partition's frozen LogStores are converted and merged with all else it holds.
  // One call at a time. kNoSpace may be tried again, any other failure is for good.
  Status Rewrite(uint32_t partition);
  // What has failed for good.
  Status failure() const;
  // Ends the thread, at the latest after the block being written. For good.
  void Stop();

  size_t load_backlog() { return residency_.Backlog(); }
  uint64_t memory_bytes() const;  // being used for a merge or conversion
  uint64_t merges() const { return merges_.load(std::memory_order_relaxed); }
  uint64_t conversions() const { return conversions_.load(std::memory_order_relaxed); }

 private:
  void Run();
  // Does a piece of work; false if there is none.
  Result<bool> Step();
  Result<bool> ConvertOrMerge();
  Result<bool> Convert();
  Status Merge(uint32_t partition);
  Status MergeIfAny(uint32_t partition);
  Status WaitUntilRewritten(uint64_t before);
  struct RewriteRequest {
    uint32_t partition;
    uint64_t number;  // of all requests
  };
  std::optional<RewriteRequest> to_rewrite() const;
  Result<StoreSet::Merge> WriteSorted(uint32_t partition, const PartitionVersion& version);
  bool WantsMerge(const StoreSet::Sizes& sizes) const;
  bool HasRoom() const;
  std::function<bool(SegmentId)> gone() const;
  Status CheckNotStopped() const;
  Status CheckWhole(uint64_t damaged_pages) const;

  StoreSet& stores_;
  Residency residency_;
  Throttle throttle_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> merging_{false};
  std::atomic<uint64_t> merges_{0};
  std::atomic<uint64_t> conversions_{0};

  mutable Mutex mutex_;  // nothing else is taken under it but what Sizes needs
  CondVar changed_;
  uint64_t wakes_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t steps_ SILTFS_GUARDED_BY(mutex_) = 0;                   // that ended, well or not
  Status last_ SILTFS_GUARDED_BY(mutex_);                          // how the last step ended
  std::function<bool(SegmentId)> gone_ SILTFS_GUARDED_BY(mutex_);  // may be empty
  std::optional<RewriteRequest> rewrite_ SILTFS_GUARDED_BY(mutex_);  // empty when done
  uint64_t rewrites_ SILTFS_GUARDED_BY(mutex_) = 0;                  // that were asked for
  std::thread thread_;
};

}  // namespace siltfs
