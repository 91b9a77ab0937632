#include "fs/control/scrub_json.h"

#include "fs/interface/stats.h"

namespace siltfs {

Result<nlohmann::json> ScrubStore(StoreMaintenance& maintenance, const std::string& store,
                                  ScrubMode mode) {
  SILTFS_ASSIGN_OR_RETURN(const ScrubReport report, maintenance.Scrub(mode));
  return nlohmann::json{
      {"store", store},
      {"complete", report.complete},
      {"resumed", report.resumed},
      {"segments", report.segments},
      {"blocks", report.blocks},
      {"chunks", report.chunks},
      {"bytes", report.bytes},
      {"damaged_blocks", report.damaged_blocks},
      {"damaged_chunks", report.damaged_chunks},
      {"damaged_footers", report.damaged_footers},
      {"damaged_files", report.damaged_files},
      {"seconds", report.seconds},
  };
}

bool ReportsDamage(const nlohmann::json& outcome) {
  const auto number = [&](const char* key) { return outcome.at(key).get<uint64_t>(); };
  return number("damaged_chunks") + number("damaged_footers") + number("damaged_files") > 0;
}

}  // namespace siltfs
