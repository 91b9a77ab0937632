// Chooses one of the two buckets of each entry of a slicetable, so that as many entries as possible
// are in their first bucket. A lookup of such an entry reads one page ("Design Patterns for Tunable
// and Efficient SSD-based Indexes", section 5.4, where their share is p).
//
// All entries begin in their first bucket. Then each bucket that has too many moves some to their
// other bucket, along the shortest sequences of moves that lead to a bucket with room. The search
// for such a sequence is complete, so it fails only if there is no way to place all entries.
//
// Thread-safety: none. Memory: kBytesPerEntry for each entry.
#pragma once

#include <cstdint>
#include <vector>

#include "index/flash/entry_table.h"

namespace siltfs {

class SlicePlacement {
 public:
  static constexpr uint64_t kBytesPerEntry =
      sizeof(FlashEntry) + sizeof(uint8_t) + sizeof(uint32_t);

  explicit SlicePlacement(uint32_t buckets) : shape_{.buckets = buckets}, members_(buckets) {}

  // Entries are numbered in the order in which they are added.
  void Add(const FlashEntry& entry);
  const std::vector<FlashEntry>& entries() const { return entries_; }
  // Places all entries again. Returns false if that is impossible with so many slots in each
  // bucket; then Place must be called again with more.
  bool Place(uint32_t slots);
  // The entries of a bucket, by their numbers, after Place has returned true.
  const std::vector<uint32_t>& Members(uint32_t bucket) const { return members_[bucket]; }
  uint64_t memory_bytes() const { return entries_.capacity() * kBytesPerEntry; }

 private:
  uint32_t BucketOf(uint32_t entry, bool second) const {
    return shape_.BucketsOf(entries_[entry].hash)[second ? 1 : 0];
  }
  bool MoveOneFrom(uint32_t bucket, uint32_t slots);
  void Move(uint32_t entry, uint32_t from);

  const EntryTable::Shape shape_;
  std::vector<FlashEntry> entries_;
  std::vector<uint8_t> is_second_;  // whether an entry is in its second bucket
  std::vector<std::vector<uint32_t>> members_;

  // Of MoveOneFrom: the entry whose move reaches a bucket, and the search that has set it.
  struct Reached {
    uint32_t entry = 0;
    uint32_t from = 0;
    uint32_t search = 0;
  };
  std::vector<Reached> reached_;
  std::vector<uint32_t> waiting_;
  uint32_t search_ = 0;
};

}  // namespace siltfs
