// The statistics of a store as metrics in the text format of OpenMetrics, for Prometheus and
// similar systems. docs/monitoring.md describes each metric.
//
// The text also fits the older text format of Prometheus, which the textfile collector of
// node_exporter reads: there are only gauges and counters, and there are no timestamps.
//
// Thread-safety: pure functions, safe to call from any thread.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

namespace siltfs {

// Returns the metrics of this store, with the last line "# EOF". `statistics`: see
// fs/control/stats_json.h; null if they could not be read. Then the text has only siltfs_up.
std::string FormatMetrics(const std::string& store, const nlohmann::json& statistics);

// The same for several stores: the samples of a family are together, as the format requires.
struct StoreStatistics {
  std::string store;
  nlohmann::json statistics;  // null if they could not be read
};
std::string FormatMetrics(std::span<const StoreStatistics> stores);

}  // namespace siltfs
