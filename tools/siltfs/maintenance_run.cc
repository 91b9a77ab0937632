#include "tools/siltfs/maintenance_run.h"

#include <memory>
#include <ostream>
#include <utility>

#include "store/env/process.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/store_with_bucket.h"

namespace siltfs {

using Json = nlohmann::json;

Result<std::unique_ptr<FileSystem>> OpenWithProgress(Env& env, FileSystemOptions options,
                                                     LongCommand& command) {
  // The open store keeps its options, so what they refer to is the command's, or ends here.
  const auto opening = std::make_shared<ProgressMeter>();
  options.opening = opening.get();
  options.interrupted = [&command, opening] { return command.interrupted(); };
  command.Observe([opening] { return opening->Now(); });
  const std::string store = options.store;
  auto opened = FileSystem::Open(env, std::move(options));
  command.Observe({});
  // The signal may have come too late for the opening, and before anything else that it could end.
  if (!opened.ok() || !command.interrupted()) return opened;
  SILTFS_RETURN_IF_ERROR((*opened)->Close());
  return Status(StatusCode::kInterrupted, "opening the store was interrupted").At(store);
}

ExitCode EndRun(Surroundings& surroundings, LongCommand& command, const Result<Json>& outcome,
                bool json, const std::function<std::string(const Json&)>& format) {
  command.End();
  if (!outcome.ok()) return Fail(surroundings, outcome.status());
  if (json) {
    PrintJson(surroundings, *outcome);
  } else {
    surroundings.out << format(*outcome);
  }
  return ExitCode::kDone;
}

Result<Json> RunMounted(const control::DaemonAddress& address, const MaintenanceRun& run,
                        LongCommand& command) {
  command.Observe(LookAtDaemon(address, "activity", run.job));
  auto outcome = control::Ask(address, run.question,
                              command.WhileItRuns("its daemon ends the work soon, and nothing is "
                                                  "lost"));
  command.Observe({});
  if (outcome.ok()) return outcome;
  return ExplainInterruption(std::move(outcome).status(), run.afterwards);
}

Result<Json> RunUnmounted(Env& env, const std::string& store, FileSystemOptions options,
                          const MaintenanceRun& run, LongCommand& command) {
  PrepareForStore();
  options.store = store;
  options.keep_reserve = true;
  const auto bucket =
      OpenBucketOf(env, options, {.interrupted = [&command] { return command.interrupted(); }});
  if (!bucket.ok()) return ExplainInterruption(bucket.status(), run.afterwards);
  auto opened = OpenWithProgress(env, std::move(options), command);
  Status open_status = opened.status();
  if (*bucket != nullptr) open_status = (*bucket)->EndOpening(std::move(open_status));
  if (!open_status.ok()) return ExplainInterruption(std::move(open_status), run.afterwards);
  const std::unique_ptr<FileSystem> file_system = std::move(*opened);
  StoreMaintenance& maintenance = file_system->maintenance();
  command.Observe([&] { return run.activity(maintenance.GetActivity()).progress; });
  command.OnInterruption([&] { run.interrupt(maintenance); });
  auto outcome = run.run(maintenance);
  command.OnInterruption({});
  command.Observe({});
  if (run.at_end) run.at_end(maintenance);
  const Status closed = file_system->Close();
  if (!outcome.ok()) {
    closed.IgnoreError("the first failure is reported");
    return ExplainInterruption(std::move(outcome).status(), run.afterwards);
  }
  SILTFS_RETURN_IF_ERROR(closed);
  return outcome;
}

}  // namespace siltfs
