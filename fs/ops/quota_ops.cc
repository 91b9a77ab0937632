#include "fs/ops/quota_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "fs/records/directory_entry.h"
#include "fs/records/directory_paths.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

// How long operations wait at a time for those that have begun, such as a clone, and how often that
// is tried.
constexpr std::chrono::milliseconds kOperationPatience{100};
constexpr std::chrono::milliseconds kPause{5};
constexpr int kTries = 10;
constexpr size_t kChildrenAtATime = 4096;
constexpr uint64_t kInodesBetweenChecks = 256;
constexpr uint32_t kDirectoryType = 0040000;

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
    SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(directory, false, [](const Inode& inode) {
      return DirectoryNames::CheckDirectory(inode);
    }));
  }
  {
    SILTFS_ASSIGN_OR_RETURN(const OperationGate::Closure closure, KeepOperationsOut());
    const auto present = OfDirectory(directory);
    SILTFS_RETURN_IF_ERROR(present ? SetLimits(*present, limits) : Make(directory, limits, check));
  }
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  const auto made = OfDirectory(directory);
  if (!made) return Status(StatusCode::kAborted, "the quota was removed at once");
  return InfoOf(*made);
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

Status QuotaOps::Make(InodeNumber directory, const QuotaLimits& limits,
                      const std::function<Status()>& check) {
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(
      directory, false, [](const Inode& inode) { return DirectoryNames::CheckDirectory(inode); }));
  SILTFS_RETURN_IF_ERROR(CheckNotNested(directory));
  SILTFS_RETURN_IF_ERROR(enable_());
  SILTFS_ASSIGN_OR_RETURN(const QuotaNumber number, ids_->NextInode());
  counted_ = 0;
  auto usage = CountTree(directory, number, check);
  counted_ = 0;
  SILTFS_RETURN_IF_ERROR(usage.status());
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  const Quotas::State state{
      .number = number, .record = {.directory = directory, .limits = limits}, .usage = *usage};
  Change change;
  change.Put(QuotaKey(number, QuotaPart::kLimits), state.record.Encode());
  change.Put(QuotaKey(number, QuotaPart::kUsage), EncodeUsage(state.usage));
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  store_.quotas().Add(state);
  return Status::Ok();
}

Result<QuotaUsage> QuotaOps::CountTree(InodeNumber directory, QuotaNumber quota,
                                       const std::function<Status()>& check) {
  SILTFS_RETURN_IF_ERROR(Enter(directory, quota).status());  // which does not count itself
  QuotaUsage total;
  std::vector<InodeNumber> waiting{directory};
  while (!waiting.empty()) {
    const InodeNumber parent = waiting.back();
    waiting.pop_back();
    uint64_t cookie = kFirstCookie;
    for (bool more = true; more;) {
      SILTFS_ASSIGN_OR_RETURN(const std::vector<Child> children, NextChildren(parent, cookie));
      for (const Child& child : children) {
        SILTFS_ASSIGN_OR_RETURN(const QuotaUsage usage, Enter(child.inode, quota));
        total += usage;
        if (child.is_directory) waiting.push_back(child.inode);
        if (++counted_ % kInodesBetweenChecks == 0 && check) SILTFS_RETURN_IF_ERROR(check());
      }
      more = children.size() == kChildrenAtATime;
      if (more) cookie = children.back().cookie + 1;
    }
  }
  return total;
}

Result<std::vector<QuotaOps::Child>> QuotaOps::NextChildren(InodeNumber directory,
                                                            uint64_t first_cookie) const {
  std::vector<Child> children;
  Status status;
  const Status scanned = store_.metadata().Pin().Scan(
      DirectoryCookieKey(directory, first_cookie), RangeOf(Table::kDirectoryCookie, directory).end,
      [&](std::string_view key, std::string_view value) {
        const auto place = ParseNumberedKey(Table::kDirectoryCookie, key);
        const auto entry = CookieEntry::Decode(value);
        if (!place || !entry.ok()) {
          status =
              Status(StatusCode::kCorruption,
                     fmt::format("directory {} has a malformed entry; run siltfs fsck", directory));
          return false;
        }
        children.push_back({entry->inode, entry->type == kDirectoryType, place->number});
        return children.size() < kChildrenAtATime;
      });
  SILTFS_RETURN_IF_ERROR(status);
  SILTFS_RETURN_IF_ERROR(scanned);
  return children;
}

Result<QuotaUsage> QuotaOps::Enter(InodeNumber number, QuotaNumber quota) {
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  const InodePtr inode = inodes_.Get(number);
  const InodeLock lock(inode, InodeLock::Mode::kExclusive);
  // The deferred changes count as before.
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*inode));
  if (inode->record.quota == quota) return QuotaUsage{};  // another name of the file
  // A file that has a name below another directory with a quota goes on counting there.
  if (store_.quotas().Existing(inode->record.quota) != kNoQuota) return QuotaUsage{};
  inode->record.quota = quota;
  Change change;
  change.Save(*inode);
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  const bool regular = inode->record.IsRegular();
  return QuotaUsage{.bytes = regular ? ContentTally(inode->record).allocated : 0, .files = 1};
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
