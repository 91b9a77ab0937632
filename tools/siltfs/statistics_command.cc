#include "tools/siltfs/statistics_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <utility>

#include "fs/control/client.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct StatisticsArguments {
  std::string place;
  bool json = false;
};

Result<nlohmann::json> CheckAnswer(const StatisticsCommand& command, nlohmann::json answer,
                                   const control::DaemonAddress& address) {
  auto checked = command.check(std::move(answer));
  if (checked.ok()) return checked;
  return std::move(checked).status().At(address.store);
}

Result<nlohmann::json> ReadStatistics(Env& env, const control::DaemonAddress& address,
                                      const StatisticsCommand& command) {
  // The store may be mounted or unmounted after the daemon was asked and before the files are read.
  // So both steps are tried twice.
  for (int attempt = 0;; ++attempt) {
    auto mounted = control::Ask(address, command.question);
    if (mounted.ok() && command.check) return CheckAnswer(command, *std::move(mounted), address);
    if (mounted.ok() || !control::IsGone(mounted.status())) return mounted;
    auto read = OpenWhenFree(address.store, [&] { return command.read(env, address.store); });
    if (read.ok()) return read;
    if (attempt > 0 || !read.status().Is(StatusCode::kInUse)) {
      return ExplainLock(std::move(read).status(), address.store);
    }
  }
}

ExitCode RunStatistics(const StatisticsArguments& arguments, Surroundings& surroundings,
                       const StatisticsCommand& command) {
  const auto address = FindStatisticsStore(surroundings.env, arguments.place);
  if (!address.ok()) return Fail(surroundings, address.status());
  const Result<nlohmann::json> statistics = ReadStatistics(surroundings.env, *address, command);
  if (!statistics.ok()) return Fail(surroundings, statistics.status());
  if (arguments.json) {
    PrintJson(surroundings, *statistics);
  } else {
    surroundings.out << command.format(*statistics);
  }
  return ExitCode::kDone;
}

}  // namespace

Result<control::DaemonAddress> FindStatisticsStore(Env& env, const std::string& place) {
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

std::function<ExitCode()> ConfigureStatistics(CLI::App& app, Surroundings& surroundings,
                                              StatisticsCommand command) {
  auto arguments = std::make_shared<StatisticsArguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "The store's directory, or where it is mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document instead of text");
  return [arguments, &surroundings, command = std::move(command)] {
    return RunStatistics(*arguments, surroundings, command);
  };
}

}  // namespace siltfs
