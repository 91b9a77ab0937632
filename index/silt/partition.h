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
#include <vector>

#include "index/silt/hash_store.h"
#include "index/silt/log_store.h"
#include "index/silt/sorted_store.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// The immutable stores, oldest first. Pinned by lookups.
struct PartitionVersion {
  std::vector<std::shared_ptr<const LogStore>> logs;  // frozen, all of them written out
  std::vector<std::shared_ptr<const HashStore>> hashes;
  std::shared_ptr<const SortedStore> sorted;  // null if there is none

  uint64_t HashEntries() const {
    uint64_t entries = 0;
    for (const auto& store : hashes) entries += store->entries();
    return entries;
  }
  size_t UnfilteredStores() const {
    return static_cast<size_t>(std::count_if(hashes.begin(), hashes.end(), [](const auto& store) {
      return store->filter() == nullptr;
    }));
  }
  uint64_t SortedEntries() const { return sorted == nullptr ? 0 : sorted->entries(); }
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
  // A const copy of the current state, including a copy of the active store.
  std::shared_ptr<const PartitionVersion> Snapshot() const {
    ReaderLock lock(mutex);
    auto all = std::make_shared<PartitionVersion>(*version);
    all->logs.push_back(active->Snapshot());
    return all;
  }

  std::atomic<bool> recovered{false};  // while it is false, the stores are not open yet
  // True if a HashStore was made since the index was opened and since the last merge.
  std::atomic<bool> grown{false};

  // Held for memory accesses only, never during device access. No other lock is taken under it.
  mutable SharedMutex mutex;
  std::shared_ptr<LogStore> active SILTFS_GUARDED_BY(mutex);
  std::shared_ptr<const PartitionVersion> version SILTFS_GUARDED_BY(mutex) =
      std::make_shared<const PartitionVersion>();
};

}  // namespace siltfs
