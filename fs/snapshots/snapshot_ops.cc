#include "fs/snapshots/snapshot_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "fs/interface/snapshot_inode.h"
#include "fs/snapshots/routed_file_system.h"

namespace siltfs {
namespace {

// The most versions that one write removes. Commits wait for the write.
constexpr size_t kVersionsPerWrite = 1024;
// The pause before the removal is tried again after a failure.
constexpr std::chrono::seconds kRetryAfter{10};

SnapshotInfo InfoOf(const NumberedSnapshot& snapshot) {
  const auto count = [](int64_t counter) {
    return static_cast<uint64_t>(std::max<int64_t>(counter, 0));
  };
  const SnapshotRecord& record = snapshot.record;
  return {.number = snapshot.number,
          .name = record.name,
          .created = record.created,
          .commit = record.commit,
          .files = count(record.files),
          .directories = count(record.directories),
          .logical_bytes = count(record.logical_bytes)};
}

Status CheckName(std::string_view name) {
  if (IsName(name)) return Status::Ok();
  return {StatusCode::kInvalidArgument,
          fmt::format("\"{}\" cannot be the name of a snapshot, because no file can have this name",
                      name)};
}

}  // namespace

SnapshotOps::SnapshotOps(const StoreContext& store, SnapshotTrees& trees, FileSystem& live)
    : store_(store),
      trees_(trees),
      live_(live),
      job_(store.env(), {.store = store.options().store,
                         .interrupted = "the store is being closed; the next mount continues the "
                                        "removal of snapshots"}) {}

void SnapshotOps::Start() {
  if (store_.options().read_only) return;
  job_.Start({.has_work = [this] { return HasRemoved(); },
              .work = [this]() -> std::chrono::nanoseconds {
                const BackgroundJob::Run run(job_, BackgroundJob::Runner::kBackground);
                const Status released = ReleaseRemoved();
                return released.ok() ? std::chrono::nanoseconds(0) : kRetryAfter;
              }});
}

std::vector<SnapshotInfo> SnapshotOps::List() const {
  std::vector<SnapshotInfo> list;
  for (const NumberedSnapshot& snapshot : Port().Snapshots()) {
    if (snapshot.record.removing) continue;
    list.push_back(InfoOf(snapshot));
    list.back().shown = trees_.HasView(snapshot.number);
  }
  return list;
}

Result<SnapshotInfo> SnapshotOps::Find(std::string_view name) const {
  for (SnapshotInfo& snapshot : List()) {
    if (snapshot.name == name) return std::move(snapshot);
  }
  return Status(StatusCode::kNotFound, fmt::format("there is no snapshot named \"{}\"", name));
}

Result<SnapshotInfo> SnapshotOps::Create(std::string_view name) {
  SILTFS_RETURN_IF_ERROR(CheckName(name));
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(kBytesPerName));
  const std::vector<NumberedSnapshot> all = Port().Snapshots();
  if (!all.empty() && all.back().record.inode_limit >= kSnapshotInodeLimit) {
    return Status(
        StatusCode::kUnsupported,
        "the store has used up the inode numbers of snapshots, so it cannot have new ones");
  }
  SILTFS_ASSIGN_OR_RETURN(const NumberedSnapshot made,
                          Port().CreateSnapshot(std::string(name), store_.Now()));
  return InfoOf(made);
}

Status SnapshotOps::Rename(std::string_view name, std::string_view new_name) {
  SILTFS_RETURN_IF_ERROR(CheckName(new_name));
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, Find(name));
  // The new name is durable at once. So after a crash, the changes before it must be there, too.
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  return Port().RenameSnapshot(found.number, std::string(new_name));
}

Status SnapshotOps::Remove(std::string_view name) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  const MutexLock lock(remove_mutex_);
  SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, Find(name));
  // The removal is durable at once. So after a crash, the changes before it must be there, too.
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  SILTFS_RETURN_IF_ERROR(trees_.Close(found.number));
  const Status removed = Port().BeginRemoval(found.number);
  trees_.EndClosing(found.number);
  job_.Wake();
  return removed;
}

Result<std::unique_ptr<FileSystem>> SnapshotOps::Show(std::string_view name) {
  SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, Find(name));
  SILTFS_ASSIGN_OR_RETURN(const SnapshotTrees::View view, trees_.AddView(found.number));
  return std::unique_ptr<FileSystem>(
      std::make_unique<RoutedFileSystem>(live_, trees_, found.number, view));
}

Status SnapshotOps::AwaitRemovals() {
  const BackgroundJob::Caller caller(job_);
  const BackgroundJob::Run run(job_, BackgroundJob::Runner::kCaller);
  return ReleaseRemoved();
}

bool SnapshotOps::HasRemoved() const {
  const std::vector<NumberedSnapshot> all = Port().Snapshots();
  return std::ranges::any_of(all, [](const auto& snapshot) { return snapshot.record.removing; });
}

Status SnapshotOps::ReleaseRemoved() {
  for (const NumberedSnapshot& snapshot : Port().Snapshots()) {
    if (!snapshot.record.removing) continue;
    Status released = Release(snapshot.number);
    const bool expected =
        released.Is(StatusCode::kInterrupted) || released.Is(StatusCode::kReadOnly);
    if (!released.ok() && !expected && store_.options().report) {
      store_.options().report(
          fmt::format("the removal of the snapshot \"{}\" failed and will be tried "
                      "again: {}",
                      snapshot.record.name, released.ToString()));
    }
    SILTFS_RETURN_IF_ERROR(released);
  }
  return Status::Ok();
}

Status SnapshotOps::Release(uint64_t number) {
  VersionRelease release = Port().BeginRelease(number);
  for (bool more = true; more;) {
    SILTFS_RETURN_IF_ERROR(job_.CheckRunning());
    SILTFS_ASSIGN_OR_RETURN(more, Port().ReleaseSome(release, kVersionsPerWrite));
  }
  store_.chunks().NoteReleased(release.content_bytes());
  return Port().EndRemoval(number);
}

}  // namespace siltfs
