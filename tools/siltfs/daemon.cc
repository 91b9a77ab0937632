#include "tools/siltfs/daemon.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <syslog.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fs/control/gc_json.h"
#include "fs/control/index_json.h"
#include "fs/control/scrub_json.h"
#include "fs/control/server.h"
#include "fs/control/settle_json.h"
#include "fs/control/stats_json.h"
#include "fs/core/file_system.h"
#include "fs/core/stats.h"
#include "fs/fuse/fuse_binding.h"
#include "store/env/daemon.h"
#include "store/env/mountpoint.h"
#include "store/env/process.h"
#include "tools/siltfs/version.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;
using Log = std::shared_ptr<spdlog::logger>;

Result<spdlog::sink_ptr> MakeSink(const DaemonOptions& options) {
  if (options.mount.log_file) {
    try {
      return spdlog::sink_ptr(
          std::make_shared<spdlog::sinks::basic_file_sink_mt>(*options.mount.log_file));
    } catch (const spdlog::spdlog_ex& error) {
      return Status(StatusCode::kIoError, error.what()).At(*options.mount.log_file);
    }
  }
  if (options.foreground)
    return spdlog::sink_ptr(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  return spdlog::sink_ptr(
      std::make_shared<spdlog::sinks::syslog_sink_mt>("siltfs", LOG_PID, LOG_DAEMON, false));
}

Result<Log> MakeLog(const DaemonOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(spdlog::sink_ptr sink, MakeSink(options));
  auto log = std::make_shared<spdlog::logger>("siltfs", std::move(sink));
  log->set_level(options.mount.debug ? spdlog::level::debug : spdlog::level::info);
  log->flush_on(spdlog::level::info);
  spdlog::set_default_logger(log);  // for what libfuse has to say
  return log;
}

FileSystemOptions ToFileSystemOptions(const DaemonOptions& options, const Log& log) {
  FileSystemOptions made;
  made.store = options.store;
  made.report = [log](const std::string& finding) { log->error("{}", finding); };
  made.read_only = options.mount.read_only;
  made.index_memory = options.mount.index_memory;
  made.dense_when_idle = true;
  made.keep_reserve = true;
  made.settle_in_background = true;
  made.collect_in_background = !options.mount.no_background_gc;
  if (options.mount.commit_interval) made.commit_interval = *options.mount.commit_interval;
  return made;
}

Result<std::unique_ptr<control::Server>> StartControl(const DaemonOptions& options,
                                                      FileSystem& file_system) {
  const DaemonInfo info{.pid = CurrentProcessId(), .mountpoint = options.mountpoint};
  const auto stat = [&file_system, &options, info]() -> Result<Json> {
    SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, file_system.GetStats());
    return ToJson(stats, options.store, info);
  };
  const auto index_stat = [&file_system, &options, info]() -> Result<Json> {
    SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, file_system.GetStats());
    return IndexToJson(stats.index, options.store, info);
  };
  const auto sync = [&file_system]() -> Result<Json> {
    SILTFS_RETURN_IF_ERROR(file_system.SyncAll());
    return Json();
  };
  const auto settle = [&file_system, &options]() -> Result<Json> {
    return SettleStore(file_system, options.store);
  };
  const auto collect = [&file_system, &options](bool dry_run) {
    return [&file_system, &options, dry_run] {
      return CollectGarbageOf(file_system, options.store, dry_run);
    };
  };
  const auto scrub = [&file_system, &options]() -> Result<Json> {
    return ScrubStore(file_system, options.store, ScrubMode::kGentle);
  };
  const auto stop_scrub = [&file_system]() -> Result<Json> {
    file_system.InterruptScrub();
    return Json();
  };
  return control::Server::Start({.store = options.store,
                                 .own_uid = CurrentUserId(),
                                 .identity = {{"pid", info.pid}, {"mountpoint", info.mountpoint}},
                                 .handlers = {{"stat", stat},
                                              {"index stat", index_stat},
                                              {"settle", settle},
                                              {"gc", collect(/*dry_run=*/false)},
                                              {"gc dry run", collect(/*dry_run=*/true)},
                                              {"scrub", scrub},
                                              {"scrub stop", stop_scrub},
                                              {"sync", sync}},
                                 .long_commands = {"settle", "gc", "gc dry run", "scrub"}});
}

// Turns signals into unmounting while it lives.
class SignalWatch {
 public:
  SignalWatch(TerminationSignals& signals, std::string mountpoint, Log log)
      : signals_(signals),
        mountpoint_(std::move(mountpoint)),
        log_(std::move(log)),
        thread_([this] { Watch(); }) {}
  ~SignalWatch() {
    signals_.Cancel();
    thread_.join();
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  void Watch() {
    while (const std::optional<int> signal = signals_.Wait()) {
      log_->info("{}: signal {}, unmounting", mountpoint_, *signal);
      const Status idle = UnmountFuse(mountpoint_);
      if (idle.ok() || idle.Is(StatusCode::kInvalidArgument)) continue;  // the loop is ending
      log_->warn("{}; whoever uses it loses access", idle.ToString());
      Report(SyncMount(mountpoint_));
      Report(AbortMount(mountpoint_));
    }
  }
  void Report(const Status& status) {
    if (!status.ok()) log_->error("{}", status.ToString());
  }

  TerminationSignals& signals_;
  const std::string mountpoint_;
  const Log log_;
  std::thread thread_;
};

Status MountAndServe(Env& env, FileSystem& file_system, const DaemonOptions& options,
                     TerminationSignals& signals, const Log& log) {
  const auto on_ready = [&options, &signals] {
    if (!options.on_ready()) signals.Request();
  };
  SILTFS_ASSIGN_OR_RETURN(const auto binding, FuseBinding::Mount(env, file_system,
                                                                 {.mountpoint = options.mountpoint,
                                                                  .store = options.store,
                                                                  .mount = options.mount,
                                                                  .log = log,
                                                                  .on_ready = on_ready}));
  log->info("{}: mounted on {} (siltfs {})", options.store, options.mountpoint, kVersion);
  const SignalWatch watch(signals, options.mountpoint, log);
  return binding->Serve();
}

// The first that failed, the other being logged.
Status FirstFailure(Status first, Status second, const Log& log) {
  if (first.ok()) return second;
  if (!second.ok()) log->error("{}", second.ToString());
  return first;
}

}  // namespace

Status ServeStore(Env& env, const DaemonOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const auto signals, TerminationSignals::Block());
  SILTFS_ASSIGN_OR_RETURN(const Log log, MakeLog(options));
  const auto limit = RaiseFileLimit();
  if (!limit.ok()) log->warn("{}", limit.status().ToString());

  SILTFS_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem> file_system,
                          FileSystem::Open(env, ToFileSystemOptions(options, log)));
  auto control = StartControl(options, *file_system);
  if (!control.ok() && !(options.mount.read_only && control.status().Is(StatusCode::kReadOnly))) {
    return FirstFailure(control.status(), file_system->Close(), log);
  }
  Status outcome = MountAndServe(env, *file_system, options, *signals, log);

  // In this order: nobody asks a closed store, nobody finds the old socket in an unlocked one, and
  // who waits for the end learns of it when the store is free.
  file_system->StopScrubbing();  // so that requests for these are answered soon
  file_system->StopSettling();
  file_system->StopCollecting();
  if (control.ok()) (*control)->Stop();
  outcome = FirstFailure(std::move(outcome), file_system->Close(), log);
  file_system.reset();
  if (control.ok()) (*control)->AnswerWaiters(outcome);
  if (outcome.ok()) {
    log->info("{}: closed, everything is durable", options.store);
  } else {
    log->error("{}", outcome.ToString());
  }
  return outcome;
}

}  // namespace siltfs
