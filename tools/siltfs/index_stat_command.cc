// siltfs index stat
#include "fs/control/index_json.h"
#include "fs/open/store_index.h"
#include "tools/siltfs/index_command.h"
#include "tools/siltfs/index_stat_report.h"
#include "tools/siltfs/statistics_command.h"

namespace siltfs {
namespace {

Result<nlohmann::json> ReadIndex(Env& env, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(const StoreIndex opened, OpenStoreIndexReadOnly(env, store));
  nlohmann::json statistics = IndexToJson(opened.index->stats(), store, std::nullopt);
  statistics["rebuild_interrupted"] = opened.rebuild_interrupted;
  return statistics;
}

}  // namespace

std::function<ExitCode()> ConfigureIndexStat(CLI::App& app, Surroundings& surroundings) {
  return ConfigureStatistics(app, surroundings,
                             {.question = "index stat",

                              .read = ReadIndex,
                              .format = FormatIndexStatReport});
}

}  // namespace siltfs
