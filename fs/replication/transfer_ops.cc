#include "fs/replication/transfer_ops.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "chunker/chunk_namer.h"
#include "fs/replication/resume_token.h"
#include "fs/replication/snapshot_receiver.h"
#include "fs/replication/snapshot_sender.h"

namespace siltfs {

Result<NumberedSnapshot> TransferOps::FindByName(std::string_view name) const {
  SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, snapshots_.Find(name));
  return store_.metadata().snapshots()->FindSnapshot(found.number);
}

SnapshotId TransferOps::IdOf(const NumberedSnapshot& snapshot) const {
  if (snapshot.record.lineage != kLiveLineage) return snapshot.record.source;
  return {.store = uuid_.bytes, .number = snapshot.number, .created = snapshot.record.created};
}

Result<SendOutcome> TransferOps::Send(const SendRequest& request, ByteSink& out,
                                      const std::function<Status()>& check) {
  SILTFS_ASSIGN_OR_RETURN(const NumberedSnapshot snapshot, FindByName(request.snapshot));
  SILTFS_ASSIGN_OR_RETURN(const SnapshotTrees::Hold hold, trees_.HoldSnapshot(snapshot.number));
  std::optional<NumberedSnapshot> base;
  std::optional<SnapshotTrees::Hold> base_hold;
  if (request.base) {
    SILTFS_ASSIGN_OR_RETURN(base, FindByName(*request.base));
    if (base->number >= snapshot.number || base->record.lineage != snapshot.record.lineage) {
      return Status(
          StatusCode::kInvalidArgument,
          fmt::format(
              "\"{}\" is not an older snapshot of the same files as \"{}\", so it cannot be "
              "the base",
              *request.base, request.snapshot));
    }
    SILTFS_ASSIGN_OR_RETURN(SnapshotTrees::Hold held, trees_.HoldSnapshot(base->number));
    base_hold.emplace(std::move(held));
  }
  const SnapshotRecord& record = snapshot.record;
  StreamBegin begin{.snapshot = IdOf(snapshot),
                    .name = record.name,
                    .inode_limit = record.inode_limit,
                    .logical_bytes = record.logical_bytes,
                    .files = record.files,
                    .directories = record.directories,
                    .chunk_references = record.chunk_references,
                    .two_way = request.answers != nullptr,
                    .position = {}};
  if (base) begin.base = IdOf(*base);
  if (!request.resume.empty()) {
    SILTFS_ASSIGN_OR_RETURN(ResumeToken token, ResumeToken::FromText(request.resume));
    if (token.snapshot != begin.snapshot || token.base != begin.base) {
      return Status(StatusCode::kInvalidArgument,
                    "the token is of another transfer: send the same snapshot, with the same base");
    }
    begin.position = std::move(token.position);
  }
  SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(uuid_.bytes));
  SnapshotSender::Options options;
  options.states.metadata = store_.metadata().CommittedSnapshot();
  options.states.lineage = record.lineage;
  options.states.newer = BoundsOf(snapshot);
  if (base) options.states.older = BoundsOf(*base);
  options.begin = std::move(begin);
  options.check = check;
  return SnapshotSender(store_.chunks(), namer, std::move(options), out, request.answers).Send();
}

Status TransferOps::BeginReceive() {
  const MutexLock lock(mutex_);
  if (receiving_) return {StatusCode::kInUse, "another snapshot is being received"};
  receiving_ = true;
  return Status::Ok();
}

Result<ReceiveOutcome> TransferOps::Receive(const ReceiveRequest& request, ByteSource& in,
                                            const std::function<Status()>& check) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(BeginReceive());
  SnapshotReceiver receiver(
      store_, trees_, request, in, [this] { return snapshots_.AwaitRemovals(); }, check);
  const auto made = receiver.Receive();
  {
    const MutexLock lock(mutex_);
    receiving_ = false;
  }
  SILTFS_RETURN_IF_ERROR(made.status());
  ReceiveOutcome outcome;
  SILTFS_ASSIGN_OR_RETURN(outcome.snapshot, snapshots_.Find(made->record.name));
  outcome.records = receiver.records();
  outcome.chunks = receiver.chunks().chunks();
  outcome.plain_bytes = receiver.chunks().plain_bytes();
  return outcome;
}

std::vector<UnfinishedReceive> TransferOps::Unfinished() const {
  bool running = false;
  {
    const MutexLock lock(mutex_);
    running = receiving_;
  }
  std::vector<UnfinishedReceive> unfinished;
  for (const auto& [lineage, record] : store_.metadata().lineages()->AllLineages()) {
    if (!record.incoming) continue;
    const ResumeToken token{.snapshot = record.incoming->id,
                            .base = record.incoming->base,
                            .position = record.incoming->position};
    unfinished.push_back(
        {.name = record.incoming->name, .token = token.ToText(), .running = running});
  }
  return unfinished;
}

Status TransferOps::Abandon(std::string_view name) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(BeginReceive());
  bool found = false;
  Status done;
  for (const auto& [lineage, record] : store_.metadata().lineages()->AllLineages()) {
    if (!done.ok() || !record.incoming || record.incoming->name != name) continue;
    found = true;
    done = store_.metadata().lineages()->SetLineage(lineage, LineageRecord{.changed = true});
  }
  if (found && done.ok()) done = snapshots_.AwaitRemovals();
  {
    const MutexLock lock(mutex_);
    receiving_ = false;
  }
  if (found && done.ok()) done = store_.metadata().AwaitShipped();
  if (found) return done;
  return {StatusCode::kNotFound,
          fmt::format("there is no unfinished transfer of a snapshot \"{}\"", name)};
}

}  // namespace siltfs
