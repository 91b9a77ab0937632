#include "fs/control/stats_json.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

double PerEntry(uint64_t bytes, uint64_t entries) {
  return entries == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(entries);
}

Json ComponentToJson(const IndexComponentStats& component) {
  return {
      {"kind", component.kind},
      {"entries", component.entries},
      {"flash_bytes", component.flash_bytes},
      {"memory_bytes", component.memory_bytes},
      {"occupancy", component.occupancy},
      {"flash_reads", component.flash_reads},
      {"flash_bytes_written", component.flash_bytes_written},
  };
}

Json IndexToJson(const IndexStats& index) {
  Json stores = Json::array();
  for (const IndexComponentStats& component : index.stores)
    stores.push_back(ComponentToJson(component));
  return {
      {"engine", index.engine},
      {"entries", index.entries},
      {"memory_bytes", index.memory_bytes},
      {"memory_bytes_per_entry", PerEntry(index.memory_bytes, index.entries)},
      {"flash_bytes", index.flash_bytes},
      {"lookups", index.lookups},
      {"flash_reads", index.flash_reads},
      {"flash_bytes_written", index.flash_bytes_written},
      {"read_amplification", index.ReadAmplification()},
      {"write_amplification", index.WriteAmplification()},
      {"stores", std::move(stores)},
  };
}

}  // namespace

Json ToJson(const FileSystemStats& stats, const std::string& store,
            const std::optional<DaemonInfo>& daemon) {
  return {
      {"store", store},
      {"mountpoint", daemon ? Json(daemon->mountpoint) : Json()},
      {"pid", daemon ? Json(daemon->pid) : Json()},
      {"logical_bytes", stats.logical_bytes},
      {"unique_bytes", stats.unique_bytes},
      {"stored_bytes", stats.stored_bytes},
      {"dead_bytes", stats.dead_bytes},
      {"reserve_bytes", stats.reserve_bytes},
      {"metadata_bytes", stats.metadata_bytes},
      {"index_bytes", stats.index_bytes},
      {"files", stats.files},
      {"directories", stats.directories},
      {"chunks_logical", stats.chunks_logical},
      {"chunks_unique", stats.chunks_unique},
      {"dedup_ratio", stats.DedupRatio()},
      {"compression_ratio", stats.CompressionRatio()},
      {"total_ratio", stats.TotalRatio()},
      {"sha1_collisions", stats.sha1_collisions},
      {"last_commit", stats.last_commit},
      {"read_only", stats.read_only},
      {"read_only_cause", stats.read_only_cause.empty() ? Json() : Json(stats.read_only_cause)},
      {"index", IndexToJson(stats.index)},
  };
}

}  // namespace siltfs
