#include "tools/siltfs/daemon.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <syslog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fs/clone/clone_message.h"
#include "fs/clone/clone_session.h"
#include "fs/control/diff_session.h"
#include "fs/control/gc_json.h"
#include "fs/control/index_json.h"
#include "fs/control/protocol.h"
#include "fs/control/recompression_json.h"
#include "fs/control/scrub_json.h"
#include "fs/control/server.h"
#include "fs/control/snapshot_json.h"
#include "fs/control/stats_json.h"
#include "fs/export/export_session.h"
#include "fs/fuse/fuse_binding.h"
#include "fs/import/import_session.h"
#include "fs/interface/file_system.h"
#include "fs/interface/kernel_cache.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/transfer/lane_message.h"
#include "fs/transfer/writable_check.h"
#include "store/base/thread_annotations.h"
#include "store/env/daemon.h"
#include "store/env/mount_table.h"
#include "store/env/mountpoint.h"
#include "store/env/process.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/version.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;
using Log = std::shared_ptr<spdlog::logger>;

// Changes become durable this long after the last change. The reason is sync(1): the kernel then
// sends its dirty data to the daemon, but sends no request to make the data durable.
constexpr std::chrono::milliseconds kQuietInterval{100};

// The current mount, for the threads of the control socket that wait for the kernel's writeback or
// change the file system.
class MountInUse : public KernelCache {
 public:
  // `binding` may be null; otherwise it must live until the next call of Set. Set waits until no
  // thread is in AwaitWriteback.
  void Set(FuseBinding* binding) {
    const WriterLock lock(mutex_);
    binding_ = binding;
  }
  Status AwaitWriteback() {
    const ReaderLock lock(mutex_);
    if (binding_ == nullptr) return Status(StatusCode::kAborted, "it is no longer mounted");
    return binding_->AwaitWriteback();
  }
  void ForgetName(InodeNumber parent, const std::string& name) override {
    const ReaderLock lock(mutex_);
    if (binding_ != nullptr) binding_->ForgetName(parent, name);
  }
  void ForgetInode(InodeNumber inode, bool listing) override {
    const ReaderLock lock(mutex_);
    if (binding_ != nullptr) binding_->ForgetInode(inode, listing);
  }

 private:
  SharedMutex mutex_;
  FuseBinding* binding_ SILTFS_GUARDED_BY(mutex_) = nullptr;
};

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
  spdlog::set_default_logger(log);  // libfuse's messages go there
  return log;
}

FileSystemOptions ToFileSystemOptions(const DaemonOptions& options, const Log& log) {
  FileSystemOptions made;
  made.store = options.store;
  made.report = [log](const std::string& finding) { log->error("{}", Printable(finding)); };
  made.read_only = options.mount.read_only;
  made.snapshot_directory = options.mount.snapshot_directory;
  made.snapshot = options.mount.snapshot;
  made.index_memory = options.mount.index_memory;
  made.index_sync = options.mount.index_sync;
  made.index_merge_rate = options.mount.index_merge_rate;
  made.dense_when_idle = true;
  made.keep_reserve = true;
  made.keep_guide = true;
  made.recompress_in_background = true;
  made.collect_in_background = !options.mount.no_background_gc;
  made.quiet_interval = kQuietInterval;
  if (options.mount.commit_interval) made.commit_interval = *options.mount.commit_interval;
  return made;
}

// The state of the mount, read by the threads of the control socket.
class MountState {
 public:
  void Mounted(const FuseBinding* binding) {
    const MutexLock lock(mutex_);
    binding_ = binding;
  }
  // Call it before the binding is destroyed.
  void Closing() {
    const MutexLock lock(mutex_);
    binding_ = nullptr;
    closing_ = true;
  }
  // Asks the binding, too, because a client may ask between the unmount and the end of Serve.
  std::string_view Name() const {
    const MutexLock lock(mutex_);
    if (closing_ || (binding_ != nullptr && !binding_->Connected())) return control::kClosing;
    return binding_ == nullptr ? control::kStarting : control::kMounted;
  }
  // Empty while there is no mount.
  std::string_view TransportName() const {
    const MutexLock lock(mutex_);
    if (binding_ == nullptr) return {};
    return binding_->CurrentTransport() == Transport::kRings ? "io_uring" : "dev_fuse";
  }

 private:
  mutable Mutex mutex_;
  const FuseBinding* binding_ SILTFS_GUARDED_BY(mutex_) = nullptr;
  bool closing_ SILTFS_GUARDED_BY(mutex_) = false;
};

Result<std::unique_ptr<control::Server>> StartControl(const DaemonOptions& options,
                                                      FileSystem& file_system,
                                                      const MountState& state, MountInUse& mount) {
  const DaemonInfo info{
      .pid = CurrentProcessId(), .mountpoint = options.mountpoint, .transport = {}};
  StoreMaintenance& maintenance = file_system.maintenance();
  const auto stat = [&maintenance, &options, &state, info]() -> Result<Json> {
    SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, maintenance.GetStats());
    DaemonInfo now = info;
    now.transport = state.TransportName();
    return ToJson(stats, options.store, now);
  };
  const auto index_stat = [&maintenance, &options, info]() -> Result<Json> {
    SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, maintenance.GetStats());
    return IndexToJson(stats.index, options.store, info);
  };
  const auto sync = [&file_system, &mount]() -> Result<Json> {
    SILTFS_RETURN_IF_ERROR(mount.AwaitWriteback());
    SILTFS_RETURN_IF_ERROR(file_system.SyncAll());
    return Json();
  };
  const auto recompress = [&maintenance, &options]() -> Result<Json> {
    return RecompressStore(maintenance, options.store);
  };
  const auto collect = [&maintenance, &options](bool dry_run) {
    return [&maintenance, &options, dry_run] {
      return CollectGarbageOf(maintenance, options.store, dry_run);
    };
  };
  const auto scrub = [&maintenance, &options]() -> Result<Json> {
    return ScrubStore(maintenance, options.store, ScrubMode::kGentle);
  };
  const auto stop_scrub = [&maintenance]() -> Result<Json> {
    maintenance.InterruptScrub();
    return Json();
  };
  const auto identity = [info, &state]() -> Json {
    return {{"pid", info.pid}, {"mountpoint", info.mountpoint}, {"state", state.Name()}};
  };
  const control::Session import = {
      .check = [&file_system] { return CheckWritable(file_system); },
      .greeting = {{"version", transfer::kVersion}},
      .run =
          [&file_system, &mount](LocalStream& stream, const std::function<bool()>& stopped) {
            return ServeImport(file_system, mount, stream, stopped);
          }};
  const control::Session export_ = {
      .check = [] { return Status::Ok(); },
      .greeting = {{"version", transfer::kVersion}},
      .run =
          [&file_system](LocalStream& stream, const std::function<bool()>& stopped) {
            return ServeExport(file_system, stream, stopped);
          }};
  const control::Session clone = {
      .check = [&file_system] { return CheckWritable(file_system); },
      .greeting = {{"version", clone::kVersion}},
      .run =
          [&file_system, &mount, &state](LocalStream& stream,
                                         const std::function<bool()>& stopped) {
            // The end of the mount first stops garbage collection, which may wait for the clone.
            return ServeClone(file_system, mount, stream,
                              [&] { return stopped() || state.Name() == control::kClosing; });
          }};
  const control::Session diff = {
      .check = [] { return Status::Ok(); },
      .greeting = {{"version", kDiffVersion}},
      .run =
          [&file_system, &state](LocalStream& stream, const std::function<bool()>& stopped) {
            return ServeDiff(file_system, stream,
                             [&] { return stopped() || state.Name() == control::kClosing; });
          }};
  const auto snapshot = [&file_system, &mount, &state](const Json& arguments,
                                                       const std::function<Status()>& check) {
    // The end of the mount first stops garbage collection, which may wait for a measurement.
    return RunSnapshotCommand(file_system, &mount, arguments, [&] {
      if (state.Name() != control::kClosing) return check();
      return Status(StatusCode::kAborted, "the store is being closed");
    });
  };
  control::ServerOptions made = {
      .store = options.store,
      .own_uid = CurrentUserId(),
      .identity = identity,
      .handlers = {{"stat", stat},
                   {"index stat", index_stat},
                   {"settle", recompress},
                   {"gc", collect(/*dry_run=*/false)},
                   {"gc dry run", collect(/*dry_run=*/true)},
                   {"scrub", scrub},
                   {"scrub stop", stop_scrub},
                   {"sync", sync}},
      .long_commands = {"settle", "gc", "gc dry run", "scrub", "sync"},
      .with_arguments = {{"snapshot", snapshot}},
      .sessions = {
          {"import", import}, {"export", export_}, {"clone", clone}, {kDiffSession, diff}}};
  auto started = control::Server::Start(made);
  const bool on_read_only_disk =
      options.mount.read_only && started.status().Is(StatusCode::kReadOnly);
  if (!on_read_only_disk) return started;
  // With an empty path, Start makes no socket in the store's directory. ListenAbstract later adds
  // the socket with the abstract name.
  made.store.clear();
  return control::Server::Start(made);
}

// Listens on the abstract name, by which clients that cannot reach the store's directory find the
// daemon.
void ListenAbstract(control::Server& control, const DaemonOptions& options, const Log& log) {
  const auto mounts = ReadMountTable();
  if (!mounts.ok()) return log->warn("{}", mounts.status().ToString());
  const auto mount = std::find_if(mounts->rbegin(), mounts->rend(), [&](const Mount& candidate) {
    return candidate.mount_point == options.mountpoint && candidate.source == options.store;
  });
  if (mount == mounts->rend()) return;
  const Status listens =
      control.ListenAbstract(control::AbstractName(options.store, mount->device));
  if (!listens.ok()) log->warn("{}", listens.ToString());
}

// Returns the first failure; if both failed, logs the second.
Status FirstFailure(Status first, Status second, const Log& log) {
  if (first.ok()) return second;
  if (!second.ok()) log->error("{}", second.ToString());
  return first;
}

// While a SignalWatch exists, its thread unmounts the file system when a signal asks the daemon to
// end.
class SignalWatch {
 public:
  SignalWatch(TerminationSignals& signals, FuseBinding& binding, std::string mountpoint, Log log)
      : signals_(signals),
        binding_(binding),
        mountpoint_(std::move(mountpoint)),
        log_(std::move(log)),
        thread_([this] { Watch(); }) {}
  ~SignalWatch() { End().IgnoreError("the caller has an error of its own"); }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Stops watching. Returns an error if an unmount due to a signal has lost data that programs had
  // written.
  Status End() {
    if (!thread_.joinable()) return Status::Ok();
    signals_.Cancel();
    thread_.join();
    return std::move(lost_);
  }

 private:
  void Watch() {
    while (const std::optional<int> signal = signals_.Wait()) {
      log_->info("{}: signal {}, unmounting", mountpoint_, *signal);
      const Status idle = UnmountFuse(mountpoint_);
      // After an unmount, by this call or by another program, FuseBinding::Serve returns.
      if (idle.ok() || idle.Is(StatusCode::kInvalidArgument)) continue;
      log_->warn("{}; programs that use the mount lose access to it", idle.ToString());
      for (Status arrived : {SyncMount(mountpoint_), binding_.AwaitWriteback()}) {
        if (arrived.ok()) continue;
        log_->error("{}", arrived.ToString());
        if (lost_.ok()) lost_ = std::move(arrived);
      }
      const Status aborted = AbortMount(mountpoint_);
      if (!aborted.ok()) log_->error("{}", aborted.ToString());
    }
  }

  TerminationSignals& signals_;
  FuseBinding& binding_;
  const std::string mountpoint_;
  const Log log_;
  Status lost_;  // End reads it after the thread has ended
  std::thread thread_;
};

Status MountAndServe(Env& env, FileSystem& file_system, const DaemonOptions& options,
                     control::Server& control, MountState& state, MountInUse& mount,
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
  ListenAbstract(control, options, log);
  state.Mounted(binding.get());
  SignalWatch watch(signals, *binding, options.mountpoint, log);
  mount.Set(binding.get());
  Status served = binding->Serve();
  state.Closing();
  mount.Set(nullptr);
  return FirstFailure(std::move(served), watch.End(), log);
}

}  // namespace

Status ServeStore(Env& env, const DaemonOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const auto signals, TerminationSignals::Block());
  SILTFS_ASSIGN_OR_RETURN(const Log log, MakeLog(options));
  const auto limit = RaiseFileLimit();
  if (!limit.ok()) log->warn("{}", limit.status().ToString());

  SILTFS_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem> file_system, OpenWhenFree(options.store, [&] {
                            return FileSystem::Open(env, ToFileSystemOptions(options, log));
                          }));
  MountState state;
  MountInUse mount;
  auto control = StartControl(options, *file_system, state, mount);
  if (!control.ok()) return FirstFailure(control.status(), file_system->Close(), log);
  Status outcome =
      MountAndServe(env, *file_system, options, **control, state, mount, *signals, log);

  // The order of the following calls ensures that
  // - no client asks a closed store;
  // - clients can always ask whether the store is being closed;
  // - no client finds the old socket in an unlocked store;
  // - clients that wait for the end get their answer when the store is free.
  state.Closing();
  StoreMaintenance& maintenance = file_system->maintenance();
  maintenance.StopScrubbing();  // so that clients that wait for a scrub are answered soon
  maintenance.StopRecompression();
  maintenance.StopCollecting();
  (*control)->StopCommands();
  outcome = FirstFailure(std::move(outcome), file_system->Close(), log);
  (*control)->Stop();
  file_system.reset();
  (*control)->AnswerWaiters(outcome);
  if (outcome.ok()) {
    log->info("{}: closed, everything is durable", options.store);
  } else {
    log->error("{}", outcome.ToString());
  }
  return outcome;
}

}  // namespace siltfs
