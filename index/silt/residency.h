// Chooses the filters and page indexes in memory (SILT, section 4, "Fail-Graceful Indexing";
// memory_plan.h sets their total size). The choice does not depend on history. Page boundaries are
// always in memory (about 10 KiB for each partition at 100 M entries). As long as there is room,
// the choice then takes the filters of HashStores, partition by partition, then tries, then the
// slices of SortedStores' filters (ribbon_filter.h). The first slices of all partitions come before
// any second slice. A HashStore's filter (16 KiB) saves two reads for each lookup in its partition.
// A trie (about 60 KiB at 100 M entries) saves one to two reads. The first slice (about 190 KiB)
// saves half a read for each absent name, the next a quarter.
//
// Slices are not part of SILT. They use only memory below the limit that filters and indexes leave
// free. Without a limit no slices are loaded: the index then takes only what SILT needs. With a
// limit, slices leave room for the filters of the next conversions, so that new HashStores start
// with a filter.
//
// Thread-safety: any. The StoreSet must outlive it.
#pragma once

#include <set>
#include <vector>

#include "index/silt/store_set.h"

namespace siltfs {

class Residency {
 public:
  explicit Residency(StoreSet& stores) : stores_(stores) {}

  // Frees the filters and indexes that do not fit.
  void Drop();
  // Reads from flash a filter, index or slice that fits and is not in memory, or several in
  // parallel if the index has threads. Returns false if there are none. An unreadable filter, trie
  // or slice is left out until the index is opened again; its store works without it. Damage is
  // counted.
  bool LoadSome();
  // Number of filters, tries and slices still to be read.
  size_t Backlog();

 private:
  // A filter, a page index or a slice.
  struct Item {
    enum class Kind : uint8_t { kFilter, kIndex, kSlice };
    Kind kind = Kind::kFilter;
    uint32_t partition = 0;
    unsigned slice = 0;
    // The store that has the item; exactly one of these pointers is set.
    std::shared_ptr<const ConvertedStore> hash = nullptr;
    std::shared_ptr<const SortedStore> sorted = nullptr;

    const StoreFileId& file_id() const;
    uint64_t bytes() const;
    bool resident() const;
  };
  // All items; those that fit come first.
  struct Choice {
    std::vector<Item> items;
    size_t pinned = 0;  // items at the front that stay in memory whatever the limit is
    // Memory of filters and indexes that are not among the items, because all of them are in memory
    // and fit.
    uint64_t settled_bytes = 0;
    size_t fitting = 0;
  };
  Choice Choose() const SILTFS_REQUIRES(mutex_);
  void AddFiltersAndIndexes(Choice& choice) const SILTFS_REQUIRES(mutex_);
  void AddSlices(Choice& choice) const SILTFS_REQUIRES(mutex_);
  void CountFit(Choice& choice) const;
  void DropItem(const Item& item);
  // Items that fit and are not in memory: at most `most`, and at most one per SortedStore.
  std::vector<const Item*> Missing(const Choice& choice, size_t most) const;
  Status Load(const Item& item);
  void NoteDamagedFilters() SILTFS_REQUIRES(mutex_);
  void DoWithout(const Item& item, const Status& why) SILTFS_REQUIRES(mutex_);
  std::shared_ptr<const SortedStore> SortedNow(const Item& item) const;

  StoreSet& stores_;
  Mutex mutex_;  // taken before the locks of the StoreSet
  std::set<StoreFileId> unreadable_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
