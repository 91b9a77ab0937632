#include "fs/interface/stats.h"

namespace siltfs {
namespace {

double Ratio(uint64_t of, uint64_t to) {
  return of == 0 || to == 0 ? 1.0 : static_cast<double>(of) / static_cast<double>(to);
}

}  // namespace

double FileSystemStats::DedupRatio() const { return Ratio(logical_bytes, unique_bytes); }

double FileSystemStats::CompressionRatio() const {
  return Ratio(unique_bytes, stored_bytes > dead_bytes ? stored_bytes - dead_bytes : 0);
}

double FileSystemStats::TotalRatio() const {
  return Ratio(logical_bytes, stored_bytes + metadata_bytes + index_bytes);
}

}  // namespace siltfs
