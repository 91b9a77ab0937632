#include "index/flash/partition_map.h"

#include <algorithm>

namespace siltfs {

PartitionMap::PartitionMap(Partitions partitions) : all_(std::move(partitions)) {
  std::ranges::sort(all_, {}, [](const auto& partition) { return partition->prefix().first; });
  for (const auto& partition : all_) depth_ = std::max(depth_, partition->prefix().depth);
  slots_.resize(size_t{1} << depth_);
  for (const auto& partition : all_) {
    const HashPrefix& prefix = partition->prefix();
    for (size_t slot = SlotOf(prefix.first); slot <= SlotOf(prefix.last()); ++slot) {
      slots_[slot] = partition.get();
    }
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
