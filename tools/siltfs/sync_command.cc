// siltfs sync
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "fs/control/client.h"
#include "store/env/mountpoint.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct SyncArguments {
  std::string mountpoint;
  bool json = false;
  bool quiet = false;
};

// First makes the kernel send its dirty data, which must reach the daemon before the daemon can
// make it durable. The kernel would wait forever for a daemon that does not answer. So before that,
// this function checks that the daemon answers.
Result<control::DaemonAddress> Sync(const std::string& path, const LongCommand& command) {
  SILTFS_ASSIGN_OR_RETURN(const auto mounted, FindMount(path));
  if (!mounted)
    return Status(StatusCode::kNotFound, "no siltfs file system is mounted there").At(path);
  SILTFS_ASSIGN_OR_RETURN(const control::DaemonAddress live, LiveMountOf(*mounted));
  SILTFS_RETURN_IF_ERROR(SyncMount(live.mountpoint));
  SILTFS_RETURN_IF_ERROR(control::Ask(live, "sync",
                                      command.WhileItRuns("its daemon goes on making everything "
                                                          "durable",
                                                          std::chrono::milliseconds(0)))
                             .status());
  return *mounted;
}

ExitCode RunSync(const SyncArguments& arguments, Surroundings& surroundings) {
  const auto command = LongCommand::Begin(
      surroundings, {.command = "sync", .subject = arguments.mountpoint, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  const Result<control::DaemonAddress> synced = Sync(arguments.mountpoint, **command);
  (*command)->End();
  if (!synced.ok()) return Fail(surroundings, synced.status());
  if (arguments.json) {
    PrintJson(surroundings,
              {{"store", synced->store}, {"mountpoint", synced->mountpoint}, {"durable", true}});
  }
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureSync(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<SyncArguments>();
  app.add_option("MOUNTPOINT", arguments->mountpoint, "Where the store is mounted")->required();
  app.add_flag("--json", arguments->json, "Print one JSON document");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunSync(*arguments, surroundings); };
}

}  // namespace siltfs
