// siltfs index stat
#include "fs/control/index_json.h"
#include "fs/core/store_index.h"
#include "tools/siltfs/figures_command.h"
#include "tools/siltfs/index_command.h"
#include "tools/siltfs/index_stat_report.h"

namespace siltfs {
namespace {

Result<nlohmann::json> ReadIndex(Env& env, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(const StoreIndex opened, OpenStoreIndexReadOnly(env, store));
  nlohmann::json figures = IndexToJson(opened.index->stats(), store, std::nullopt);
  figures["rebuild_interrupted"] = opened.rebuild_interrupted;
  return figures;
}

}  // namespace

std::function<ExitCode()> ConfigureIndexStat(CLI::App& app, Surroundings& surroundings) {
  return ConfigureFigures(app, surroundings,
                          {.question = "index stat",
                           .quick_anywhere = true,
                           .read = ReadIndex,
                           .format = FormatIndexStatReport});
}

}  // namespace siltfs
