#include "tools/siltfs/figures_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "fs/control/client.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct Arguments {
  std::string place;
  bool json = false;
};

Result<nlohmann::json> ReadFigures(Env& env, const std::string& store,
                                   const FiguresCommand& command) {
  // Between a failed attempt at the one and the other the store may have been mounted or unmounted:
  // so twice.
  for (int attempt = 0;; ++attempt) {
    auto mounted = control::Ask(store, command.question);
    const bool daemon_gone = !mounted.ok() && (mounted.status().Is(StatusCode::kNotFound) ||
                                               mounted.status().Is(StatusCode::kAborted));
    if (!daemon_gone) return mounted;
    auto read = command.read(env, store);
    if (read.ok() || attempt > 0 || !read.status().Is(StatusCode::kInUse)) return read;
  }
}

ExitCode Run(const Arguments& arguments, Surroundings& surroundings,
             const FiguresCommand& command) {
  const Result<std::string> store = StoreAt(arguments.place);
  if (!store.ok()) return Fail(surroundings, store.status());
  const Result<nlohmann::json> figures = ReadFigures(surroundings.env, *store, command);
  if (!figures.ok()) return Fail(surroundings, figures.status());
  surroundings.out << (arguments.json ? figures->dump(2) + "\n" : command.format(*figures));
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureFigures(CLI::App& app, Surroundings& surroundings,
                                           FiguresCommand command) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "The store's directory, or where it is mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a table");
  return [arguments, &surroundings, command = std::move(command)] {
    return Run(*arguments, surroundings, command);
  };
}

}  // namespace siltfs
