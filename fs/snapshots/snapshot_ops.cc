#include "fs/snapshots/snapshot_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "fs/diff/tree_diff.h"
#include "fs/interface/snapshot_inode.h"
#include "fs/snapshots/head_restore.h"
#include "fs/snapshots/routed_file_system.h"
#include "store/segment/store_uuid.h"

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
          .logical_bytes = count(record.logical_bytes),
          .received_from = record.lineage == kLiveLineage
                               ? std::string()
                               : StoreUuid::FromBytes(record.source.store).ToText()};
}

// The change as it looks if the newer state is compared with the older one.
PathChange Backward(PathChange change) {
  if (change.kind == ChangeKind::kCreated) {
    change.kind = ChangeKind::kDeleted;
  } else if (change.kind == ChangeKind::kDeleted) {
    change.kind = ChangeKind::kCreated;
  } else {
    std::swap(change.path, change.old_path);
  }
  return change;
}

Status OtherLineage(std::string_view from, std::string_view to) {
  return {
      StatusCode::kInvalidArgument,
      fmt::format("the snapshot \"{}\" and {} do not come from the same store, so they cannot be "
                  "compared",
                  from, to)};
}

}  // namespace

SnapshotOps::SnapshotOps(const StoreContext& store, const IdAllocator* ids, OperationGate& gate,
                         RolledBackInodes& rolled_back, InodeStore& inodes,
                         InodeLifetimes& lifetimes, SnapshotTrees& trees, FileSystem& live)
    : store_(store),
      ids_(ids),
      gate_(gate),
      rolled_back_(rolled_back),
      lifetimes_(lifetimes),
      trees_(trees),
      live_(live),
      job_(store.env(), {.store = store.options().store,
                         .interrupted = "the store is being closed; the next mount continues the "
                                        "removal of snapshots"}),
      measurer_(store, progress_),
      rollback_(store, gate, inodes, lifetimes) {}

void SnapshotOps::Start() {
  if (store_.options().read_only) return;
  job_.Start({.has_work = [this] { return HasRemoved(); },
              .work = [this]() -> std::chrono::nanoseconds {
                const BackgroundJob::Run run(job_, BackgroundJob::Runner::kBackground);
                const Status released = ReleaseRemoved();
                return released.ok() ? std::chrono::nanoseconds(0) : kRetryAfter;
              }});
}

SnapshotInfo SnapshotOps::Describe(const NumberedSnapshot& snapshot) const {
  SnapshotInfo info = InfoOf(snapshot);
  info.shown = trees_.HasView(snapshot.number);
  return info;
}

std::vector<SnapshotInfo> SnapshotOps::List() const {
  std::vector<SnapshotInfo> list;
  for (const NumberedSnapshot& snapshot : Port().Snapshots()) {
    if (snapshot.record.removing) continue;
    list.push_back(Describe(snapshot));
  }
  return list;
}

Result<SnapshotInfo> SnapshotOps::Find(std::string_view name) const {
  for (SnapshotInfo& snapshot : List()) {
    if (snapshot.name == name) return std::move(snapshot);
  }
  return Status(StatusCode::kNotFound, fmt::format("there is no snapshot named \"{}\"", name));
}

Result<std::vector<SnapshotSpace>> SnapshotOps::Measure(const std::function<Status()>& check) {
  SILTFS_ASSIGN_OR_RETURN(const auto measured, measurer_.Measure(check));
  std::vector<SnapshotSpace> spaces;
  for (const auto& [snapshot, bytes] : measured)
    spaces.push_back({Describe(snapshot), bytes.new_bytes, bytes.freed_bytes});
  return spaces;
}

Status SnapshotOps::CheckRoomForSnapshot() const {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(kBytesPerName));
  if (ids_->next_inode() < kSnapshotInodeLimit) return Status::Ok();
  return {StatusCode::kUnsupported,
          "the store has used up the inode numbers of snapshots, so it cannot have new ones"};
}

Status SnapshotOps::CheckFree(std::string_view name) const {
  if (!Find(name).ok()) return Status::Ok();
  return {StatusCode::kAlreadyExists, fmt::format("another snapshot is named \"{}\"", name)};
}

Result<SnapshotInfo> SnapshotOps::Create(std::string_view name) {
  SILTFS_RETURN_IF_ERROR(CheckSnapshotName(name));
  SILTFS_RETURN_IF_ERROR(CheckRoomForSnapshot());
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  SILTFS_ASSIGN_OR_RETURN(const NumberedSnapshot made,
                          Port().CreateSnapshot(std::string(name), store_.Now(),
                                                [this] { return ids_->next_inode(); }));
  SILTFS_RETURN_IF_ERROR(store_.metadata().AwaitShipped());
  return InfoOf(made);
}

Status SnapshotOps::Rename(std::string_view name, std::string_view new_name) {
  SILTFS_RETURN_IF_ERROR(CheckSnapshotName(new_name));
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, Find(name));
  // The new name is durable at once. So after a crash, the changes before it must be there, too.
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  SILTFS_RETURN_IF_ERROR(Port().RenameSnapshot(found.number, std::string(new_name)));
  return store_.metadata().AwaitShipped();
}

Status SnapshotOps::Remove(std::string_view name) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  {
    const MutexLock lock(remove_mutex_);
    SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, Find(name));
    // The removal is durable at once. So after a crash, the changes before it must be there, too.
    SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
    SILTFS_RETURN_IF_ERROR(trees_.Close(found.number));
    const Status removed = Port().BeginRemoval(found.number);
    trees_.EndClosing(found.number);
    job_.Wake();
    SILTFS_RETURN_IF_ERROR(removed);
  }
  return store_.metadata().AwaitShipped();
}

Result<std::shared_ptr<const KvSnapshot>> SnapshotOps::CommittedFiles() const {
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  if (store_.CheckWritable().ok()) SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  return store_.metadata().CommittedSnapshot();
}

Status SnapshotOps::Diff(std::string_view from, std::optional<std::string_view> to,
                         const std::function<Status()>& check,
                         const std::function<Status(const PathChange&)>& visit) {
  SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo first, Find(from));
  SILTFS_ASSIGN_OR_RETURN(const SnapshotTrees::Use first_use,
                          trees_.Enter(first.number, SnapshotTrees::kDirectory));
  SILTFS_ASSIGN_OR_RETURN(const NumberedSnapshot older, Port().FindSnapshot(first.number));
  if (!to && older.record.lineage != kLiveLineage) return OtherLineage(from, "the files");
  if (!to) {
    SILTFS_ASSIGN_OR_RETURN(const auto present, CommittedFiles());
    return CompareTrees({present, older, nullptr}, check, visit);
  }
  SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo second, Find(*to));
  if (first.number == second.number) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const SnapshotTrees::Use second_use,
                          trees_.Enter(second.number, SnapshotTrees::kDirectory));
  SILTFS_ASSIGN_OR_RETURN(const NumberedSnapshot newer, Port().FindSnapshot(second.number));
  if (older.record.lineage != newer.record.lineage)
    return OtherLineage(from, fmt::format("the snapshot \"{}\"", *to));
  const bool forward = first.number < second.number;
  const ComparedStates states(store_.metadata().CommittedSnapshot(), forward ? older : newer,
                              forward ? &newer : &older);
  return CompareTrees(states, check, [&](const PathChange& change) {
    return visit(forward ? change : Backward(change));
  });
}

Result<SnapshotInfo> SnapshotOps::RollBack(std::string_view name, std::string_view kept,
                                           KernelCache* cache) {
  SILTFS_RETURN_IF_ERROR(CheckSnapshotName(kept));
  SILTFS_RETURN_IF_ERROR(CheckRoomForSnapshot());
  // A wrong name must not make operations wait. The names are checked again when none runs.
  SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo named, Find(name));
  SILTFS_ASSIGN_OR_RETURN(const NumberedSnapshot numbered, Port().FindSnapshot(named.number));
  SILTFS_RETURN_IF_ERROR(CheckRestorable(numbered.record));
  SILTFS_RETURN_IF_ERROR(CheckFree(kept));
  SILTFS_RETURN_IF_ERROR(rollback_.CheckRoom(numbered));
  std::optional<RestoredRecords> restored;
  NumberedSnapshot made;
  std::shared_ptr<const KvSnapshot> state;
  {
    SILTFS_ASSIGN_OR_RETURN(const OperationGate::Closure closure, rollback_.AwaitNothingOpen());
    SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, Find(name));
    SILTFS_RETURN_IF_ERROR(CheckFree(kept));
    SILTFS_ASSIGN_OR_RETURN(const std::vector<uint64_t> removed, rollback_.CommitInodes());
    restored.emplace(lifetimes_.lookups(), store_.metadata().CommittedSnapshot());
    restored->AddRemoved(removed);
    SILTFS_ASSIGN_OR_RETURN(made, Port().BeginRestore(found.number, std::string(kept), store_.Now(),
                                                      ids_->next_inode()));
    SILTFS_ASSIGN_OR_RETURN(const NumberedSnapshot wanted, Port().FindSnapshot(found.number));
    const MeteredWork metered(progress_);
    progress_.Begin("changed records");
    Status done = rollback_.Restore(wanted, [&](std::string_view key) {
      progress_.Add();
      restored->Add(key);
    });
    state = store_.metadata().CommittedSnapshot();
    if (done.ok()) done = restored->FindRenewed(*state);
    if (done.ok()) done = store_.quotas().Load(store_.metadata());
    if (!done.ok()) {
      gate_.Break({StatusCode::kIoError,
                   fmt::format("the rollback to the snapshot \"{}\" has failed ({}); unmount the "
                               "store, and mount it again, which completes the rollback",
                               name, done.ToString())});
      return done;
    }
    rolled_back_.Add(restored->renewed());
    if (cache != nullptr) restored->ForgetInodes(*cache);
  }
  if (cache == nullptr) return InfoOf(made);
  const Status found_names = restored->AddNamesOfFiles(*state);
  restored->ForgetNames(*cache);
  if (!found_names.ok() && store_.options().report) {
    store_.options().report(fmt::format(
        "after the rollback to the snapshot \"{}\" programs may see old sizes of files that they "
        "do not open, because names cannot be read: {}",
        name, found_names.ToString()));
  }
  return InfoOf(made);
}

Status SnapshotOps::CompleteRollback() {
  const std::vector<NumberedSnapshot> all = Port().Snapshots();
  const auto wanted =
      std::ranges::find_if(all, [](const auto& snapshot) { return snapshot.record.restoring; });
  if (wanted == all.end()) return Status::Ok();
  if (store_.options().read_only) {
    if (!store_.options().snapshot.empty()) return Status::Ok();  // the snapshots are whole
    return {StatusCode::kUnsupported,
            fmt::format("a rollback to the snapshot \"{}\" was interrupted; mount the store for "
                        "writing once, which completes it",
                        wanted->record.name)};
  }
  ProgressMeter* const opening = store_.options().opening;
  if (opening != nullptr) opening->Begin("records of the rollback");
  return rollback_.Restore(*wanted, [opening](std::string_view) {
    if (opening != nullptr) opening->Add();
  });
}

Result<std::unique_ptr<FileSystem>> SnapshotOps::Show(std::string_view name) {
  SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, Find(name));
  SILTFS_ASSIGN_OR_RETURN(const SnapshotTrees::View view, trees_.AddView(found.number));
  return std::unique_ptr<FileSystem>(
      std::make_unique<RoutedFileSystem>(live_, gate_, rolled_back_, trees_, found.number, view));
}

Status SnapshotOps::AwaitRemovals() {
  const BackgroundJob::Caller caller(job_);
  const BackgroundJob::Run run(job_, BackgroundJob::Runner::kCaller);
  const MeteredWork metered(progress_);
  progress_.Begin("removed records");
  return ReleaseRemoved();
}

uint64_t SnapshotOps::BytesOfLastOfLineage(uint64_t number) const {
  const std::vector<NumberedSnapshot> all = Port().Snapshots();
  const auto removed = std::ranges::find(all, number, &NumberedSnapshot::number);
  if (removed == all.end() || removed->record.lineage == kLiveLineage) return 0;
  const bool last = std::ranges::none_of(all, [&](const NumberedSnapshot& other) {
    return other.number != number && other.record.lineage == removed->record.lineage;
  });
  return last ? static_cast<uint64_t>(std::max<int64_t>(removed->record.logical_bytes, 0)) : 0;
}

bool SnapshotOps::HasRemoved() const {
  const std::vector<NumberedSnapshot> all = Port().Snapshots();
  return std::ranges::any_of(all, [](const auto& snapshot) { return snapshot.record.removing; }) ||
         std::ranges::any_of(LineagePort().AllLineages(), [](const auto& lineage) {
           return lineage.second.changed && !lineage.second.incoming;
         });
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
  return RestoreHeads();
}

Status SnapshotOps::RestoreHeads() {
  Status first;
  for (const auto& [lineage, record] : LineagePort().AllLineages()) {
    Status restored = RestoreHead(Port(), LineagePort(), lineage, kVersionsPerWrite,
                                  [this] { return job_.CheckRunning(); });
    if (restored.ok()) continue;
    if (restored.Is(StatusCode::kInterrupted) || restored.Is(StatusCode::kReadOnly)) {
      first.IgnoreError("reported");
      return restored;
    }
    if (store_.options().report) {
      store_.options().report(
          fmt::format("the restore of received snapshots failed and will be tried again: {}",
                      restored.ToString()));
    }
    if (first.ok()) {
      first = std::move(restored);
    } else {
      restored.IgnoreError("reported");
    }
  }
  return first;
}

Status SnapshotOps::Release(uint64_t number) {
  VersionRelease release = Port().BeginRelease(number);
  for (bool more = true; more;) {
    SILTFS_RETURN_IF_ERROR(job_.CheckRunning());
    SILTFS_ASSIGN_OR_RETURN(more, Port().ReleaseSome(release, kVersionsPerWrite));
    if (!job_.in_background() && more) progress_.Add(kVersionsPerWrite);
  }
  store_.chunks().NoteReleased(release.content_bytes() + BytesOfLastOfLineage(number));
  return Port().EndRemoval(number);
}

}  // namespace siltfs
