#include "index/silt/partition.h"

namespace siltfs {

std::vector<StoreCounters*> PartitionVersion::Counters() const {
  std::vector<StoreCounters*> counters;
  counters.reserve(StoreCount());
  for (auto store = logs.rbegin(); store != logs.rend(); ++store) {
    counters.push_back(&(*store)->counters());
  }
  for (auto store = hashes.rbegin(); store != hashes.rend(); ++store) {
    counters.push_back(&(*store)->counters());
  }
  if (SortedEntries() > 0) counters.push_back(&sorted->counters());
  return counters;
}

void PartitionVersion::AddStats(std::vector<IndexComponentStats>& stats) const {
  const std::vector<uint64_t> probes = tally.Probes(StoreCount());
  const size_t unsorted = logs.size() + hashes.size();
  // Tallies begin with the newest store, and the lists with the oldest. An empty SortedStore is not
  // searched.
  const auto add = [&](const auto& store, size_t newer) {
    stats.push_back(store->Stats());
    if (newer < probes.size()) stats.back().probes += probes[newer];
  };
  for (size_t i = 0; i < logs.size(); ++i) add(logs[i], logs.size() - 1 - i);
  for (size_t i = 0; i < hashes.size(); ++i) add(hashes[i], unsorted - 1 - i);
  if (sorted) add(sorted, unsorted);
}

PartitionSums PartitionSums::Of(const PartitionVersion& version) {
  PartitionSums sums;
  sums.hash_stores = version.hashes.size();
  for (const auto& store : version.hashes) {
    sums.hash_entries += store->entries();
    sums.wanted_bytes += store->filter_bytes();
    if (!store->has_filter()) {
      ++sums.unfiltered;
      sums.complete = false;
    } else {
      sums.resident_bytes += store->filter_bytes();
    }
  }
  if (version.sorted == nullptr) return sums;
  const SortedStore& sorted = *version.sorted;
  sums.sorted_entries = sorted.entries();
  sums.wanted_bytes += sorted.index_bytes();
  if (sorted.index_kind() == PageIndexKind::kBounds) sums.bounds_bytes = sorted.index_bytes();
  if (sorted.index() == nullptr) {
    sums.complete = false;
  } else {
    sums.resident_bytes += sorted.index_bytes();
  }
  sums.resident_bytes += sorted.filter_bytes();
  return sums;
}

}  // namespace siltfs
