// The order in which the index benchmark updates entries. Each round updates each of the N entries
// once, in a permuted order, so that the entries of one round have all ages. Because the
// permutation can be computed in both directions, the benchmark knows the newest version of each
// entry without a list.
//
// Thread-safety: immutable.
#pragma once

#include <cstdint>

namespace siltfs {

class UpdateOrder {
 public:
  // `entries` is at most kMostEntries, and not 0.
  static constexpr uint64_t kMostEntries = uint64_t{1} << 40;
  UpdateOrder(uint64_t entries, uint64_t seed);

  // The number of the entry that an update replaces; updates are counted from 0.
  uint64_t NumberOf(uint64_t update) const;
  // The version that an update gives to its entry. Version 0 was put first.
  uint32_t VersionOf(uint64_t update) const { return static_cast<uint32_t>(update / entries_ + 1); }
  // The version that the entry `number` has after the first `updates` updates.
  uint32_t VersionAfter(uint64_t updates, uint64_t number) const {
    if (updates == 0) return 0;
    const bool updated = PlaceOf(number) < updates % entries_;
    return static_cast<uint32_t>(updates / entries_ + (updated ? 1 : 0));
  }

 private:
  // The place of an entry in each round.
  uint64_t PlaceOf(uint64_t number) const;

  // The entry at place i has the number (factor * i + offset) mod entries.
  const uint64_t entries_;
  const uint64_t factor_;
  const uint64_t inverse_;  // of the factor
  const uint64_t offset_;
};

}  // namespace siltfs
