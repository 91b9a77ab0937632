// Which filters and tries are in memory (SILT, section 4, "Fail-Graceful Indexing"; memory_plan.h
// says how many bytes of them). The same are chosen whatever came before: HashStores' filters
// first, partition by partition, then tries, then the slices of SortedStores' filters, the first of
// all partitions before the second of any, as long as they fit. A HashStore's filter saves two
// reads of each lookup that comes to its partition in 16 KiB, a trie one to two in some 60 KiB at
// 100 M entries, a slice half a read of those that come in vain in some 190 KiB, the next a
// quarter.
//
// Slices are no part of SILT, and take memory that is there anyway: without a limit, which is to
// say "what SILT takes", there are none, and under one they leave room for the filters that the
// next conversions bring, so that these don't begin without.
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

  // Takes what does not fit out of memory.
  void Drop();
  // Reads filters or tries that fit from flash, one of them or, in an index with threads, several
  // side by side; false if there are none. One that can't be read is left out until the index is
  // opened again: the store does without. Damage is counted.
  bool LoadSome();
  // How many are to be read.
  size_t Backlog();

 private:
  // A filter, a trie or a slice.
  struct Item {
    enum class Kind : uint8_t { kFilter, kTrie, kSlice };
    Kind kind = Kind::kFilter;
    uint32_t partition = 0;
    unsigned slice = 0;
    // Whose it is; one is set.
    std::shared_ptr<const HashStore> hash = nullptr;
    std::shared_ptr<const SortedStore> sorted = nullptr;

    const StoreFileId& file_id() const;
    uint64_t bytes() const;
    bool resident() const;
  };
  // All there are; those that fit first.
  struct Choice {
    std::vector<Item> items;
    size_t fitting = 0;
  };
  Choice Choose() const SILTFS_REQUIRES(mutex_);
  void AddSlices(Choice& choice) const SILTFS_REQUIRES(mutex_);
  void CountFit(Choice& choice) const;
  void DropItem(const Item& item);
  // Those that fit and are not in memory, up to so many; of a SortedStore one.
  std::vector<const Item*> Missing(const Choice& choice, size_t most) const;
  Status Load(const Item& item);
  void NoteDamagedFilters() SILTFS_REQUIRES(mutex_);
  void DoWithout(const Item& item, const Status& why) SILTFS_REQUIRES(mutex_);
  std::shared_ptr<const SortedStore> SortedNow(const Item& item) const;

  StoreSet& stores_;
  Mutex mutex_;  // before those of the StoreSet
  std::set<StoreFileId> unreadable_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
