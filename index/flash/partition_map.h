// Finds the partition of a hash. Partitions have prefixes of different lengths, which together
// cover all hashes. A map is immutable; when a partition is replaced, a new map is made.
//
// Thread-safety: const. Memory: a pointer for each prefix of the greatest length in use (Fagin,
// Nievergelt, Pippenger, Strong, "Extendible Hashing", 1979).
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

  FlashPartition& Find(uint64_t hash) const { return *slots_[SlotOf(hash)]; }
  // All partitions, in the order of their hashes.
  const Partitions& all() const { return all_; }
  // The map with new partitions instead of `old`, which cover the same hashes.
  std::shared_ptr<const PartitionMap> With(const FlashPartition& old,
                                           const Partitions& instead) const;
  uint64_t memory_bytes() const { return slots_.size() * sizeof(FlashPartition*); }

 private:
  size_t SlotOf(uint64_t hash) const { return depth_ == 0 ? 0 : hash >> (64 - depth_); }

  Partitions all_;
  unsigned depth_ = 0;
  std::vector<FlashPartition*> slots_;
};

}  // namespace siltfs
