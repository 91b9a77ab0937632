// Code shared by `siltfs stat` and `siltfs index stat`. It gets the statistics of a store from its
// daemon if the store is mounted, otherwise from its files. It prints a table or JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/siltfs/command.h"

namespace siltfs {

struct StatisticsCommand {
  std::string question;  // to the daemon
  // If true, the place may be any path in the mount, and the daemon answers soon. If false, the
  // place is the mountpoint, and the answer may take long.
  bool quick_anywhere = false;
  // Reads the statistics of a store that is not mounted.
  std::function<Result<nlohmann::json>(Env& env, const std::string& store)> read;
  std::function<std::string(const nlohmann::json& statistics)> format;
};

std::function<ExitCode()> ConfigureStatistics(CLI::App& app, Surroundings& surroundings,
                                              StatisticsCommand command);

}  // namespace siltfs
