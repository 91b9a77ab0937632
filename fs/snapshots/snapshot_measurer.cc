#include "fs/snapshots/snapshot_measurer.h"

#include <utility>

#include "fs/snapshots/sort_directory.h"

namespace siltfs {
namespace {

constexpr const char* kSortDirectory = "sort";

}  // namespace

Result<std::vector<SnapshotMeasurer::Measured>> SnapshotMeasurer::Measure(
    const std::function<Status()>& check) {
  const MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(CheckRunning(check));
  // Begins before the state is taken, so that no segment that the state needs is removed.
  const ChunkStore::Use use(store_.chunks());
  store_.metadata().CommitNow().IgnoreError("the last commit is measured");
  const std::shared_ptr<const KvSnapshot> metadata = store_.metadata().CommittedSnapshot();
  SILTFS_ASSIGN_OR_RETURN(const std::vector<NumberedSnapshot> all, ReadSnapshots(*metadata));
  std::vector<Measured> measured;
  std::vector<SnapshotBounds> bounds;
  for (const NumberedSnapshot& snapshot : all) {
    if (snapshot.record.removing) continue;
    measured.push_back({snapshot, {}});
    bounds.push_back(BoundsOf(snapshot));
  }
  SILTFS_ASSIGN_OR_RETURN(const SnapshotSpaces spaces,
                          SortInStore(store_, kSortDirectory, [&](const std::string& directory) {
                            return MeasureWith(directory, *metadata, bounds, check);
                          }));
  for (size_t i = 0; i < measured.size(); ++i) measured[i].bytes = spaces.snapshots[i];
  return measured;
}

Result<SnapshotSpaces> SnapshotMeasurer::MeasureWith(const std::string& directory,
                                                     const KvSnapshot& metadata,
                                                     const std::vector<SnapshotBounds>& bounds,
                                                     const std::function<Status()>& check) {
  SnapshotSpaceOptions options;
  options.spill_directory = directory;
  options.pace = [&] { return CheckRunning(check); };
  const MeteredWork metered(progress_);
  options.progress = &progress_;
  options.more = [this](const std::function<Status(const ChunkName&)>& visit) {
    return store_.chunks().ForEachBase([&visit](const BaseRef& base) { return visit(base.name); });
  };
  return MeasureSnapshots(store_.env(), metadata, store_.chunks(), bounds, options);
}

Status SnapshotMeasurer::CheckRunning(const std::function<Status()>& check) const {
  if (stopping_) return {StatusCode::kInterrupted, "the store is being closed"};
  return check ? check() : Status::Ok();
}

void SnapshotMeasurer::Stop() {
  stopping_ = true;
  const MutexLock lock(mutex_);  // waits for the running measurement
}

}  // namespace siltfs
