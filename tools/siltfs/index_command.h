// The commands below `siltfs index`. Each has its file (index_NAME_command.cc).
#pragma once

#include "tools/siltfs/command.h"

namespace siltfs {

std::function<ExitCode()> ConfigureIndexDump(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureIndexPlan(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureIndexRebuild(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureIndexStat(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureIndexVerify(CLI::App& app, Surroundings& surroundings);

}  // namespace siltfs
