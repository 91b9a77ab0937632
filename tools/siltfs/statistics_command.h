// Code shared by `siltfs stat` and `siltfs index stat`. If the store is mounted, it asks the daemon
// for the command's result; otherwise this process computes the result from the store's files. Then
// it prints the result as text or JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "fs/control/client.h"
#include "tools/siltfs/command.h"

namespace siltfs {

struct StatisticsCommand {
  std::string question;  // the name of the command in the request to the daemon
  // Returns the command's result for a store that is not mounted.
  std::function<Result<nlohmann::json>(Env& env, const std::string& store)> read;
  std::function<std::string(const nlohmann::json& statistics)> format;
  // Checks a daemon's result, so that `format` can rely on it. May be empty.
  std::function<Result<nlohmann::json>(nlohmann::json statistics)> check = {};
};

// Returns the address for any path in a mount, or for a store's directory. Refuses a file outside
// of a mount, because a store is a directory.
Result<control::DaemonAddress> FindStatisticsStore(Env& env, const std::string& place);

std::function<ExitCode()> ConfigureStatistics(CLI::App& app, Surroundings& surroundings,
                                              StatisticsCommand command);

}  // namespace siltfs
