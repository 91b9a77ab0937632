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
// The requests to the bucket of a store: a family with a sample for each kind.
struct RequestKind {
  const char* kind;     // the value of the label
  const char* pointer;  // the place of the number in the statistics
};
extern const MetricFamily kBucketRequestsFamily;
std::span<const RequestKind> BucketRequestKinds();
// The pointers begin at an element of "stores" in the statistics of the index.
std::span<const MetricFamily> IndexKindMetricFamilies();

}  // namespace siltfs
