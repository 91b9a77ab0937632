#include "tools/siltfs/figures_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "fs/control/client.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct Arguments {
  std::string place;
  bool json = false;
};

Result<nlohmann::json> ReadFigures(Env& env, const control::DaemonAddress& address,
                                   const FiguresCommand& command) {
  const auto patience =
      command.quick_anywhere ? control::Patience() : control::Patience::WhileItRuns();
  // Between a failed attempt at the one and the other the store may have been mounted or unmounted:
  // so twice.
  for (int attempt = 0;; ++attempt) {
    auto mounted = control::Ask(address, command.question, patience);
    if (mounted.ok() || !control::IsGone(mounted.status())) return mounted;
    auto read = command.read(env, address.store);
    if (read.ok()) return read;
    if (attempt > 0 || !read.status().Is(StatusCode::kInUse)) {
      return ExplainLock(std::move(read).status(), address.store);
    }
  }
}

// A file is no store, and one in a mount would have been found.
Result<control::DaemonAddress> FindStore(Env& env, const std::string& place,
                                         const FiguresCommand& command) {
  if (!command.quick_anywhere) return AddressAt(place);
  SILTFS_ASSIGN_OR_RETURN(auto address, AddressAround(place));
  if (!address.mountpoint.empty()) return address;
  const auto info = env.GetFileInfo(address.store);
  if (info.ok() && info->type != FileType::kDirectory) {
    return Status(StatusCode::kNotFound,
                  "is neither the directory of a store nor in a mounted siltfs file system")
        .At(address.store);
  }
  return address;
}

ExitCode Run(const Arguments& arguments, Surroundings& surroundings,
             const FiguresCommand& command) {
  const auto address = FindStore(surroundings.env, arguments.place, command);
  if (!address.ok()) return Fail(surroundings, address.status());
  const Result<nlohmann::json> figures = ReadFigures(surroundings.env, *address, command);
  if (!figures.ok()) return Fail(surroundings, figures.status());
  if (arguments.json) {
    PrintJson(surroundings, *figures);
  } else {
    surroundings.out << command.format(*figures);
  }
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
