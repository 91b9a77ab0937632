// The table of a log (in SILT: of a LogStore; section 3.1): a 4-way partial-key cuckoo hash table
// in memory, from a key to its slot in the log. The table is also a filter: it answers most lookups
// of absent keys without a read.
//
// Two parts of a key's hash select its two buckets. An entry keeps no key, only a tag: the number
// of its *other* bucket and further bits of the hash, 15 bits in all for every table size. So an
// entry can move between its buckets without reading its key from flash, and a small table filters
// as well as a large one. In a full table an absent key matches 8 / 2^15 = 2^-12 tags on average.
// So a tag match is only a candidate; the caller confirms it in the log.
//
// Insert displaces at most 128 entries. If that frees no place, Insert undoes the moves and puts
// the key into a stash of 8. If the stash is full, too, Insert refuses the key and leaves the table
// unchanged; this happens at about 95 % occupancy. The stash also takes keys that share both
// buckets, which is rare with a good hash.
//
// The random numbers that choose the entries to move depend only on the earlier inserts. So the
// same inserts in the same order give the same table.
//
// Do not use the table if an adversary can predict the hashes of keys. Of keys with the same two
// buckets, the table refuses the 17th, because the buckets and the stash are then full.
//
// Thread-safety: const calls may run concurrently; any other call needs exclusive access. Memory: 6
// bytes per place, 4 places per bucket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/flash/cuckoo_place.h"
#include "store/env/page_allocator.h"

namespace siltfs {

class CuckooTable {
 public:
  static constexpr size_t kWays = kBucketWays;
  static constexpr size_t kMaxDisplacements = 128;
  static constexpr size_t kStashSize = 8;

  // The values of the entries that may belong to the key.
  class Candidates {
   public:
    size_t size() const { return count_; }
    uint32_t operator[](size_t i) const { return values_[i]; }
    // A range-based for loop over the result of Find is safe, because the loop keeps the temporary
    // Candidates alive.
    const uint32_t* begin() const { return values_.data(); }
    const uint32_t* end() const { return values_.data() + count_; }

    void Add(uint32_t value) { values_[count_++] = value; }

   private:
    friend class CuckooTable;

    std::array<uint32_t, 2 * kWays + kStashSize> values_;
    size_t count_ = 0;
  };

  // 1 <= bucket_bits <= kMaxBucketBits.
  explicit CuckooTable(unsigned bucket_bits);

  unsigned bucket_bits() const { return bucket_bits_; }
  size_t capacity() const { return tags_.size(); }  // without the stash
  size_t size() const { return size_; }
  double occupancy() const;
  size_t memory_bytes() const;

  // Returns the key's candidates, the greatest value first; in a log this is the newest slot.
  Candidates Find(uint64_t hash) const;
  void Prefetch(uint64_t hash) const;

  // Inserts a key that is not in the table. Returns false if the table refuses the key; then
  // nothing has changed.
  bool Insert(uint64_t hash, uint32_t value);

  // Changes the value of the key's entry from `from` to `to`. False if there is no such entry.
  bool Replace(uint64_t hash, uint32_t from, uint32_t to);

  // Calls visit(place, tag, value) with each entry except stashed ones, in the order of the places,
  // from 0 to capacity() - 1.
  template <typename Visit>
  void ForEachPlace(const Visit& visit) const {
    for (size_t i = 0; i < tags_.size(); ++i) {
      if ((tags_[i] & kTagValid) != 0) visit(i, tags_[i], values_[i]);
    }
  }
  // Calls visit(place, value) with each stashed entry.
  template <typename Visit>
  void ForEachStashed(const Visit& visit) const {
    for (const Stashed& stashed : stash_) visit(stashed.place, stashed.value);
  }

  friend bool operator==(const CuckooTable&, const CuckooTable&) = default;

 private:
  struct Stashed {
    CuckooPlace place;
    uint32_t value;
    friend bool operator==(const Stashed&, const Stashed&) = default;
  };

  uint16_t TagFor(uint16_t tag, uint32_t other_bucket) const;
  bool PutInFreeWay(uint32_t bucket, uint16_t tag, uint32_t value);
  bool Displace(const CuckooPlace& place, uint32_t value);
  uint32_t RandomBits();

  unsigned bucket_bits_;
  uint32_t bucket_mask_;
  PageVector<uint16_t> tags_;    // of each place: kTagValid, further bits, other bucket
  PageVector<uint32_t> values_;  // of each place; meaningful if the tag is valid
  std::vector<Stashed> stash_;
  size_t size_ = 0;
  uint64_t random_state_ = 0;
};

}  // namespace siltfs
