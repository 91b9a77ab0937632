#include "tools/siltfs/daemon.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "fs/attach/attach_message.h"
#include "fs/attach/attach_session.h"
#include "fs/attach/attached_mounts.h"
#include "fs/attach/mount_receiver.h"
#include "fs/clone/clone_message.h"
#include "fs/clone/clone_session.h"
#include "fs/control/activity_json.h"
#include "fs/control/diff_session.h"
#include "fs/control/gc_json.h"
#include "fs/control/index_json.h"
#include "fs/control/interruptible_handler.h"
#include "fs/control/protocol.h"
#include "fs/control/quota_json.h"
#include "fs/control/recompression_json.h"
#include "fs/control/scrub_json.h"
#include "fs/control/server.h"
#include "fs/control/snapshot_json.h"
#include "fs/control/stats_json.h"
#include "fs/control/survey_session.h"
#include "fs/control/transfer_json.h"
#include "fs/control/transfer_session.h"
#include "fs/export/export_session.h"
#include "fs/fuse/fuse_binding.h"
#include "fs/import/import_session.h"
#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/transfer/lane_message.h"
#include "fs/transfer/writable_check.h"
#include "fs/usage/usage_message.h"
#include "fs/usage/usage_session.h"
#include "store/env/daemon.h"
#include "store/env/process.h"
#include "tools/siltfs/daemon_log.h"
#include "tools/siltfs/damage_watch.h"
#include "tools/siltfs/follower.h"
#include "tools/siltfs/mount_state.h"
#include "tools/siltfs/opening_watch.h"
#include "tools/siltfs/own_mount.h"
#include "tools/siltfs/signal_watch.h"
#include "tools/siltfs/store_bucket_report.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_with_bucket.h"
#include "tools/siltfs/version.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;
using Log = std::shared_ptr<spdlog::logger>;

// Changes become durable this long after the last change. The reason is sync(1): the kernel then
// sends its dirty data to the daemon, but sends no request to make the data durable.
constexpr std::chrono::milliseconds kQuietInterval{100};

FileSystemOptions ToFileSystemOptions(const DaemonOptions& options, const Log& log,
                                      DamageWatch& watch) {
  FileSystemOptions made;
  made.store = options.store;
  made.report = [log, &watch](const Notice& finding) {
    LogNotice(*log, finding);
    watch.Note(finding);
  };
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
  made.record_sizes_daily = true;
  made.quiet_interval = kQuietInterval;
  if (options.mount.bucket_timeout) made.segment_patience = *options.mount.bucket_timeout;
  if (options.mount.commit_interval) made.commit_interval = *options.mount.commit_interval;
  return made;
}

Result<std::unique_ptr<control::Server>> StartControl(const DaemonOptions& options,
                                                      FileSystem& file_system,
                                                      const MountState& state, MountInUse& mount,
                                                      AttachedMounts& attached,
                                                      MountReceiver& receiver, StoreBucket* bucket,
                                                      const Follower* follower) {
  const auto info = [&state] {
    return DaemonInfo{.pid = CurrentProcessId(),
                      .mountpoint = state.Mountpoint(),
                      .transport = std::string(state.TransportName())};
  };
  StoreMaintenance& maintenance = file_system.maintenance();
  const auto stat = [&maintenance, &options, info, bucket, follower]() -> Result<Json> {
    SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, maintenance.GetStats());
    Json document = ToJson(stats, options.store, info());
    if (bucket != nullptr) document["bucket"] = ToJson(bucket->Stats());
    if (follower != nullptr) document["bucket"] = follower->Stats();
    return document;
  };
  const auto index_stat = [&maintenance, &options, info]() -> Result<Json> {
    SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, maintenance.GetStats());
    return IndexToJson(stats.index, options.store, info());
  };
  const auto activity = [&maintenance]() -> Result<Json> {
    return ToJson(maintenance.GetActivity());
  };
  const auto sync = [&file_system, &mount]() -> Result<Json> {
    SILTFS_RETURN_IF_ERROR(mount.AwaitWriteback());
    SILTFS_RETURN_IF_ERROR(file_system.SyncAll());
    return Json();
  };
  // A sync to the bucket.
  const auto push = [sync, bucket, &options](const Json&,
                                             const std::function<Status()>& check) -> Result<Json> {
    if (bucket == nullptr) {
      return Status(StatusCode::kUnsupported,
                    "its segments are in its directory; unmount it, and move them with siltfs "
                    "bucket push --bucket s3://NAME/PREFIX")
          .At(options.store);
    }
    SILTFS_RETURN_IF_ERROR(sync().status());
    SILTFS_RETURN_IF_ERROR(bucket->AwaitAll(check));
    return ToJson(bucket->Stats());
  };
  const auto recompress = control::Interruptible(
      [&maintenance, &options] { return RecompressStore(maintenance, options.store); },
      control::MakeInterruption([&maintenance] { maintenance.InterruptRecompression(); }));
  const auto end_collecting =
      control::MakeInterruption([&maintenance] { maintenance.InterruptCollecting(); });
  const auto collect = [&maintenance, &options, end_collecting](bool dry_run) {
    return control::Interruptible(
        [&maintenance, &options, dry_run] {
          return CollectGarbageOf(maintenance, options.store, dry_run);
        },
        end_collecting);
  };
  const auto scrub = control::Interruptible(
      [&maintenance, &options] {
        return ScrubStore(maintenance, options.store, ScrubMode::kGentle);
      },
      control::MakeInterruption([&maintenance] { maintenance.InterruptScrub(); }));
  const auto stop_scrub = [&maintenance]() -> Result<Json> {
    maintenance.InterruptScrub();
    return Json();
  };
  const auto identity = [&state]() -> Json {
    return {{"pid", CurrentProcessId()},
            {"mountpoint", state.Mountpoint()},
            {"state", state.Name()},
            {"mounts", state.Mounts()}};
  };
  const auto check_writable = [&file_system, &state](const Json& arguments) -> Status {
    SILTFS_ASSIGN_OR_RETURN(const MountState::Named named, state.Find(arguments));
    if (named.attached) return {StatusCode::kReadOnly, "a snapshot cannot be changed"};
    return CheckWritable(file_system);
  };
  const control::Session import = {
      .check = check_writable,
      .greeting = {{"version", transfer::kVersion}},
      .run = [&file_system, &mount](LocalStream& stream, const Json&,
                                    const std::function<bool()>& stopped) {
        return ServeImport(file_system, mount, stream, stopped);
      }};
  const control::Session export_ = {
      .check = [&state](const Json& arguments) { return state.Find(arguments).status(); },
      .greeting = {{"version", transfer::kVersion}},
      .run = [&state](LocalStream& stream, const Json& arguments,
                      const std::function<bool()>& stopped) -> Result<Json> {
        SILTFS_ASSIGN_OR_RETURN(const MountState::Named named, state.Find(arguments));
        return ServeExport(*named.file_system, stream, stopped);
      }};
  const control::Session attach = {
      .check = [&state](const Json&) -> Status {
        if (state.Name() == control::kMounted) return Status::Ok();
        if (state.Name() == control::kClosing)
          return {StatusCode::kAborted, "the store is being closed"};
        return {StatusCode::kInUse, "its daemon is starting; try again later"};
      },
      .greeting = {{"version", attach::kVersion}},
      .run =
          [&file_system, &attached](LocalStream& stream, const Json&,
                                    const std::function<bool()>& stopped) {
            return ServeAttach(file_system, attached, stream, stopped);
          }};
  const control::Session handed = {
      .check = [&receiver](const Json&) { return receiver.Check(); },
      .greeting = {{"version", attach::kVersion}},
      .run = [&receiver](LocalStream& stream, const Json&,
                         const std::function<bool()>& stopped) -> Result<Json> {
        SILTFS_RETURN_IF_ERROR(receiver.Serve(stream, stopped));
        return Json();
      }};
  const control::Session clone = {
      .check = check_writable,
      .greeting = {{"version", clone::kVersion}},
      .run = [&file_system, &mount, &state](LocalStream& stream, const Json&,
                                            const std::function<bool()>& stopped) {
        // The end of the mount first stops garbage collection, which may wait for the clone.
        return ServeClone(file_system, mount, stream,
                          [&] { return stopped() || state.Name() == control::kClosing; });
      }};
  const control::Session diff = {.check = [](const Json&) { return Status::Ok(); },
                                 .greeting = {{"version", kDiffVersion}},
                                 .run =
                                     [&file_system, &state](LocalStream& stream, const Json&,
                                                            const std::function<bool()>& stopped) {
                                       return ServeDiff(file_system, stream, [&] {
                                         return stopped() || state.Name() == control::kClosing;
                                       });
                                     }};
  const auto ends = [&state](const std::function<bool()>& stopped) {
    return [&state, &stopped] { return stopped() || state.Name() == control::kClosing; };
  };
  const control::Session survey = {
      .check = [](const Json&) { return Status::Ok(); },
      .greeting = {{"version", kSurveyVersion}},
      .run =
          [&maintenance, &options, info, ends](LocalStream& stream, const Json&,
                                               const std::function<bool()>& stopped) {
            return ServeSurvey(maintenance, options.store, info(), stream, ends(stopped));
          }};
  const control::Session send = {.check = [](const Json&) { return Status::Ok(); },
                                 .greeting = {{"version", kTransferVersion}},
                                 .run =
                                     [&file_system, ends](LocalStream& stream, const Json&,
                                                          const std::function<bool()>& stopped) {
                                       return ServeSend(file_system, stream, ends(stopped));
                                     }};
  const control::Session receive = {
      .check = [](const Json&) { return Status::Ok(); },
      .greeting = {{"version", kTransferVersion}},
      .run =
          [&file_system, &mount, ends](LocalStream& stream, const Json&,
                                       const std::function<bool()>& stopped) {
            return ServeReceive(file_system, &mount, stream, ends(stopped));
          }};
  const control::Session usage = {
      .check = [&state](const Json& arguments) { return state.Find(arguments).status(); },
      .greeting = {{"version", usage::kVersion}},
      .run = [&state, ends](LocalStream& stream, const Json& arguments,
                            const std::function<bool()>& stopped) -> Result<Json> {
        SILTFS_ASSIGN_OR_RETURN(const MountState::Named named, state.Find(arguments));
        return ServeUsage(*named.file_system, stream, ends(stopped));
      }};
  const auto unfinished = [&file_system](const Json&, const std::function<Status()>&) {
    return Result<Json>(ListUnfinished(file_system));
  };
  const auto abandon = [&file_system](const Json& arguments, const std::function<Status()>&) {
    return RunAbandon(file_system, arguments);
  };
  const auto snapshot = [&file_system, &mount, &state](const Json& arguments,
                                                       const std::function<Status()>& check) {
    // The end of the mount first stops garbage collection, which may wait for a measurement.
    return RunSnapshotCommand(file_system, &mount, arguments, [&] {
      if (state.Name() != control::kClosing) return check();
      return Status(StatusCode::kAborted, "the store is being closed");
    });
  };
  const auto quota = [&file_system, &state](const Json& arguments,
                                            const std::function<Status()>& check) {
    return RunQuotaCommand(file_system.quotas(), arguments, [&] {
      if (state.Name() != control::kClosing) return check();
      return Status(StatusCode::kAborted, "the store is being closed");
    });
  };
  const auto quota_progress = [&file_system]() -> Result<Json> {
    DirectoryQuotas* const quotas = file_system.quotas();
    return Json{{"counted", quotas == nullptr ? 0 : quotas->counted()}};
  };
  const auto snapshot_progress = [&file_system]() -> Result<Json> {
    const WorkProgress progress = file_system.snapshots().progress();
    return Json{{"step", progress.step}, {"done", progress.done}, {"total", progress.total}};
  };
  control::ServerOptions made = {.store = options.store,
                                 .own_uid = CurrentUserId(),
                                 .identity = identity,
                                 .handlers = {{"stat", stat},
                                              {"activity", activity},
                                              {"index stat", index_stat},
                                              {"scrub stop", stop_scrub},
                                              {"sync", sync},
                                              {"quota progress", quota_progress},
                                              {"snapshot progress", snapshot_progress}},
                                 .long_commands = {"sync"},
                                 .with_arguments = {{"settle", recompress},
                                                    {"gc", collect(/*dry_run=*/false)},
                                                    {"gc dry run", collect(/*dry_run=*/true)},
                                                    {"scrub", scrub},
                                                    {"snapshot", snapshot},
                                                    {"quota", quota},
                                                    {"bucket push", push},
                                                    {kUnfinishedCommand, unfinished},
                                                    {kAbandonCommand, abandon}},
                                 .sessions = {{"import", import},
                                              {"export", export_},
                                              {"clone", clone},
                                              {kDiffSession, diff},
                                              {kSurveySession, survey},
                                              {kSendSession, send},
                                              {kReceiveSession, receive},
                                              {usage::kSession, usage},
                                              {std::string(attach::kMountCommand), handed},
                                              {std::string(attach::kCommand), attach}}};
  auto started = control::Server::Start(made);
  const bool on_read_only_disk =
      options.mount.read_only && started.status().Is(StatusCode::kReadOnly);
  if (!on_read_only_disk) return started;
  // With an empty path, Start makes no socket in the store's directory. ListenAbstract later adds
  // the socket with the abstract name.
  made.store.clear();
  return control::Server::Start(made);
}

// Returns the first failure; if both failed, logs the second.
Status FirstFailure(Status first, Status second, const Log& log) {
  if (first.ok()) return second;
  if (!second.ok()) LogNotice(*log, second);
  return first;
}

// Returns when the daemon's own mount and all attached mounts have ended.
Status MountAndServe(Env& env, FileSystem& file_system, const DaemonOptions& options,
                     control::Server& control, MountState& state, MountInUse& mount,
                     AttachedMounts& attached, MountReceiver& receiver, TerminationSignals& signals,
                     const std::function<void()>& ending, const Log& log) {
  const auto on_ready = [&options, &signals] {
    if (!options.on_ready()) signals.Request();
  };
  auto own = GetOwnMount({.env = env,
                          .file_system = file_system,
                          .options = options,
                          .receiver = receiver,
                          .control = control,
                          .signals = signals,
                          .on_ready = on_ready,
                          .log = log});
  if (!own.ok()) {
    receiver.Finish(own.status());
    return std::move(own).status();
  }
  auto& [binding, device] = *own;
  log->info("{}: mounted on {} (siltfs {})", options.store, options.mountpoint, kVersion);
  if (!device.empty()) ListenAbstract(control, options.store, device, log);
  state.Mounted(binding.get(), device);
  mount.Set(binding.get());
  SignalWatch watch(signals, *binding, options.mountpoint, device, mount, attached, ending, log);
  Status served = binding->Serve();
  receiver.Finish(Status(StatusCode::kIoError, "the kernel has not accepted the mount"));
  state.OwnEnded();
  mount.Set(nullptr);
  watch.OwnEnded();
  binding.reset();
  // The unmount promises that everything is durable, even if the daemon goes on.
  if (!attached.CloseIfEmpty()) {
    log->info("{}: unmounted; mounts of snapshots are still served", options.mountpoint);
    served = FirstFailure(std::move(served), file_system.SyncAll(), log);
  }
  attached.AwaitEnd();
  return FirstFailure(std::move(served), watch.End(), log);
}

// Opens the bucket of a store that another machine changes. A signal ends the opening.
Result<std::unique_ptr<Follower>> OpenFollower(Env& env, const DaemonOptions& options,
                                               FileSystemOptions made,
                                               TerminationSignals& signals) {
  if (!options.follow) return std::unique_ptr<Follower>();
  OpeningWatch watch(options.on_opening);
  watch.meter().Begin("metadata");
  made.interrupted = [&signals] { return signals.Pending(); };
  return Follower::Open(env, options, std::move(made));
}

// Opens the store. A signal ends the opening.
Result<std::unique_ptr<FileSystem>> OpenStore(Env& env, const DaemonOptions& options,
                                              FileSystemOptions made, TerminationSignals& signals) {
  OpeningWatch watch(options.on_opening);
  // The open store keeps these functions and options.
  const auto opening = std::make_shared<std::atomic<bool>>(true);
  made.interrupted = [opening, &signals] { return *opening && signals.Pending(); };
  made.opening = &watch.meter();
  auto opened = FileSystem::Open(env, std::move(made));
  *opening = false;
  return opened;
}

}  // namespace

Status ServeStore(Env& env, const DaemonOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const auto signals, TerminationSignals::Block());
  IgnoreStatusRequests();
  SILTFS_ASSIGN_OR_RETURN(const Log log, MakeDaemonLog(options));
  const auto limit = RaiseFileLimit();
  if (!limit.ok()) log->warn("{}", limit.status().ToString());

  // The file system reports to the watch until it is destroyed.
  DamageWatch watch({.store = options.store, .mountpoint = options.mountpoint, .log = log});
  FileSystemOptions made = ToFileSystemOptions(options, log, watch);
  StoreBucketOptions how;
  if (options.mount.bucket_timeout) how.bucket_timeout = *options.mount.bucket_timeout;
  how.wait_for_bucket = options.mount.sync_bucket;
  how.take_over = options.take_over;
  how.fenced = [log](const Status& why) { LogNotice(*log, why); };
  how.interrupted = [&signals] { return signals->Pending(); };
  SILTFS_ASSIGN_OR_RETURN(const auto follower, OpenFollower(env, options, made, *signals));
  std::unique_ptr<StoreBucket> bucket;
  std::unique_ptr<FileSystem> file_system;
  if (follower) {
    file_system = follower->NewFileSystem();
  } else {
    SILTFS_ASSIGN_OR_RETURN(bucket, OpenBucketOf(env, made, how));
    auto opened =
        OpenWhenFree(options.store, [&] { return OpenStore(env, options, made, *signals); });
    if (bucket != nullptr) SILTFS_RETURN_IF_ERROR(bucket->EndOpening(opened.status()));
    SILTFS_ASSIGN_OR_RETURN(file_system, std::move(opened));
  }
  // No mount is attached before `listening` is set, because the state is then "starting".
  control::Server* listening = nullptr;
  AttachedMounts attached(
      env, {.store = options.store,
            .log = log,
            .begun =
                [&](const std::string& device) {
                  ListenAbstract(*listening, options.store, device, log);
                },
            .ended =
                [&](const std::string& device) {
                  listening->StopListening(control::AbstractName(options.store, device));
                },
            .may_unmount = !options.receives_mount});
  MountState state(options, *file_system, attached);
  MountInUse mount;
  MountReceiver receiver;
  auto control = StartControl(options, *file_system, state, mount, attached, receiver, bucket.get(),
                              follower.get());
  if (!control.ok()) return FirstFailure(control.status(), file_system->Close(), log);
  listening = control->get();
  watch.Begin(file_system->maintenance());
  if (follower) follower->SetKernelCache(&mount);
  StoreMaintenance& maintenance = file_system->maintenance();
  // So that neither writes nor background jobs wait for a bucket that does not answer.
  const auto ending = [&maintenance, raw = bucket.get()] {
    maintenance.EndWaitingForSegmentRoom();
    if (raw != nullptr) raw->BeginClosing();
  };
  Status outcome = MountAndServe(env, *file_system, options, **control, state, mount, attached,
                                 receiver, *signals, ending, log);

  if (follower) follower->SetKernelCache(nullptr);
  if (options.on_closing) options.on_closing();

  // The order of the following calls ensures that
  // - no client asks a closed store;
  // - clients can always ask whether the store is being closed;
  // - no client finds the old socket in an unlocked store;
  // - clients that wait for the end get their answer when the store is free.
  attached.EndAll();
  attached.AwaitEnd();
  state.Closing();
  ending();
  maintenance.StopScrubbing();  // so that clients that wait for a scrub are answered soon
  maintenance.StopRecompression();
  maintenance.StopCollecting();
  (*control)->StopCommands();
  watch.End();
  Status closed = file_system->Close();
  if (!closed.ok()) watch.ReportFailure(closed);
  outcome = FirstFailure(std::move(outcome), std::move(closed), log);
  (*control)->Stop();
  file_system.reset();
  (*control)->AnswerWaiters(outcome);
  if (outcome.ok()) {
    log->info("{}: closed, everything is durable", options.store);
  } else {
    LogNotice(*log, outcome);
  }
  return outcome;
}

}  // namespace siltfs
