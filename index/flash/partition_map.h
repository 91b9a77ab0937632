// Finds the partition of a hash. Partitions have prefixes of different lengths, which together
// cover all hashes. A map is immutable; when a partition is replaced, a new map is made.
//
// A directory of slots leads to the partitions (Fagin, Nievergelt, Pippenger, Strong, "Extendible
// Hashing", 1979). Its size is limited: a forged index with a few very long prefixes must not need
// a slot for each prefix of that length. Then partitions share a slot, and Find tries the next
// ones.
//
// Thread-safety: const. Memory: 8 bytes for each partition, and 4 for each slot; there are at most
// 32 slots for each partition.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "index/flash/flash_partition.h"

namespace siltfs {

class PartitionMap {
 public:
  using Partitions = std::vector<std::shared_ptr<FlashPartition>>;

  // The partitions must cover all hashes, each hash once.
  explicit PartitionMap(Partitions partitions);

  // Whether the prefixes cover all hashes, each hash once; in any order.
  static bool Covers(std::vector<HashPrefix> prefixes);

  FlashPartition& Find(uint64_t hash) const {
    size_t i = slots_[SlotOf(hash)];
    while (i + 1 < firsts_.size() && firsts_[i + 1] <= hash) ++i;
    return *all_[i];
  }
  // All partitions, in the order of their hashes.
  const Partitions& all() const { return all_; }
  // The map with new partitions instead of `old`, which cover the same hashes.
  std::shared_ptr<const PartitionMap> With(const FlashPartition& old,
                                           const Partitions& instead) const;
  uint64_t memory_bytes() const {
    return slots_.size() * sizeof(uint32_t) +
           firsts_.size() * (sizeof(uint64_t) + sizeof(Partitions::value_type));
  }

 private:
  size_t SlotOf(uint64_t hash) const { return depth_ == 0 ? 0 : hash >> (64 - depth_); }

  Partitions all_;
  std::vector<uint64_t> firsts_;  // the least hash of each partition
  unsigned depth_ = 0;
  std::vector<uint32_t> slots_;  // the partition that has the slot's least hash
};

}  // namespace siltfs
