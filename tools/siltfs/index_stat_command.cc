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
  return IndexToJson(opened.index->stats(), store, std::nullopt);
}

}  // namespace

std::function<ExitCode()> ConfigureIndexStat(CLI::App& app, Surroundings& surroundings) {
  return ConfigureFigures(
      app, surroundings,
      {.question = "index stat", .read = ReadIndex, .format = FormatIndexStatReport});
}

}  // namespace siltfs
