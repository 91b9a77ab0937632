// The metrics that are made of single numbers of the statistics.
#pragma once

#include <cstdint>
#include <span>

namespace siltfs {

enum class MetricType : uint8_t { kGauge, kCounter };

struct MetricFamily {
  const char* name;     // without "siltfs_", and for a counter without "_total"
  const char* pointer;  // the place of the number in the statistics (a JSON pointer)
  MetricType type;
  const char* unit;  // the last part of the name, or empty
  const char* help;  // one line without quotes and backslashes
};

// The pointers begin at the document of the statistics.
std::span<const MetricFamily> StoreMetricFamilies();
// The pointers begin at an element of "stores" in the statistics of the index.
std::span<const MetricFamily> IndexKindMetricFamilies();

}  // namespace siltfs
