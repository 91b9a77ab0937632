// siltfs index stat
#include <memory>
#include <ostream>

#include "fs/control/client.h"
#include "fs/control/index_json.h"
#include "fs/core/store_index.h"
#include "tools/siltfs/index_command.h"
#include "tools/siltfs/index_stat_report.h"
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
    auto mounted = control::Ask(store, "index stat");
    if (mounted.ok() || !mounted.status().Is(StatusCode::kNotFound)) return mounted;
    const Result<StoreIndex> opened = OpenStoreIndexReadOnly(env, store);
    if (opened.ok()) return IndexToJson(opened->index->stats(), store, std::nullopt);
    if (attempt > 0 || !opened.status().Is(StatusCode::kInUse)) return opened.status();
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
    surroundings.out << FormatIndexStatReport(*figures);
  }
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureIndexStat(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "The store's directory, or where it is mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a table");
  return [arguments, &surroundings] { return Run(*arguments, surroundings); };
}

}  // namespace siltfs
