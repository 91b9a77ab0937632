#include "index/flash/cuckoo_table.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace siltfs {
CuckooTable::CuckooTable(unsigned bucket_bits)
    : bucket_bits_(bucket_bits),
      bucket_mask_((1U << bucket_bits) - 1),
      tags_(kWays << bucket_bits),
      values_(kWays << bucket_bits) {
  assert(bucket_bits >= 1 && bucket_bits <= kMaxBucketBits);
}

double CuckooTable::occupancy() const {
  return static_cast<double>(size_) / static_cast<double>(capacity());
}

size_t CuckooTable::memory_bytes() const {
  return tags_.capacity() * sizeof(uint16_t) + values_.capacity() * sizeof(uint32_t) +
         stash_.capacity() * sizeof(Stashed);
}

// Returns `tag` with the number of the other bucket replaced by `other_bucket`.
uint16_t CuckooTable::TagFor(uint16_t tag, uint32_t other_bucket) const {
  return static_cast<uint16_t>((tag & ~bucket_mask_) | other_bucket);
}

// Uses splitmix's increment and one multiplication. Such numbers are random enough to choose the
// entries to move.
uint32_t CuckooTable::RandomBits() {
  random_state_ += 0x9e3779b97f4a7c15U;
  return static_cast<uint32_t>(((random_state_ ^ (random_state_ >> 32)) * 0xd6e8feb86659fd93U) >>
                               32);
}

CuckooTable::Candidates CuckooTable::Find(uint64_t hash) const {
  const CuckooPlace place = CuckooPlaceOf(hash, bucket_bits_);
  Candidates found;
  for (size_t side = 0; side < 2; ++side) {
    const size_t first = place.buckets[side] * kWays;
    uint64_t ways = WaysWithTag(BucketTags(&tags_[first]), place.tags[side]);
    if (side == 1 && place.buckets[1] == place.buckets[0]) ways = 0;
    for (; ways != 0; ways &= ways - 1) found.Add(values_[first + FirstWay(ways)]);
  }
  for (const Stashed& stashed : stash_) {
    if (stashed.place == place) found.Add(stashed.value);
  }
  if (found.count_ > 1) {
    std::sort(found.values_.begin(), found.values_.begin() + found.count_, std::greater<>());
  }
  return found;
}

void CuckooTable::Prefetch(uint64_t hash) const {
  const CuckooPlace place = CuckooPlaceOf(hash, bucket_bits_);
  for (uint32_t bucket : place.buckets) __builtin_prefetch(&tags_[bucket * kWays]);
}

bool CuckooTable::PutInFreeWay(uint32_t bucket, uint16_t tag, uint32_t value) {
  const size_t first = bucket * kWays;
  const uint64_t free = FreeWays(BucketTags(&tags_[first]));
  if (free == 0) return false;
  const size_t i = first + FirstWay(free);
  tags_[i] = tag;
  values_[i] = value;
  return true;
}

// Puts the key in the place of another entry, and moves that entry into its other bucket. If that
// bucket is full, too, the moved entry takes the place of a third one, and so on, until a moved
// entry finds a free place. After kMaxDisplacements moves without a free place, undoes all moves
// and returns false.
bool CuckooTable::Displace(const CuckooPlace& place, uint32_t value) {
  struct Undo {
    size_t index;
    uint16_t tag;
    uint32_t value;
  };
  std::array<Undo, kMaxDisplacements> undo;
  const size_t side = RandomBits() & 1;
  uint32_t bucket = place.buckets[side];
  uint16_t tag = place.tags[side];
  for (size_t moves = 0; moves < kMaxDisplacements; ++moves) {
    const size_t index = bucket * kWays + RandomBits() % kWays;
    undo[moves] = {.index = index, .tag = tags_[index], .value = values_[index]};
    tags_[index] = tag;
    values_[index] = value;
    const uint32_t other = undo[moves].tag & bucket_mask_;
    tag = TagFor(undo[moves].tag, bucket);
    value = undo[moves].value;
    bucket = other;
    if (PutInFreeWay(bucket, tag, value)) return true;
  }
  for (size_t moves = kMaxDisplacements; moves-- > 0;) {
    tags_[undo[moves].index] = undo[moves].tag;
    values_[undo[moves].index] = undo[moves].value;
  }
  return false;
}

bool CuckooTable::Insert(uint64_t hash, uint32_t value) {
  const CuckooPlace place = CuckooPlaceOf(hash, bucket_bits_);
  const uint64_t random_state = random_state_;
  const bool placed = PutInFreeWay(place.buckets[0], place.tags[0], value) ||
                      PutInFreeWay(place.buckets[1], place.tags[1], value) ||
                      Displace(place, value);
  if (!placed) {
    if (stash_.size() == kStashSize) {
      random_state_ = random_state;
      return false;
    }
    stash_.push_back({.place = place, .value = value});
  }
  ++size_;
  return true;
}

bool CuckooTable::Replace(uint64_t hash, uint32_t from, uint32_t to) {
  const CuckooPlace place = CuckooPlaceOf(hash, bucket_bits_);
  for (size_t side = 0; side < 2; ++side) {
    const size_t first = place.buckets[side] * kWays;
    uint64_t ways = WaysWithTag(BucketTags(&tags_[first]), place.tags[side]);
    for (; ways != 0; ways &= ways - 1) {
      uint32_t& value = values_[first + FirstWay(ways)];
      if (value != from) continue;
      value = to;
      return true;
    }
  }
  for (Stashed& stashed : stash_) {
    if (!(stashed.place == place) || stashed.value != from) continue;
    stashed.value = to;
    return true;
  }
  return false;
}

}  // namespace siltfs
