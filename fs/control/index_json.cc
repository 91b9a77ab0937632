#include "fs/control/index_json.h"

#include <algorithm>
#include <vector>

namespace siltfs {
namespace {

using Json = nlohmann::json;

double PerEntry(uint64_t bytes, uint64_t entries) {
  return entries == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(entries);
}

// The sums over all component stores of a kind.
struct Kind {
  IndexComponentStats sum;  // occupancy: the mean
  uint64_t count = 0;
};

// Returns the kinds of stores, in the order of each kind's first store.
std::vector<Kind> KindsOf(const IndexStats& index) {
  std::vector<Kind> kinds;
  for (const IndexComponentStats& store : index.stores) {
    auto kind = std::ranges::find(kinds, store.kind, [](const Kind& k) { return k.sum.kind; });
    if (kind == kinds.end()) {
      kinds.emplace_back().sum.kind = store.kind;
      kind = kinds.end() - 1;
    }
    ++kind->count;
    IndexComponentStats& sum = kind->sum;
    sum.entries += store.entries;
    sum.flash_bytes += store.flash_bytes;
    sum.memory_bytes += store.memory_bytes;
    sum.occupancy += store.occupancy;
    sum.probes += store.probes;
    sum.flash_reads += store.flash_reads;
    sum.false_positives += store.false_positives;
    sum.flash_bytes_written += store.flash_bytes_written;
  }
  for (Kind& kind : kinds) kind.sum.occupancy /= static_cast<double>(kind.count);
  return kinds;
}

Json ComponentToJson(const IndexComponentStats& component) {
  return {
      {"kind", component.kind},
      {"entries", component.entries},
      {"flash_bytes", component.flash_bytes},
      {"memory_bytes", component.memory_bytes},
      {"occupancy", component.occupancy},
      {"probes", component.probes},
      {"flash_reads", component.flash_reads},
      {"false_positives", component.false_positives},
      {"false_positive_rate", component.FalsePositiveRate()},
      {"flash_bytes_written", component.flash_bytes_written},
  };
}

Json KindsToJson(const IndexStats& index) {
  Json kinds = Json::array();
  for (const Kind& kind : KindsOf(index)) {
    Json made = ComponentToJson(kind.sum);
    made["count"] = kind.count;
    kinds.push_back(std::move(made));
  }
  return kinds;
}

Json TotalsToJson(const IndexStats& index) {
  return {
      {"engine", index.engine},
      {"entries", index.entries},
      {"memory_bytes", index.memory_bytes},
      {"memory_bytes_per_entry", PerEntry(index.memory_bytes, index.entries)},
      {"flash_bytes", index.flash_bytes},
      {"lookups", index.lookups},
      {"flash_reads", index.flash_reads},
      {"put_flash_reads", index.put_flash_reads},
      {"entry_bytes_put", index.entry_bytes_put},
      {"flash_bytes_written", index.flash_bytes_written},
      {"read_amplification", index.ReadAmplification()},
      {"write_amplification", index.WriteAmplification()},
      {"conversions", index.conversions},
      {"merges", index.merges},
      {"merge_backlog", index.merge_backlog},
      {"damaged_pages", index.damaged_pages},
  };
}

}  // namespace

Json IndexSummaryToJson(const IndexStats& index) {
  Json summary = TotalsToJson(index);
  summary["stores"] = KindsToJson(index);
  return summary;
}

Json IndexToJson(const IndexStats& index, const std::string& store,
                 const std::optional<DaemonInfo>& daemon) {
  Json made = TotalsToJson(index);
  made["store"] = store;
  made["mountpoint"] = daemon ? Json(daemon->mountpoint) : Json();
  made["pid"] = daemon ? Json(daemon->pid) : Json();
  made["rebuild_interrupted"] = false;  // the command sets it for a store that is not mounted
  made["kinds"] = KindsToJson(index);
  Json stores = Json::array();
  for (const IndexComponentStats& component : index.stores) {
    Json one = ComponentToJson(component);
    one["partition"] = component.partition;
    one["id"] = component.id;
    stores.push_back(std::move(one));
  }
  made["stores"] = std::move(stores);
  return made;
}

}  // namespace siltfs
