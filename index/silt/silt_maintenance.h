// The background work of a SILT index: frozen LogStores become HashStores, HashStores are merged
// into SortedStores (SILT, sections 3.2, 3.3 and 5).
//
// Conversions come first, even in the middle of merges, because a frozen LogStore takes three times
// the memory of its HashStore. As long as HashStores hold more than their share of all entries, the
// partition with the most HashStore entries is merged. So merges are staggered: at any moment some
// partitions were just merged and some are nearly full. The filters' memory stays at its average
// instead of swinging between zero and twice the average. One partition is merged at a time, so
// that flash holds only one SortedStore twice.
//
// Back-pressure: when a LogStore is full, Put waits while one of these limits is exceeded: the
// number of frozen LogStores; the HashStores' share plus a twentieth; a partition's limit of
// HashStores plus a quarter. So neither memory use nor lookup cost grows when Puts outpace the
// background work.
//
// A merge also leaves out entries that lead into gone segments (SetGone). Of each name a merge
// considers only the newest entry, even if its segment is gone. So a merge never uncovers an older
// entry.
//
// Order of work: recovery, if the index answers before it is recovered (recovery.h); conversions;
// loading filters and tries, a few at a time between conversions; merges.
//
// Thread-safety: any. The StoreSet must outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "index/flash/background_steps.h"
#include "index/flash/throttle.h"
#include "index/silt/entry_merge.h"
#include "index/silt/residency.h"
#include "index/silt/store_set.h"

namespace siltfs {

class Maintenance {
 public:
  explicit Maintenance(StoreSet& stores);
  ~Maintenance();

  // Waits until there is room for one more frozen LogStore; without a thread, the call does the
  // work itself. kNoSpace may be retried; any other failure is permanent.
  Status WaitForRoom();
  // Wakes the thread. Call it after freezing a LogStore, or when filters or tries are to be loaded.
  // Without a thread, Wake loads filters and tries at once.
  void Wake();
  // Drops or loads filters and tries after the memory plan has changed.
  void FitMemory();
  // Merges that begin from now on leave out entries of segments for which `gone` is true. Entries
  // in LogStores and HashStores stay until they are merged.
  void SetGone(std::function<bool(SegmentId)> gone);
  // Converts the partition's frozen LogStores, merges them with all its other stores, and returns
  // when that is done. One call at a time. kNoSpace may be retried; any other failure is permanent.
  Status Rewrite(uint32_t partition);
  // The permanent failure, if any.
  Status failure() const { return steps_.failure(); }
  // Ends the thread permanently. The thread abandons a merge within 32,768 entries, and does not
  // begin another conversion.
  void Stop();

  size_t load_backlog() { return residency_.Backlog(); }
  uint64_t memory_bytes() const;  // for sorting, while a merge runs
  uint64_t merges() const { return merges_.load(std::memory_order_relaxed); }
  uint64_t conversions() const { return conversions_.load(std::memory_order_relaxed); }

 private:
  // Does one piece of work. Returns false if there is none.
  Result<bool> Step();
  Result<bool> ConvertOrMerge();
  Result<bool> Convert();
  Status Merge(uint32_t partition);
  Status MergeIfAny(uint32_t partition);
  struct RewriteRequest {
    uint32_t partition;
    uint64_t number;  // counted over all requests
  };
  std::optional<RewriteRequest> to_rewrite() const;
  Result<StoreSet::Merge> WriteSorted(uint32_t partition, const PartitionVersion& version);
  bool WantsMerge(const StoreSet::Sizes& sizes) const;
  // Whether a SortedStore that is written now gets a filter.
  bool WantsFilter() const;
  bool HasRoom() const;
  std::function<bool(SegmentId)> gone() const;
  Status CheckNotStopped() const;
  Status CheckWhole(uint64_t damaged_pages) const;

  StoreSet& stores_;
  Residency residency_;
  Throttle throttle_;
  std::atomic<bool> merging_{false};
  std::atomic<uint64_t> merges_{0};
  std::atomic<uint64_t> conversions_{0};

  mutable Mutex mutex_;  // no lock is taken under it; may be taken under a lock of steps_
  std::function<bool(SegmentId)> gone_ SILTFS_GUARDED_BY(mutex_);    // may be empty
  std::optional<RewriteRequest> rewrite_ SILTFS_GUARDED_BY(mutex_);  // empty when done
  uint64_t rewrites_ SILTFS_GUARDED_BY(mutex_) = 0;                  // requests so far
  BackgroundSteps steps_;  // the last member, because its thread uses the others
};

}  // namespace siltfs
