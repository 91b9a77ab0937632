// The subcommands of `siltfs index`. Each has its own file (index_NAME_command.cc).
#pragma once

#include <string>

#include "tools/siltfs/command.h"

namespace siltfs {

// Returns the message that the rebuild of the index in the directory `index` was interrupted.
inline std::string InterruptedRebuild(const std::string& index) {
  return index + ": siltfs index rebuild was interrupted: run it again, or mount the store";
}

std::function<ExitCode()> ConfigureIndexDump(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureIndexPlan(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureIndexRebuild(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureIndexStat(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureIndexVerify(CLI::App& app, Surroundings& surroundings);

}  // namespace siltfs
