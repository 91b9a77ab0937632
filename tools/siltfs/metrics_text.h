// The statistics of a store as metrics in a text format, for Prometheus and similar systems.
// docs/monitoring.md describes each metric.
//
// Thread-safety: pure functions, safe to call from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

namespace siltfs {

enum class MetricsFormat : uint8_t {
  kOpenMetrics,  // 1.0
  // The older format (version 0.0.4), which the textfile collector of node_exporter reads. There
  // the description of a counter has the name of its samples.
  kPrometheus,
};

// Returns the metrics of this store, with the last line "# EOF". `statistics`: see
// fs/control/stats_json.h; null if they could not be read. Then the text has only siltfs_up.
std::string FormatMetrics(const std::string& store, const nlohmann::json& statistics,
                          MetricsFormat format = MetricsFormat::kOpenMetrics);

// The same for several stores: the samples of a family are together, as the format requires.
struct StoreStatistics {
  std::string store;
  nlohmann::json statistics;  // null if they could not be read
};
std::string FormatMetrics(std::span<const StoreStatistics> stores,
                          MetricsFormat format = MetricsFormat::kOpenMetrics);

}  // namespace siltfs
