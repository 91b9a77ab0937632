// The store that `siltfs snapshot`, `siltfs send` and `siltfs receive` work on.
#include <memory>
#include <utility>

#include "fs/control/client.h"
#include "fs/control/snapshot_json.h"
#include "fs/control/transfer_session.h"
#include "fs/interface/file_system.h"
#include "fs/interface/snapshots.h"
#include "store/env/mountpoint.h"
#include "store/env/process.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/maintenance_run.h"
#include "tools/siltfs/snapshot_command.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"
#include "tools/siltfs/store_with_bucket.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr const char* kSyncGoesOn = "its daemon goes on making everything durable";

class MountedPlace final : public SnapshotPlace {
 public:
  MountedPlace(control::DaemonAddress address, LongCommand& command)
      : address_(std::move(address)), command_(command) {}

  Result<Json> Run(const Json& arguments) override {
    SILTFS_RETURN_IF_ERROR(CheckSnapshotArguments(arguments));
    SILTFS_RETURN_IF_ERROR(command_.Check());
    // A rollback cannot be interrupted: programs would find a mixture of two states.
    const auto patience =
        arguments.value("action", "") == "rollback"
            ? command_.WhileItRuns("its daemon completes the rollback, and nothing is lost",
                                   std::chrono::milliseconds(0))
            : command_.WhileItRuns("its daemon ends the work soon, and nothing is lost");
    return control::AskWith(address_, {.command = "snapshot", .arguments = arguments}, patience);
  }
  Result<Json> Diff(const WantedDiff& wanted,
                    const std::function<Status(const PathChange&)>& visit) override {
    SILTFS_RETURN_IF_ERROR(
        CheckSnapshotArguments(Json::array({wanted.from, wanted.to.value_or("")})));
    SILTFS_ASSIGN_OR_RETURN(const auto session, control::OpenSession(address_, kDiffSession));
    if (session.greeting.value("version", uint64_t{0}) != kDiffVersion)
      return Status(StatusCode::kNeedsNewer, "the daemon of the mount is of another version");
    // The daemon may be silent for long.
    command_.OnInterruption([&session] { session.stream->Shutdown(); });
    auto compared = ReceiveDiff(*session.stream, wanted, visit);
    command_.OnInterruption({});
    if (!compared.ok()) SILTFS_RETURN_IF_ERROR(command_.Check());
    return compared;
  }
  Result<Json> Send(const WantedSend& wanted, PipedStreams& pipes,
                    const std::function<Status()>& check) override {
    SILTFS_RETURN_IF_ERROR(CheckSnapshotArguments(
        Json::array({wanted.snapshot, wanted.base.value_or(""), wanted.resume})));
    SILTFS_ASSIGN_OR_RETURN(const auto stream, OpenTransfer(kSendSession));
    return SendThrough(*stream, wanted, pipes, check);
  }
  Result<Json> Receive(const WantedReceive& wanted, PipedStreams& pipes,
                       const std::function<Status()>& check) override {
    SILTFS_RETURN_IF_ERROR(CheckSnapshotArguments(Json::array({wanted.name})));
    SILTFS_ASSIGN_OR_RETURN(const auto stream, OpenTransfer(kReceiveSession));
    return ReceiveThrough(*stream, wanted, pipes, check);
  }
  Result<Json> Unfinished() override { return control::Ask(address_, kUnfinishedCommand); }
  Result<Json> Abandon(const std::string& name) override {
    const Json arguments = {{"name", name}};
    SILTFS_RETURN_IF_ERROR(CheckSnapshotArguments(arguments));
    return control::AskWith(
        address_, {.command = kAbandonCommand, .arguments = arguments},
        command_.WhileItRuns("its daemon discards the rest, and nothing else is lost",
                             std::chrono::milliseconds(0)));
  }
  Status Sync() override {
    // The kernel would wait forever for a daemon that does not answer, so it is asked first.
    SILTFS_ASSIGN_OR_RETURN(const auto live, LiveMountOf(address_));
    if (!live.mountpoint.empty()) SILTFS_RETURN_IF_ERROR(SendWrites(live.mountpoint));
    return control::Ask(live, "sync",
                        command_.WhileItRuns(kSyncGoesOn, std::chrono::milliseconds(0)))
        .status();
  }

 private:
  Result<std::unique_ptr<LocalStream>> OpenTransfer(const char* session_name) {
    SILTFS_ASSIGN_OR_RETURN(auto session, control::OpenSession(address_, session_name));
    if (session.greeting.value("version", uint64_t{0}) != kTransferVersion)
      return Status(StatusCode::kNeedsNewer, "the daemon of the mount is of another version");
    return std::move(session.stream);
  }

  const control::DaemonAddress address_;
  LongCommand& command_;
};

class OpenedPlace final : public SnapshotPlace {
 public:
  OpenedPlace(FileSystem& file_system, LongCommand& command)
      : file_system_(file_system), command_(command) {}

  Result<Json> Run(const Json& arguments) override {
    SILTFS_RETURN_IF_ERROR(command_.Check());
    return RunSnapshotCommand(file_system_, nullptr, arguments,
                              [this] { return command_.Check(); });
  }
  Result<Json> Diff(const WantedDiff& wanted,
                    const std::function<Status(const PathChange&)>& visit) override {
    uint64_t changes = 0;
    const Status compared = file_system_.snapshots().Diff(
        wanted.from, wanted.to, [this] { return command_.Check(); },
        [&](const PathChange& change) {
          ++changes;
          return visit(change);
        });
    if (compared.Is(StatusCode::kNotFound))
      return Status(StatusCode::kAborted, std::string(compared.cause()));
    SILTFS_RETURN_IF_ERROR(compared);
    return Json{{"changes", changes}};
  }
  Result<Json> Send(const WantedSend& wanted, PipedStreams& pipes,
                    const std::function<Status()>& check) override {
    const auto out = pipes.Output(check);
    const auto answers = wanted.two_way ? pipes.Input(check) : nullptr;
    return RunSend(file_system_, wanted, *out, answers.get(), check);
  }
  Result<Json> Receive(const WantedReceive& wanted, PipedStreams& pipes,
                       const std::function<Status()>& check) override {
    const auto in = pipes.Input(check);
    const auto answers = wanted.two_way ? pipes.Output(check) : nullptr;
    return RunReceive(file_system_, nullptr, wanted, *in, answers.get(), check);
  }
  Result<Json> Unfinished() override { return ListUnfinished(file_system_); }
  Result<Json> Abandon(const std::string& name) override {
    return RunAbandon(file_system_, {{"name", name}});
  }
  Status Sync() override { return Status::Ok(); }

 private:
  FileSystem& file_system_;
  LongCommand& command_;
};

using Use = std::function<Result<Json>(SnapshotPlace&, LongCommand&)>;

// Waits until the metadata of the removed snapshots is removed.
Status AwaitRemovals(Snapshots& snapshots, LongCommand& command) {
  command.OnInterruption([&snapshots] { snapshots.InterruptRemovals(); });
  Status removed = snapshots.AwaitRemovals();
  command.OnInterruption({});
  return removed;
}

Result<Json> UseUnmounted(Env& env, const std::string& store, SnapshotAccess access, const Use& use,
                          LongCommand& command) {
  PrepareForStore();
  const bool changes = access == SnapshotAccess::kChange;
  FileSystemOptions options;
  options.store = store;
  options.read_only = !changes;
  options.keep_reserve = changes;
  SILTFS_ASSIGN_OR_RETURN(
      const auto bucket,
      OpenBucketOf(env, options, {.interrupted = [&command] { return command.interrupted(); }}));
  auto opened = OpenWithProgress(env, std::move(options), command);
  if (bucket != nullptr) SILTFS_RETURN_IF_ERROR(bucket->EndOpening(opened.status()));
  SILTFS_ASSIGN_OR_RETURN(const auto file_system, std::move(opened));
  Snapshots& snapshots = file_system->snapshots();
  command.Observe([&snapshots] { return snapshots.progress(); });
  OpenedPlace place(*file_system, command);
  auto outcome = use(place, command);
  const Status removed = changes ? AwaitRemovals(snapshots, command) : Status::Ok();
  command.Observe({});
  const Status closed = file_system->Close();
  if (!outcome.ok()) {
    removed.IgnoreError("the first failure is reported");
    closed.IgnoreError("the first failure is reported");
    return outcome;
  }
  if (!removed.ok()) {
    closed.IgnoreError("the first failure is reported");
    return removed;
  }
  SILTFS_RETURN_IF_ERROR(closed);
  return outcome;
}

}  // namespace

Result<Json> WithSnapshots(Surroundings& surroundings, const SnapshotUse& wanted, const Use& use) {
  SILTFS_ASSIGN_OR_RETURN(const auto command,
                          LongCommand::Begin(surroundings, {.command = wanted.command,
                                                            .subject = wanted.place,
                                                            .quiet = wanted.quiet}));
  const auto explain = [&wanted](Result<Json> outcome) -> Result<Json> {
    if (outcome.ok()) return outcome;
    return ExplainInterruption(std::move(outcome).status(), wanted.afterwards);
  };
  SILTFS_ASSIGN_OR_RETURN(const auto mounted, FindMount(wanted.place));
  if (mounted) {
    command->Observe(LookAtDaemon(*mounted, "snapshot progress", ""));
    MountedPlace place(*mounted, *command);
    auto outcome = use(place, *command);
    command->End();
    return explain(std::move(outcome));
  }
  SILTFS_ASSIGN_OR_RETURN(const std::string store, StoreAt(wanted.place));
  auto outcome = OpenWhenFree(
      store, [&] { return UseUnmounted(surroundings.env, store, wanted.access, use, *command); });
  command->End();
  if (outcome.ok()) return outcome;
  const std::string name = "siltfs " + wanted.command;
  return ExplainReadOnlyMedium(ExplainLock(explain(std::move(outcome)).status(), store, name),
                               store, name + " opens the store for writing");
}

}  // namespace siltfs
