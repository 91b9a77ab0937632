#include "index/flash/partition_map.h"

#include <algorithm>
#include <bit>

namespace siltfs {
namespace {

// Hashes are even, so the longest prefixes of an index have few bits more than the average.
constexpr unsigned kSpareDepth = 4;

}  // namespace

PartitionMap::PartitionMap(Partitions partitions) : all_(std::move(partitions)) {
  std::ranges::sort(all_, {}, [](const auto& partition) { return partition->prefix().first; });
  for (const auto& partition : all_) {
    depth_ = std::max(depth_, partition->prefix().depth);
    firsts_.push_back(partition->prefix().first);
  }
  const auto most_depth = static_cast<unsigned>(std::bit_width(all_.size())) + kSpareDepth;
  depth_ = std::min(depth_, most_depth);
  slots_.resize(size_t{1} << depth_);
  uint32_t number = 0;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    const uint64_t least = depth_ == 0 ? 0 : uint64_t{slot} << (64 - depth_);
    while (number + 1 < firsts_.size() && firsts_[number + 1] <= least) ++number;
    slots_[slot] = number;
  }
}

bool PartitionMap::Covers(std::vector<HashPrefix> prefixes) {
  std::ranges::sort(prefixes, {}, [](const HashPrefix& prefix) { return prefix.first; });
  uint64_t next = 0;
  for (size_t i = 0; i < prefixes.size(); ++i) {
    if (prefixes[i].first != next) return false;
    next = prefixes[i].last() + 1;
    if ((next == 0) != (i + 1 == prefixes.size())) return false;
  }
  return !prefixes.empty();
}

std::shared_ptr<const PartitionMap> PartitionMap::With(const FlashPartition& old,
                                                       const Partitions& instead) const {
  Partitions partitions;
  for (const auto& partition : all_) {
    if (partition.get() != &old) partitions.push_back(partition);
  }
  partitions.insert(partitions.end(), instead.begin(), instead.end());
  return std::make_shared<PartitionMap>(std::move(partitions));
}

}  // namespace siltfs
