// Sorts the entries of stores of one partition that are not in the order of keys. Sorting them on
// flash would write every entry once more. So they are sorted in memory, in as many passes as the
// memory requires. In each pass, the caller reads all these stores, and the entries of one range of
// hashes are sorted. Several passes cost only reads, which are cheaper than writes.
//
// Thread-safety: none. Memory: that of Plan, and that of the entries by which a range exceeds its
// expected number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/flash/slot.h"
#include "store/base/bytes.h"

namespace siltfs {

class HashRangeSort {
 public:
  struct Options {
    NameHash name_hash;
    unsigned partition_bits = 0;
    uint32_t partition = 0;
    SlotLayout layout = kChunkSlots;
  };
  explicit HashRangeSort(const Options& options) : options_(options) {}

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

  // Divides the partition's hashes into ranges, one for each pass, so that the entries of a range
  // fit the memory. `entries` is the number of entries of all passes. Call once, first.
  void Plan(uint64_t entries, uint64_t memory_bytes);
  uint64_t passes() const { return passes_; }

  // Begins a pass (< passes()); forgets the entries of the pass before.
  void Begin(uint64_t pass);
  uint64_t last_hash() const { return last_hash_; }  // of the range of this pass
  // Takes the entry if its hash lies in the range of this pass. The entry is not a hole.
  void Take(const SlotEntry& entry, uint32_t age) {
    const OrderKey key = options_.name_hash.KeyOf(entry);
    if (key.hash < first_hash_ || key.hash > last_hash_) return;
    if (options_.layout.hashed()) {
      hashed_.push_back({.hash = key.hash, .location = entry.location, .age = age});
      return;
    }
    named_.push_back({.order = key,
                      .location = entry.location,
                      .age = age,
                      .rest = static_cast<uint32_t>(named_.size())});
    if (entry.rest.empty()) return;
    rests_.insert(rests_.end(), entry.rest.begin(), entry.rest.end());
  }
  // Sorts the entries that this pass took, and drops all but the newest entry of each key. Returns
  // the number of dropped entries.
  uint64_t Sort();

  // The sorted entries. The one for the other kind of slots is empty.
  const std::vector<HashedItem>& hashed() const { return hashed_; }
  const std::vector<NamedItem>& named() const { return named_; }
  SlotEntry EntryOf(const HashedItem& item) const {
    SlotEntry entry;
    entry.hash = item.hash;
    entry.location = item.location;
    return entry;
  }
  // The rest of the slot is valid until the next Begin.
  SlotEntry EntryOf(const NamedItem& item) const {
    const size_t rest_size = options_.layout.rest_size();
    return SlotEntry({.name = item.order.name, .location = item.location},
                     ByteView(rests_).subspan(item.rest * rest_size, rest_size));
  }

  size_t memory_bytes() const {
    return hashed_.capacity() * sizeof(HashedItem) + named_.capacity() * sizeof(NamedItem) +
           rests_.capacity();
  }

 private:
  const Options options_;
  uint64_t passes_ = 1;
  uint64_t first_hash_ = 0;
  uint64_t last_hash_ = 0;
  std::vector<HashedItem> hashed_;  // one of the two is empty
  std::vector<NamedItem> named_;
  Bytes rests_;  // the bytes after name and location in the items' slots
};

}  // namespace siltfs
