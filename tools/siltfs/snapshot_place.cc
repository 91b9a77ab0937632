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
#include "tools/siltfs/snapshot_command.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

class MountedPlace final : public SnapshotPlace {
 public:
  explicit MountedPlace(control::DaemonAddress address) : address_(std::move(address)) {}

  Result<Json> Run(const Json& arguments) override {
    SILTFS_RETURN_IF_ERROR(CheckSnapshotArguments(arguments));
    return control::AskWith(address_, {.command = "snapshot", .arguments = arguments},
                            control::Patience::WhileItRuns());
  }
  Result<Json> Diff(const WantedDiff& wanted,
                    const std::function<Status(const PathChange&)>& visit) override {
    SILTFS_RETURN_IF_ERROR(
        CheckSnapshotArguments(Json::array({wanted.from, wanted.to.value_or("")})));
    SILTFS_ASSIGN_OR_RETURN(const auto session, control::OpenSession(address_, kDiffSession));
    if (session.greeting.value("version", uint64_t{0}) != kDiffVersion)
      return Status(StatusCode::kNeedsNewer, "the daemon of the mount is of another version");
    return ReceiveDiff(*session.stream, wanted, visit);
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
    return control::AskWith(address_, {.command = kAbandonCommand, .arguments = arguments},
                            control::Patience::WhileItRuns());
  }
  Status Sync() override {
    // The kernel would wait forever for a daemon that does not answer, so it is asked first.
    SILTFS_ASSIGN_OR_RETURN(const auto live, LiveMountOf(address_));
    if (!live.mountpoint.empty()) SILTFS_RETURN_IF_ERROR(SyncMount(live.mountpoint));
    return control::Ask(live, "sync", control::Patience::WhileItRuns()).status();
  }

 private:
  Result<std::unique_ptr<LocalStream>> OpenTransfer(const char* session_name) {
    SILTFS_ASSIGN_OR_RETURN(auto session, control::OpenSession(address_, session_name));
    if (session.greeting.value("version", uint64_t{0}) != kTransferVersion)
      return Status(StatusCode::kNeedsNewer, "the daemon of the mount is of another version");
    return std::move(session.stream);
  }

  const control::DaemonAddress address_;
};

class OpenedPlace final : public SnapshotPlace {
 public:
  explicit OpenedPlace(FileSystem& file_system) : file_system_(file_system) {}

  Result<Json> Run(const Json& arguments) override {
    return RunSnapshotCommand(file_system_, nullptr, arguments, {});
  }
  Result<Json> Diff(const WantedDiff& wanted,
                    const std::function<Status(const PathChange&)>& visit) override {
    uint64_t changes = 0;
    const Status compared = file_system_.snapshots().Diff(
        wanted.from, wanted.to, [] { return Status::Ok(); },
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
};

Result<Json> UseUnmounted(Env& env, const std::string& store, SnapshotAccess access,
                          const std::function<Result<Json>(SnapshotPlace&)>& use) {
  PrepareForStore();
  const bool changes = access == SnapshotAccess::kChange;
  FileSystemOptions options;
  options.store = store;
  options.read_only = !changes;
  options.keep_reserve = changes;
  SILTFS_ASSIGN_OR_RETURN(const auto file_system, FileSystem::Open(env, options));
  OpenedPlace place(*file_system);
  auto outcome = use(place);
  const Status removed = changes ? file_system->snapshots().AwaitRemovals() : Status::Ok();
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

Result<Json> WithSnapshots(Env& env, const std::string& path, SnapshotAccess access,
                           const std::function<Result<Json>(SnapshotPlace&)>& use,
                           const std::string& command) {
  SILTFS_ASSIGN_OR_RETURN(const auto mounted, FindMount(path));
  if (mounted) {
    MountedPlace place(*mounted);
    return use(place);
  }
  SILTFS_ASSIGN_OR_RETURN(const std::string store, StoreAt(path));
  auto outcome = OpenWhenFree(store, [&] { return UseUnmounted(env, store, access, use); });
  if (outcome.ok()) return outcome;
  return ExplainReadOnlyMedium(ExplainLock(std::move(outcome).status(), store, command), store,
                               command + " opens the store for writing");
}

}  // namespace siltfs
