// The memory side of a LogStore (SILT, section 3.1): a partial-key cuckoo hash table from a key to
// its slot in the log, 4-way, and at the same time the filter that keeps most lookups of absent
// keys off flash.
//
// Two slices of a key's hash name its two buckets. An entry keeps no key, only a tag: the number of
// its *other* bucket and further bits of the hash, 15 bits in all whatever the size of the table.
// So an entry moves between its buckets without a look at its key on flash, and a small table
// filters as well as a large one: an absent key meets 8 / 2^15 = 2^-12 entries of its tag in a full
// table. A tag match is therefore only a candidate, for the caller to confirm in the log.
//
// Insert moves up to 128 entries aside. If there is still no room the moves are undone, and the key
// goes into a stash of 8; when that is full too the key is refused and the table is as it was
// before, at about 95 % occupancy. The stash also takes keys that share both buckets, which for a
// good hash is rare.
//
// Which entries move depends on the table alone: the same inserts in the same order give the same
// table.
//
// Thread-safety: const calls may run together, others alone. Memory: 6 bytes a place; places are 4
// times the buckets. When not to use it: keys whose hash an adversary can foresee; he fills two
// buckets and the stash with 17 keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/silt/cuckoo_place.h"
#include "store/env/page_allocator.h"

namespace siltfs {

class CuckooTable {
 public:
  static constexpr size_t kWays = kBucketWays;
  static constexpr size_t kMaxDisplacements = 128;
  static constexpr size_t kStashSize = 8;

  // The values of the entries that a key may be.
  class Candidates {
   public:
    size_t size() const { return count_; }
    uint32_t operator[](size_t i) const { return values_[i]; }
    // A loop over a temporary is safe, as the loop keeps it.
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

  // The greatest value first: in a log, the newest.
  Candidates Find(uint64_t hash) const;
  void Prefetch(uint64_t hash) const;

  // Enters a key that is not in the table. False: refused, and nothing has changed.
  bool Insert(uint64_t hash, uint32_t value);

  // Gives the key's entry, known by its value, another value. False if there is none.
  bool Replace(uint64_t hash, uint32_t from, uint32_t to);

  // Calls visit(place, tag, value) with each entry but the stashed ones, in the order of the
  // places, which are numbered from 0 to capacity() - 1.
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
  PageVector<uint16_t> tags_;    // kValid, further bits, other bucket
  PageVector<uint32_t> values_;  // where the tag is valid
  std::vector<Stashed> stash_;
  size_t size_ = 0;
  uint64_t random_state_ = 0;
};

}  // namespace siltfs
