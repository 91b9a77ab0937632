// siltfs stat
#include "fs/control/stats_json.h"
#include "fs/open/store_stats.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/stat_report.h"
#include "tools/siltfs/statistics_command.h"

namespace siltfs {
namespace {

Result<nlohmann::json> ReadStats(Env& env, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, ReadStoreStats(env, store));
  return ToJson(stats, store, std::nullopt);
}

}  // namespace

std::function<ExitCode()> ConfigureStat(CLI::App& app, Surroundings& surroundings) {
  return ConfigureStatistics(
      app, surroundings,
      {.question = "stat", .quick_anywhere = true, .read = ReadStats, .format = FormatStatReport});
}

}  // namespace siltfs
