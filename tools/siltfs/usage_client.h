// What `siltfs du` and `siltfs find-duplicates` share: they find their paths in a mounted store,
// and its daemon does the work (fs/usage/usage_message.h).
//
// Errors: kNotFound if a path is not in a mounted store, kUnsupported if the paths are not in the
// same one; those of the daemon; kInterrupted after SIGINT, SIGTERM or SIGHUP.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "fs/control/client.h"
#include "fs/interface/space_usage.h"
#include "fs/usage/usage_message.h"
#include "store/base/result.h"
#include "tools/siltfs/command.h"

namespace siltfs {

struct UsagePlaces {
  control::DaemonAddress address;
  std::vector<UsagePath> paths;
};
Result<UsagePlaces> FindUsagePaths(const std::vector<std::string>& paths);

struct UsageQuestion {
  std::string command;  // for messages
  std::string subject;  // for messages: a path
  bool quiet = false;   // show no progress
  UsagePlaces places;
  usage::Wanted wanted;  // with the paths
  // Takes a line from the daemon. False if the line is none of the lists that are expected.
  std::function<Result<bool>(std::string_view line)> take;
};
// Returns the result, with the keys `store` and `seconds`. Errors have a path.
Result<nlohmann::json> AskUsage(Surroundings& surroundings, const UsageQuestion& question);

// The path of something below a given path.
std::string JoinBelow(const std::string& path, const std::string& below);

// The exit code, and a sentence on standard error, if the user may not read some of the files.
ExitCode WarnOfLeftOut(Surroundings& surroundings, uint64_t left_out);

}  // namespace siltfs
