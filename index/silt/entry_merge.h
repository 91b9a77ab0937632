// Visits the entries of the given stores of one partition in order. Of each name it visits only the
// newest entry (SILT, section 3.3, table 3). It is used to merge HashStores and a SortedStore into
// a new SortedStore, and to list an index.
//
// The SortedStore and sorted runs are read once from front to back. The other stores are not in
// this order; sorting them on flash would write every entry once more. So their entries are sorted
// in memory, in as many passes as the memory requires. Each pass reads all these stores and sorts
// the entries of one range of hashes. Several passes cost only reads, which are cheaper than
// writes. If the memory does not suffice for a cursor of each run, the remaining runs are sorted in
// passes, too.
//
// Thread-safety: none; the stores are only read. Memory: `sort_memory_bytes` for sorting and for
// the cursors of runs, and a few read buffers.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

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
      : version_(version), options_(options), runs_(options.name_hash) {}

  // Calls `visit` with the newest entry of each name, except tombstones, in ascending order. Stops
  // when `visit` fails. Leaves out the entries of damaged pages.
  using Visit = std::function<Status(const OrderKey& key, const SlotEntry& entry)>;
  Status Run(const Visit& visit);

  uint64_t damaged_pages() const { return damaged_pages_; }
  uint64_t entries_dropped() const { return dropped_; }  // older entries of a name, and tombstones
  // Memory used for sorting, and for the cursors of runs; valid after Run().
  size_t sort_memory_bytes() const {
    return runs_.memory_bytes() + hashed_.capacity() * sizeof(HashedItem) +
           named_.capacity() * sizeof(NamedItem) + rests_.capacity();
  }

 private:
  // Entries that are being sorted. Hashed slots need less than half the memory of named ones.
  struct HashedItem {
    uint64_t hash = 0;
    Location location;
    uint32_t age = 0;  // 0: the newest store

    OrderKey key() const { return {hash, {}}; }
    bool operator<(const HashedItem& other) const {
      return hash != other.hash ? hash < other.hash : age < other.age;
    }
  };
  struct NamedItem {
    OrderKey order;
    Location location;
    uint32_t age = 0;
    uint32_t rest = 0;  // index in rests_, in units of layout.rest_size() bytes

    const OrderKey& key() const { return order; }
    bool operator<(const NamedItem& other) const {
      return order != other.order ? order < other.order : age < other.age;
    }
  };

  Status OpenCursors();
  uint64_t UnsortedEntries() const;
  Status Collect(uint64_t first_hash, uint64_t last_hash, bool count_damage);
  Status CollectConverted(const ConvertedStore& store, uint32_t age, uint64_t first_hash,
                          uint64_t last_hash, bool count_damage);
  Status CollectLog(const LogStore& store, uint32_t age, uint64_t first_hash, uint64_t last_hash,
                    bool count_damage);
  void Take(const SlotEntry& entry, uint32_t age, uint64_t first_hash, uint64_t last_hash);
  template <typename Item>
  void SortAndDropOld(std::vector<Item>& items);
  // The newest of the next entries of `items` and runs_.
  struct Newest {
    OrderKey key;
    SlotEntry entry;
  };
  template <typename Item>
  Result<std::optional<Newest>> TakeNewest(std::span<const Item>& items, uint64_t last_hash);
  template <typename Item>
  Status MergeRange(const std::vector<Item>& items, SortedCursor& sorted, uint64_t last_hash,
                    const Visit& visit);
  SlotEntry EntryOf(const HashedItem& item) const;
  SlotEntry EntryOf(const NamedItem& item) const;

  const PartitionVersion& version_;
  const Options options_;
  std::vector<HashedItem> hashed_;  // one of the two is empty
  std::vector<NamedItem> named_;
  Bytes rests_;           // the bytes after name and location in the items' slots
  AlignedBuffer buffer_;  // of the store being read
  RunStoreMerge runs_;
  std::vector<bool> has_cursor_;  // of each of version_.hashes
  uint64_t damaged_pages_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace siltfs
