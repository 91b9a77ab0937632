// Which filters and tries are in memory (SILT, section 4, "Fail-Graceful Indexing"; memory_plan.h
// says how many bytes of them). The same are chosen whatever came before: filters first, partition
// by partition, then tries, as long as they fit. A filter saves two reads of each lookup that comes
// to its partition in 16 KiB, a trie one to two in some 60 KiB at 100 M entries.
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
  // A filter or trie; of the two stores one is set.
  struct Item {
    uint32_t partition = 0;
    std::shared_ptr<const HashStore> hash;
    std::shared_ptr<const SortedStore> sorted;

    const StoreFileId& file_id() const { return hash ? hash->file_id() : sorted->file_id(); }
    uint64_t bytes() const { return hash ? hash->filter_bytes() : sorted->trie_bytes(); }
    bool resident() const { return hash ? hash->filter() != nullptr : sorted->trie() != nullptr; }
  };
  // All there are; those that fit first.
  struct Choice {
    std::vector<Item> items;
    size_t fitting = 0;
  };
  Choice Choose() const SILTFS_REQUIRES(mutex_);
  Status Load(const Item& item);

  StoreSet& stores_;
  Mutex mutex_;  // before those of the StoreSet
  std::set<StoreFileId> unreadable_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
