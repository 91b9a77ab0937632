#include "fs/control/gc_json.h"

#include "fs/interface/stats.h"

namespace siltfs {

Result<nlohmann::json> CollectGarbageOf(StoreMaintenance& maintenance, const std::string& store,
                                        bool dry_run) {
  SILTFS_ASSIGN_OR_RETURN(const GarbageReport report, maintenance.CollectGarbage(dry_run));
  return nlohmann::json{
      {"store", store},
      {"dry_run", report.dry_run},
      {"segments_checked", report.segments_checked},
      {"segments_removed", report.segments_removed},
      {"segments_left", report.segments_left},
      {"bytes_removed", report.bytes_removed},
      {"bytes_copied", report.bytes_copied},
      {"bytes_freed", report.bytes_freed},
      {"dead_bytes", report.dead_bytes},
      {"live_chunks", report.live_chunks},
      {"dead_chunks", report.dead_chunks},
  };
}

}  // namespace siltfs
