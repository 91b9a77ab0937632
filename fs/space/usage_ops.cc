#include "fs/space/usage_ops.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "fs/mark/reference_sorter.h"
#include "fs/records/schema.h"
#include "fs/records/snapshot_record.h"
#include "fs/space/duplicate_files.h"
#include "fs/versions/version_keeper.h"
#include "store/env/files.h"
#include "store/env/process.h"

namespace siltfs {
namespace {

constexpr const char* kSortDirectory = "sort-paths";
// So often a call that waits for its turn checks whether it is still wanted.
constexpr std::chrono::milliseconds kCheckInterval{100};

}  // namespace

UsageOps::Turn::~Turn() {
  const MutexLock lock(ops_.mutex_);
  ops_.busy_ = false;
  ops_.changed_.NotifyAll();
}

Status UsageOps::AwaitTurn(const UsageScope& scope) {
  const MutexLock lock(mutex_);
  while (busy_) {
    SILTFS_RETURN_IF_ERROR(Check(scope));
    changed_.WaitFor(mutex_, kCheckInterval);
  }
  SILTFS_RETURN_IF_ERROR(Check(scope));
  busy_ = true;
  return Status::Ok();
}

Status UsageOps::Check(const UsageScope& scope) const {
  if (stopping_) return {StatusCode::kInterrupted, "the store is being closed"};
  return scope.check ? scope.check() : Status::Ok();
}

UsageOptions UsageOps::OptionsFor(const std::string& directory, const UsageScope& scope) const {
  UsageOptions options;
  options.spill_directory = directory;
  options.pace = [this, &scope] { return Check(scope); };
  options.more = [this](const std::function<Status(const ChunkName&)>& visit) {
    return store_.chunks().ForEachBase([&visit](const BaseRef& base) { return visit(base.name); });
  };
  const Counters counters = store_.metadata().counters();
  for (const Counter counter : {Counter::kFiles, Counter::kDirectories}) {
    options.inodes +=
        static_cast<uint64_t>(std::max<int64_t>(counters[static_cast<size_t>(counter)], 0));
  }
  return options;
}

Result<std::shared_ptr<const KvSnapshot>> UsageOps::CommittedFiles() const {
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  store_.metadata().CommitNow().IgnoreError("the last commit is measured");
  return store_.metadata().CommittedSnapshot();
}

template <typename Report>
Result<Report> UsageOps::Run(
    const UsageScope& scope,
    const std::function<Result<Report>(const KvSnapshot& metadata, const UsageOptions& options)>&
        work) {
  SILTFS_RETURN_IF_ERROR(AwaitTurn(scope));
  const Turn turn(*this);
  // Begins before the state is taken, so that no segment that the state needs is removed.
  const ChunkStore::Use use(store_.chunks());
  SILTFS_ASSIGN_OR_RETURN(const std::shared_ptr<const KvSnapshot> metadata, CommittedFiles());
  if (!store_.options().read_only) {
    const std::string directory = JoinPath(store_.options().store, kSortDirectory);
    auto report = work(*metadata, OptionsFor(directory, scope));
    ReferenceSorter::RemoveLeftovers(store_.env(), directory)
        .IgnoreError("there are some only after a crash");
    store_.env().RemoveDirectory(directory).IgnoreError("it was not needed");
    if (!report.status().Is(StatusCode::kNoSpace)) return report;
  }
  return work(*metadata, OptionsFor(TemporaryDirectory(), scope));
}

Result<UsageReport> UsageOps::Measure(const UsageRequest& request) {
  return Run<UsageReport>(
      request.scope,
      [&](const KvSnapshot& metadata, const UsageOptions& options) -> Result<UsageReport> {
        SILTFS_ASSIGN_OR_RETURN(const std::vector<NumberedSnapshot> all, ReadSnapshots(metadata));
        std::vector<SnapshotBounds> snapshots;
        for (const NumberedSnapshot& snapshot : all) {
          if (!snapshot.record.removing) snapshots.push_back(BoundsOf(snapshot));
        }
        return MeasureUsage(store_.env(), metadata, store_.chunks(), snapshots, request, options);
      });
}

Result<DuplicateReport> UsageOps::FindDuplicates(const DuplicateRequest& request) {
  return Run<DuplicateReport>(
      request.scope, [&](const KvSnapshot& metadata, const UsageOptions& options) {
        return FindDuplicateFiles(store_.env(), metadata, store_.chunks(), request, options);
      });
}

void UsageOps::Stop() {
  stopping_ = true;
  const MutexLock lock(mutex_);
  while (busy_) changed_.Wait(mutex_);
}

}  // namespace siltfs
