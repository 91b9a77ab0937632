// A cuckoo table of entries in memory: each hash has two buckets of some ways (Erlingsson, Manasse,
// McSherry, "A cool and practical alternative to traditional hash tables", 2006). It buffers the
// entries that are put until they are written to flash together.
//
// Thread-safety: const calls may run concurrently. Memory: 20 bytes per place, from the first
// insertion until Clear.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "index/flash/flash_page.h"
#include "store/env/page_allocator.h"

namespace siltfs {

class EntryTable {
 public:
  struct Shape {
    uint32_t buckets = 1;
    uint32_t ways = 4;
    uint64_t places() const { return uint64_t{buckets} * ways; }
    // The two buckets of a hash, which may be equal.
    std::array<uint32_t, 2> BucketsOf(uint64_t hash) const;
  };

  explicit EntryTable(const Shape& shape) : shape_(shape) {}

  const Shape& shape() const { return shape_; }
  size_t size() const { return size_; }
  uint64_t memory_bytes() const;
  // The memory of a table that is not empty.
  static uint64_t MemoryFor(const Shape& shape);

  std::optional<FlashEntry> Find(uint64_t hash) const;
  // Inserts the entry, or replaces the location of its hash. Returns false if the table refuses the
  // hash; then nothing has changed.
  bool Insert(const FlashEntry& entry);
  // Inserts an entry even if the table refuses its hash. For entries that are read from a log in
  // another order than that in which the table took them.
  void InsertAnyway(const FlashEntry& entry);
  // Removes all entries and frees the memory.
  void Clear();

  // The entry of a place; nothing if it is free.
  std::optional<FlashEntry> At(uint32_t bucket, uint32_t way) const;
  std::vector<FlashEntry> entries() const;  // all, in no order
  // Entries that have no place (InsertAnyway).
  const std::vector<FlashEntry>& overflow() const { return overflow_; }
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (size_t i = 0; i < hashes_.size(); ++i) {
      if (hashes_[i] != 0) visit(FlashEntry{hashes_[i], LocationAt(i)});
    }
    for (const FlashEntry& entry : overflow_) visit(entry);
  }

 private:
  using Packed = std::array<uint8_t, Location::kEncodedSize>;

  Location LocationAt(size_t place) const { return Location::Decode(locations_[place]); }
  void Set(size_t place, const FlashEntry& entry);
  std::optional<size_t> PlaceOf(uint64_t hash) const;
  std::optional<size_t> FreePlace(uint32_t bucket) const;
  std::optional<size_t> MakePlace(uint64_t hash);

  const Shape shape_;
  PageVector<uint64_t> hashes_;  // by place; 0: free
  PageVector<Packed> locations_;
  std::vector<FlashEntry> overflow_;
  std::unordered_map<uint64_t, size_t> overflow_at_;  // by hash
  size_t size_ = 0;
};

}  // namespace siltfs
