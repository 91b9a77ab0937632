// One partition of a SILT index (section 2: "SILT instance"): the stores that a name of its share
// of the hashes may be in. The LogStore that is being written changes under a lock; all others are
// immutable and held together by a version that readers pin.
//
// Thread-safety: any; but the active LogStore is written by one thread at a time, which alone may
// look at it without the lock.
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

// The stores that don't change, oldest first. What a lookup pins.
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
  // All there is at one moment, const: the active store copied.
  std::shared_ptr<const PartitionVersion> Snapshot() const {
    ReaderLock lock(mutex);
    auto all = std::make_shared<PartitionVersion>(*version);
    all->logs.push_back(active->Snapshot());
    return all;
  }

  std::atomic<bool> recovered{false};  // before, there is nothing
  // A HashStore was made since the last merge, and since the index was opened.
  std::atomic<bool> grown{false};

  // Held for memory accesses only, never for the device's. Nothing else is taken under it.
  mutable SharedMutex mutex;
  std::shared_ptr<LogStore> active SILTFS_GUARDED_BY(mutex);
  std::shared_ptr<const PartitionVersion> version SILTFS_GUARDED_BY(mutex) =
      std::make_shared<const PartitionVersion>();
};

}  // namespace siltfs
