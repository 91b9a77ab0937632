#include "fs/control/recompression_json.h"

#include "fs/interface/stats.h"

namespace siltfs {

Result<nlohmann::json> RecompressStore(StoreMaintenance& maintenance, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(const RecompressionReport report, maintenance.Recompress());
  return nlohmann::json{
      {"store", store},
      {"segments_rewritten", report.segments_rewritten},
      {"segments_kept", report.segments_kept},
      {"segments_left", report.segments_left},
      {"bytes_before", report.bytes_before},
      {"bytes_after", report.bytes_after},
      {"awaiting_recompression_bytes", report.awaiting_recompression_bytes},
      {"delta_chunks", report.delta_chunks},
      {"delta_saved_bytes", report.delta_saved_bytes},
  };
}

}  // namespace siltfs
