// siltfs bucket and its subcommands.
#pragma once

#include <functional>

#include "tools/siltfs/command.h"

namespace siltfs {

// Its subcommands have exit codes of different types.
std::function<int()> ConfigureBucket(CLI::App& app, Surroundings& surroundings);

std::function<ExitCode()> ConfigureBucketPush(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureBucketPull(CLI::App& app, Surroundings& surroundings);
// With the exit codes of fsck(8).
std::function<FsckCode()> ConfigureBucketVerify(CLI::App& app, Surroundings& surroundings);

}  // namespace siltfs
