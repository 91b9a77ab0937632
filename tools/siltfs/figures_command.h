// What `siltfs stat` and `siltfs index stat` have in common: figures of a store, from its daemon if
// it is mounted, else from its files, as a table or as JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/siltfs/command.h"

namespace siltfs {

struct FiguresCommand {
  std::string question;  // to the daemon
  // The place may be any path in the mount; the answer comes soon. Else it is the mountpoint, and
  // the answer may take long.
  bool quick_anywhere = false;
  // Of a store that is not mounted.
  std::function<Result<nlohmann::json>(Env& env, const std::string& store)> read;
  std::function<std::string(const nlohmann::json& figures)> format;
};

std::function<ExitCode()> ConfigureFigures(CLI::App& app, Surroundings& surroundings,
                                           FiguresCommand command);

}  // namespace siltfs
