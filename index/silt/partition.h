// One partition of a SILT index (section 2: "SILT instance"): the stores that may hold the names of
// its range of hashes. The active LogStore changes under a lock; all other stores are immutable,
// and readers pin a version that lists them.
//
// Thread-safety: any; but one thread at a time writes the active LogStore, and only that thread may
// read it without the lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "index/flash/probe_tally.h"
#include "index/silt/converted_store.h"
#include "index/silt/log_store.h"
#include "index/silt/sorted_store.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// The immutable stores, oldest first. Pinned by lookups. Only the stores are copied, not the tally.
struct PartitionVersion {
  std::vector<std::shared_ptr<const LogStore>> logs;  // frozen, all of them written out
  // HashStores and sorted runs; their entries count as those of HashStores.
  std::vector<std::shared_ptr<const ConvertedStore>> hashes;
  std::shared_ptr<const SortedStore> sorted;  // null if there is none
  // The lookups that searched these stores. It belongs to this version: other versions have other
  // stores.
  ProbeTally tally;

  uint64_t HashEntries() const {
    uint64_t entries = 0;
    for (const auto& store : hashes) entries += store->entries();
    return entries;
  }
  uint64_t SortedEntries() const { return sorted == nullptr ? 0 : sorted->entries(); }
  // Number of stores that a lookup may search.
  size_t StoreCount() const { return logs.size() + hashes.size() + (SortedEntries() > 0 ? 1 : 0); }
  // Adds the statistics of all stores, with the lookups in the tally.
  void AddStats(std::vector<IndexComponentStats>& stats) const;
  // Counters of the stores from the newest to the oldest, in the order of lookups.
  std::vector<StoreCounters*> Counters() const;
  // Adds the tally to the counters of the stores; called when no lookup has the version any more.
  // A version that could not be opened has null stores, but no lookups either.
  ~PartitionVersion() {
    if (tally.used()) tally.AddTo(Counters());
  }

  PartitionVersion() = default;
  PartitionVersion(const PartitionVersion& other)
      : logs(other.logs), hashes(other.hashes), sorted(other.sorted) {}
  PartitionVersion& operator=(const PartitionVersion&) = delete;
};

// Sums over the stores of a version.
struct PartitionSums {
  uint64_t hash_entries = 0;
  uint64_t sorted_entries = 0;
  size_t hash_stores = 0;
  size_t unfiltered = 0;        // HashStores without a filter in memory
  uint64_t bounds_bytes = 0;    // of the SortedStore's page boundaries, which stay in memory
  uint64_t wanted_bytes = 0;    // of all filters of HashStores, boundaries and tries
  uint64_t resident_bytes = 0;  // of those in memory, and of slices
  bool complete = true;         // all of the wanted ones are in memory

  static PartitionSums Of(const PartitionVersion& version);
};

struct Partition {
  struct Pin {
    std::shared_ptr<LogStore> active;
    std::shared_ptr<const PartitionVersion> version;
  };
  Pin Get() const {
    ReaderLock lock(mutex);
    return {active, version};
  }
  PartitionSums Sums() const {
    ReaderLock lock(mutex);
    return sums;
  }
  // A const copy of the current state, including a copy of the active store.
  std::shared_ptr<const PartitionVersion> Snapshot() const {
    ReaderLock lock(mutex);
    auto all = std::make_shared<PartitionVersion>(*version);
    all->logs.push_back(active->Snapshot());
    return all;
  }
  void Install(std::shared_ptr<const PartitionVersion> next) SILTFS_REQUIRES(mutex) {
    sums = PartitionSums::Of(*next);
    version = std::move(next);
  }

  std::atomic<bool> recovered{false};  // while it is false, the stores are not open yet
  // True if a HashStore was made since the index was opened and since the last merge.
  std::atomic<bool> grown{false};

  // Held for memory accesses only, never during device access. No other lock is taken under it.
  mutable SharedMutex mutex;
  std::shared_ptr<LogStore> active SILTFS_GUARDED_BY(mutex);
  std::shared_ptr<const PartitionVersion> version SILTFS_GUARDED_BY(mutex) =
      std::make_shared<const PartitionVersion>();
  PartitionSums sums SILTFS_GUARDED_BY(mutex);  // of `version`
};

}  // namespace siltfs
