#include "fs/ops/clone_ops.h"

#include <memory>
#include <optional>
#include <utility>

#include "fs/interface/snapshot_inode.h"
#include "fs/ops/quota_moves.h"
#include "fs/records/schema.h"
#include "fs/versions/snapshot_view.h"

namespace siltfs {
namespace {

Status Taken() { return {StatusCode::kAlreadyExists, "the name is taken"}; }

QuotaUsage UsageOf(const CloneTotals& totals) {
  return {.bytes = static_cast<int64_t>(totals.logical_bytes),
          .files = static_cast<int64_t>(totals.files + totals.directories)};
}

}  // namespace

Status CloneOps::CheckBegin(const CloneRequest& request) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckName(request.name));
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(kBytesPerName));
  // Publish checks these again, under the lock of the directory.
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(request.parent, false, [](const Inode& directory) {
    return DirectoryNames::CheckDirectory(directory);
  }));
  SILTFS_ASSIGN_OR_RETURN(const auto taken, names_.FindName(request.parent, request.name));
  if (taken) return Taken();
  if (SplitSnapshotInode(request.source).snapshot != 0) return Status::Ok();
  const Status outside = names_.CheckNotInside(request.parent, request.source);
  if (outside.Is(StatusCode::kInvalidArgument))
    return {StatusCode::kInvalidArgument, "a directory cannot be cloned into itself"};
  return outside;
}

Result<CloneOutcome> CloneOps::Clone(const CloneRequest& request) {
  SILTFS_RETURN_IF_ERROR(CheckBegin(request));
  const SnapshotInode source = SplitSnapshotInode(request.source);
  std::optional<ChunkStore::Use> use;
  std::shared_ptr<const KvSnapshot> state;
  {
    const MutexLock lock(store_.chunks().mark_begin());
    use.emplace(store_.chunks());
    SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
    SILTFS_ASSIGN_OR_RETURN(state, StateOf(source));
  }
  CloneRequest within = request;
  within.source = source.inode;
  return CloneFrom(*state, within);
}

Result<std::shared_ptr<const KvSnapshot>> CloneOps::StateOf(const SnapshotInode& source) {
  std::shared_ptr<const KvSnapshot> present = store_.metadata().CommittedSnapshot();
  if (source.snapshot == 0) return present;
  SILTFS_ASSIGN_OR_RETURN(const NumberedSnapshot found,
                          store_.metadata().snapshots()->FindSnapshot(source.snapshot));
  return MakeSnapshotView(std::move(present), BoundsOf(found));
}

Result<CloneOutcome> CloneOps::CloneFrom(const KvSnapshot& state, const CloneRequest& request) {
  HiddenWriter writer(store_, *ids_, inodes_.hidden(), request.batch_bytes);
  // No quota is set meanwhile, because the clone has a Pass of the gate. If one is being counted,
  // the clone has its number at once, although the parent may not have it yet.
  QuotaNumber quota = kNoQuota;
  SILTFS_RETURN_IF_ERROR(
      inodes_.WithLoaded(request.parent, false, [&](const Inode& directory) -> Status {
        SILTFS_ASSIGN_OR_RETURN(quota, QuotaBelow(store_, names_, directory));
        return Status::Ok();
      }));
  CloneRequest checked = request;
  checked.on_progress = [&](const CloneTotals& totals) -> Status {
    SILTFS_RETURN_IF_ERROR(store_.quotas().Reserve(quota, UsageOf(totals)).status());
    return request.on_progress ? request.on_progress(totals) : Status::Ok();
  };
  TreeCopy copy(state, checked, store_.Now(), quota, writer, request.most_links);
  SILTFS_ASSIGN_OR_RETURN(const TreeCopy::Root root, copy.Copy());
  SILTFS_RETURN_IF_ERROR(store_.metadata().snapshots()->PublishHidden(
      writer.ranges(), [&] { return Publish(request, copy, root, writer); }));
  return CloneOutcome{.inode = root.number, .totals = copy.totals()};
}

Status CloneOps::Publish(const CloneRequest& request, const TreeCopy& copy,
                         const TreeCopy::Root& root, HiddenWriter& writer) {
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  const InodePtr directory = inodes_.Get(request.parent);
  const InodeLock lock(directory, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*directory));
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckDirectory(*directory));
  SILTFS_ASSIGN_OR_RETURN(const auto taken, names_.FindName(*directory, request.name));
  if (taken) return Taken();
  Inode inode(root.number);
  inode.record = root.record;
  Change change;
  if (root.record.IsDirectory()) {
    if (directory->record.links >= kMaxLinks)
      return Status(StatusCode::kTooManyLinks, "the directory is full");
    ++directory->record.links;
  }
  const CloneTotals& totals = copy.totals();
  SILTFS_ASSIGN_OR_RETURN(const auto room,
                          store_.quotas().Reserve(root.record.quota, UsageOf(totals)));
  DirectoryNames::AddName(*directory, request.name, inode, change);
  directory->record.mtime = directory->record.ctime = store_.Now();
  change.Save(*directory);
  change.Save(inode);
  writer.AddPublication(change);
  change.CountUsage(root.record, UsageOf(totals));
  change.Count(Counter::kFiles, static_cast<int64_t>(totals.files));
  change.Count(Counter::kDirectories, static_cast<int64_t>(totals.directories));
  change.Count(Counter::kLogicalBytes, static_cast<int64_t>(totals.logical_bytes));
  change.Count(Counter::kChunkReferences, static_cast<int64_t>(copy.chunk_references()));
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  writer.Publish();
  return Status::Ok();
}

}  // namespace siltfs
