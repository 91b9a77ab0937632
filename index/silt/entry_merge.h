// Visits the entries of the given stores of one partition in order. Of each name it visits only the
// newest entry (SILT, section 3.3, table 3). It is used to merge HashStores and a SortedStore into
// a new SortedStore, and to list an index.
//
// The SortedStore and sorted runs are read once from front to back. The other stores are not in
// this order, so their entries are sorted in memory, in as many passes as the memory requires
// (hash_range_sort.h). If the memory does not suffice for a cursor of each run, the remaining runs
// are sorted in passes, too.
//
// Thread-safety: none; the stores are only read. Memory: `sort_memory_bytes` for sorting and for
// the cursors of runs, and a few read buffers.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "index/flash/hash_range_sort.h"
#include "index/silt/partition.h"
#include "index/silt/run_store_merge.h"

namespace siltfs {

class EntryMerge {
 public:
  struct Options {
    NameHash name_hash;
    unsigned partition_bits = 0;
    uint32_t partition = 0;
    size_t sort_memory_bytes = 4U << 20;
    SlotLayout layout = kChunkSlots;
  };
  // `version` must outlive the merge.
  EntryMerge(const PartitionVersion& version, const Options& options)
      : version_(version),
        options_(options),
        sort_({.name_hash = options.name_hash,
               .partition_bits = options.partition_bits,
               .partition = options.partition,
               .layout = options.layout}),
        runs_(options.name_hash) {}

  // Calls `visit` with the newest entry of each name, except tombstones, in ascending order. Stops
  // when `visit` fails. Leaves out the entries of damaged pages.
  using Visit = std::function<Status(const OrderKey& key, const SlotEntry& entry)>;
  Status Run(const Visit& visit);

  uint64_t damaged_pages() const { return damaged_pages_; }
  uint64_t entries_dropped() const { return dropped_; }  // older entries of a name, and tombstones
  // Memory used for sorting, and for the cursors of runs; valid after Run().
  size_t sort_memory_bytes() const { return runs_.memory_bytes() + sort_.memory_bytes(); }

 private:
  Status OpenCursors();
  uint64_t UnsortedEntries() const;
  // Passes the entries of the stores without cursors to sort_.
  Status Collect(bool count_damage);
  Status CollectConverted(const ConvertedStore& store, uint32_t age, bool count_damage);
  Status CollectLog(const LogStore& store, uint32_t age, bool count_damage);
  // The newest of the next entries of `items` and runs_.
  struct Newest {
    OrderKey key;
    SlotEntry entry;
  };
  template <typename Item>
  Result<std::optional<Newest>> TakeNewest(std::span<const Item>& items);
  template <typename Item>
  Status MergeRange(const std::vector<Item>& items, SortedCursor& sorted, const Visit& visit);

  const PartitionVersion& version_;
  const Options options_;
  HashRangeSort sort_;
  AlignedBuffer buffer_;  // of the store being read
  RunStoreMerge runs_;
  std::vector<bool> has_cursor_;  // of each of version_.hashes
  uint64_t damaged_pages_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace siltfs
