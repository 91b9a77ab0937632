// siltfs stat
#include <fmt/ostream.h>

#include <memory>
#include <ostream>

#include "fs/control/client.h"
#include "fs/control/stats_json.h"
#include "fs/core/store_stats.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/stat_report.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct Arguments {
  std::string place;
  bool json = false;
};

// Of a mounted store from its daemon, of another from its files.
Result<nlohmann::json> ReadFigures(Env& env, const std::string& store) {
  // Between a failed attempt at the one and the other the store may have been mounted or unmounted:
  // so twice.
  for (int attempt = 0;; ++attempt) {
    auto mounted = control::Ask(store, "stat");
    const bool daemon_gone = !mounted.ok() && (mounted.status().Is(StatusCode::kNotFound) ||
                                               mounted.status().Is(StatusCode::kAborted));
    if (!daemon_gone) return mounted;
    const Result<FileSystemStats> stats = ReadStoreStats(env, store);
    if (stats.ok()) return ToJson(*stats, store, std::nullopt);
    if (attempt > 0 || !stats.status().Is(StatusCode::kInUse)) return stats.status();
  }
}

ExitCode Run(const Arguments& arguments, Surroundings& surroundings) {
  const Result<std::string> store = StoreAt(arguments.place);
  if (!store.ok()) return Fail(surroundings, store.status());
  const Result<nlohmann::json> figures = ReadFigures(surroundings.env, *store);
  if (!figures.ok()) return Fail(surroundings, figures.status());
  if (arguments.json) {
    surroundings.out << figures->dump(2) << "\n";
  } else {
    surroundings.out << FormatStatReport(*figures);
  }
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureStat(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "The store's directory, or where it is mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a table");
  return [arguments, &surroundings] { return Run(*arguments, surroundings); };
}

}  // namespace siltfs
