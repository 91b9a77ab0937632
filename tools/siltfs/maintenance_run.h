// What `siltfs gc`, `siltfs settle` and `siltfs scrub` share: a run of a maintenance job in a
// mounted or an unmounted store, with progress and interruption.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "fs/control/client.h"
#include "fs/interface/activity.h"
#include "fs/interface/file_system.h"
#include "fs/interface/store_maintenance.h"
#include "store/base/result.h"
#include "tools/siltfs/long_command.h"

namespace siltfs {

struct MaintenanceRun {
  std::string question;    // to the daemon (fs/control/protocol.h)
  std::string job;         // the job's key in the answer to "activity"
  std::string afterwards;  // what is true after an interruption, for the message
  std::function<Result<nlohmann::json>(StoreMaintenance&)> run;
  std::function<void(StoreMaintenance&)> interrupt;
  std::function<StoreActivityReport::Job(const StoreActivityReport&)> activity;
  // Called before an unmounted store is closed; may be empty.
  std::function<void(StoreMaintenance&)> at_end = {};
};

// Makes the daemon run the job. Errors: those of control::Ask.
Result<nlohmann::json> RunMounted(const control::DaemonAddress& address, const MaintenanceRun& run,
                                  LongCommand& command);

// Opens the store, runs the job, and closes the store as an unmount does, even if the job failed.
// Completes `options`, except for its report.
Result<nlohmann::json> RunUnmounted(Env& env, const std::string& store, FileSystemOptions options,
                                    const MaintenanceRun& run, LongCommand& command);

// Ends the command, and prints the outcome: as a JSON document, or as `format` makes it.
ExitCode EndRun(Surroundings& surroundings, LongCommand& command,
                const Result<nlohmann::json>& outcome, bool json,
                const std::function<std::string(const nlohmann::json&)>& format);

// Opens the store with progress. A signal ends the opening, with kInterrupted.
Result<std::unique_ptr<FileSystem>> OpenWithProgress(Env& env, FileSystemOptions options,
                                                     LongCommand& command);

}  // namespace siltfs
