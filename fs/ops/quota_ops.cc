#include "fs/ops/quota_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "fs/records/directory_paths.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

// How long operations wait at a time for those that have begun, such as a clone, and how often that
// is tried before inodes are counted. After the count it is tried until it succeeds; with the long
// pause, other operations seldom wait meanwhile.
constexpr std::chrono::milliseconds kOperationPatience{100};
constexpr std::chrono::milliseconds kPause{5};
constexpr std::chrono::milliseconds kLongPause{500};
constexpr int kTries = 10;

uint64_t Positive(int64_t number) { return static_cast<uint64_t>(std::max<int64_t>(number, 0)); }

}  // namespace

Result<OperationGate::Closure> QuotaOps::KeepOperationsOut() {
  for (int tries = 0; tries < kTries; ++tries) {
    SILTFS_ASSIGN_OR_RETURN(std::optional<OperationGate::Closure> closure,
                            gate_.Close(kOperationPatience));
    if (closure) return *std::move(closure);
    std::this_thread::sleep_for(kPause);
  }
  return Status(StatusCode::kInUse,
                "an operation, such as a clone, is running; set the quota when it has ended");
}

std::optional<Quotas::State> QuotaOps::OfDirectory(InodeNumber directory) const {
  for (const Quotas::State& state : store_.quotas().All()) {
    if (state.record.directory == directory) return state;
  }
  return std::nullopt;
}

Status QuotaOps::CheckNotNested(InodeNumber directory) const {
  for (const Quotas::State& state : store_.quotas().All()) {
    const auto nested = [&](InodeNumber inner, InodeNumber outer,
                            std::string_view where) -> Status {
      const Status outside = names_.CheckNotInside(inner, outer);
      if (!outside.Is(StatusCode::kInvalidArgument)) return outside;
      const std::string path = InfoOf(state).path;
      return {StatusCode::kInvalidArgument,
              fmt::format("{} it, \"{}\" has a quota, and quotas are not nested; remove that one "
                          "first",
                          where, path)};
    };
    SILTFS_RETURN_IF_ERROR(nested(directory, state.record.directory, "above"));
    SILTFS_RETURN_IF_ERROR(nested(state.record.directory, directory, "below"));
  }
  return Status::Ok();
}

Result<QuotaInfo> QuotaOps::Set(InodeNumber directory, const WantedLimits& wanted,
                                const std::function<Status()>& check) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(kBytesPerName));
  const QuotaLimits limits{.bytes = wanted.bytes, .files = wanted.files};
  {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    SILTFS_RETURN_IF_ERROR(CheckPresent(directory));
  }
  QuotaNumber number = kNoQuota;
  {
    SILTFS_ASSIGN_OR_RETURN(const OperationGate::Closure closure, KeepOperationsOut());
    if (const auto present = OfDirectory(directory)) {
      SILTFS_RETURN_IF_ERROR(SetLimits(*present, limits));
    } else {
      SILTFS_ASSIGN_OR_RETURN(number, Begin({.directory = directory, .limits = limits}));
    }
  }
  if (number != kNoQuota) {
    const Status made = CountAndMake(directory, number, check);
    counted_ = 0;
    if (!made.ok()) store_.quotas().Remove(number);
    SILTFS_RETURN_IF_ERROR(made);
  }
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  const auto made = OfDirectory(directory);
  if (!made) return Status(StatusCode::kAborted, "the quota was removed at once");
  return InfoOf(*made);
}

Status QuotaOps::CheckPresent(InodeNumber directory) {
  return inodes_.WithLoaded(
      directory, false, [](const Inode& inode) { return DirectoryNames::CheckDirectory(inode); });
}

Status QuotaOps::SetLimits(const Quotas::State& state, const QuotaLimits& limits) {
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  QuotaRecord record = state.record;
  record.limits = limits;
  Change change;
  change.Put(QuotaKey(state.number, QuotaPart::kLimits), record.Encode());
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  store_.quotas().SetLimits(state.number, limits);
  return Status::Ok();
}

Result<QuotaNumber> QuotaOps::Begin(const QuotaRecord& record) {
  SILTFS_RETURN_IF_ERROR(CheckPresent(record.directory));
  SILTFS_RETURN_IF_ERROR(CheckNotNested(record.directory));
  if (store_.quotas().Counting())
    return Status(StatusCode::kInUse,
                  "the files below another directory are being counted; set "
                  "the quota when that has ended");
  SILTFS_RETURN_IF_ERROR(enable_());
  SILTFS_ASSIGN_OR_RETURN(const QuotaNumber number, ids_->NextInode());
  if (!store_.quotas().BeginCount(number, record))
    return Status(StatusCode::kInUse, "the files below another directory are being counted");
  return number;
}

Status QuotaOps::CountAndMake(InodeNumber directory, QuotaNumber number,
                              const std::function<Status()>& check) {
  QuotaCounter counter(store_, gate_, inodes_, changes_, counted_);
  counted_ = 0;
  SILTFS_RETURN_IF_ERROR(counter.Count(directory, number, check));
  // Shortens the commit below, for which operations wait.
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  for (;;) {
    SILTFS_ASSIGN_OR_RETURN(const auto closure, gate_.Close(kOperationPatience));
    if (closure) return Make(directory, number, counter);
    if (check) SILTFS_RETURN_IF_ERROR(check());
    std::this_thread::sleep_for(kLongPause);
  }
}

Status QuotaOps::Make(InodeNumber directory, QuotaNumber number, QuotaCounter& counter) {
  SILTFS_RETURN_IF_ERROR(counter.CountMoved(number));
  SILTFS_RETURN_IF_ERROR(CheckPresent(directory));
  // Metadata gets all deferred changes, so the usage in memory is that of its records. And the next
  // group has no differences for this quota, which its commit would add to the usage.
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  const auto state = store_.quotas().Counting();
  if (!state || state->number != number)
    return {StatusCode::kAborted, "the count was ended by a rollback; set the quota again"};
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  Change change;
  change.Put(QuotaKey(number, QuotaPart::kLimits), state->record.Encode());
  change.Put(QuotaKey(number, QuotaPart::kUsage), EncodeUsage(state->usage));
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  store_.quotas().EndCount(number);
  return Status::Ok();
}

Status QuotaOps::Remove(InodeNumber directory) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    const auto state = OfDirectory(directory);
    if (!state) return {StatusCode::kNoAttribute, "has no quota"};
    SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
    Change change;
    change.RemoveQuota(state->number);
    SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  }
  return store_.metadata().CommitNow();
}

QuotaInfo QuotaOps::InfoOf(const Quotas::State& state) const {
  QuotaInfo info{.directory = state.record.directory,
                 .path = {},
                 .bytes_limit = state.record.limits.bytes,
                 .files_limit = state.record.limits.files,
                 .bytes = Positive(state.usage.bytes),
                 .files = Positive(state.usage.files)};
  const auto committed = store_.metadata().CommittedSnapshot();
  auto path = DirectoryPaths(*committed).PathOf(state.record.directory);
  if (path.ok()) info.path = *std::move(path);
  return info;
}

Result<std::vector<QuotaInfo>> QuotaOps::List() {
  // The paths of directories that were made or renamed just now.
  if (store_.CheckWritable().ok()) SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  std::vector<QuotaInfo> list;
  for (const Quotas::State& state : store_.quotas().All()) list.push_back(InfoOf(state));
  return list;
}

Result<std::optional<QuotaInfo>> QuotaOps::Of(InodeNumber inode) {
  QuotaNumber quota = kNoQuota;
  {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(inode, false, [&quota](const Inode& loaded) {
      quota = loaded.record.quota;
      return Status::Ok();
    }));
  }
  const auto state = store_.quotas().Find(quota);
  if (!state) return std::optional<QuotaInfo>();
  return std::optional(InfoOf(*state));
}

}  // namespace siltfs
