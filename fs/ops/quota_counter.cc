#include "fs/ops/quota_counter.h"

#include <fmt/format.h>

#include <algorithm>

#include "fs/ops/quota_moves.h"
#include "fs/records/directory_entry.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

constexpr size_t kChildrenAtATime = 4096;
// As many inodes get their numbers with one Pass. So a rollback or a new quota waits for
// milliseconds at most.
constexpr size_t kInodesAtATime = 64;

}  // namespace

Status QuotaCounter::Count(InodeNumber directory, QuotaNumber quota,
                           const std::function<Status()>& check) {
  const EnterSome enter_some = [&](const Child* first, size_t count) -> Status {
    if (check) SILTFS_RETURN_IF_ERROR(check());
    // Before the gate, because a group that has no room must not keep a Closure waiting.
    SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    return EnterAll(first, count, quota);
  };
  const Child root{.inode = directory, .cookie = 0};
  SILTFS_RETURN_IF_ERROR(enter_some(&root, 1));
  return CountAll(quota, enter_some);
}

Status QuotaCounter::CountMoved(QuotaNumber quota) {
  return CountAll(quota, [&](const Child* first, size_t count) -> Status {
    SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
    return EnterAll(first, count, quota);
  });
}

Status QuotaCounter::CountAll(QuotaNumber quota, const EnterSome& enter_some) {
  for (;;) {
    for (const InodeNumber moved : store_.quotas().TakeToCount(quota)) waiting_.push_back(moved);
    if (waiting_.empty()) return CheckCounting(quota);
    const InodeNumber directory = waiting_.back();
    waiting_.pop_back();
    SILTFS_RETURN_IF_ERROR(CountEntries(directory, enter_some));
  }
}

Status QuotaCounter::CountEntries(InodeNumber directory, const EnterSome& enter_some) {
  uint64_t cookie = kFirstCookie;
  for (bool more = true; more;) {
    SILTFS_ASSIGN_OR_RETURN(const std::vector<Child> children, NextChildren(directory, cookie));
    // At least once, so that a run of empty directories is interrupted, too.
    size_t at = 0;
    do {
      const size_t count = std::min(kInodesAtATime, children.size() - at);
      SILTFS_RETURN_IF_ERROR(enter_some(children.data() + at, count));
      at += count;
    } while (at < children.size());
    more = children.size() == kChildrenAtATime;
    if (more) cookie = children.back().cookie + 1;
  }
  return Status::Ok();
}

Result<std::vector<QuotaCounter::Child>> QuotaCounter::NextChildren(InodeNumber directory,
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
        children.push_back({entry->inode, place->number});
        return children.size() < kChildrenAtATime;
      });
  SILTFS_RETURN_IF_ERROR(status);
  SILTFS_RETURN_IF_ERROR(scanned);
  return children;
}

Status QuotaCounter::CheckCounting(QuotaNumber quota) const {
  const auto counting = store_.quotas().Counting();
  if (!counting || counting->number != quota) {
    return {StatusCode::kAborted,
            "the files were rolled back while they were counted; set the quota again"};
  }
  if (counting->usage.bytes < 0)
    return {StatusCode::kInvalidArgument,
            "the files below hold more than a quota can count, 8 EiB"};
  return Status::Ok();
}

Status QuotaCounter::EnterAll(const Child* first, size_t count, QuotaNumber quota) {
  SILTFS_RETURN_IF_ERROR(CheckCounting(quota));
  for (const Child* child = first; child < first + count; ++child) {
    const Status entered = Enter(child->inode, quota);
    // It was removed since the directory was read.
    if (entered.Is(StatusCode::kStale) || entered.Is(StatusCode::kNotFound)) continue;
    SILTFS_RETURN_IF_ERROR(entered);
    SILTFS_RETURN_IF_ERROR(CheckCounting(quota));
  }
  return Status::Ok();
}

Status QuotaCounter::Enter(InodeNumber number, QuotaNumber quota) {
  const InodePtr inode = inodes_.Get(number);
  const InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*inode));
  // The file has another name, was made or moved just now, or has a name below another directory
  // with a quota. In the last case it goes on counting there. A directory has no entries without
  // the number, or is in `waiting_` already. So also in damaged metadata, each is read once.
  if (store_.quotas().Existing(inode->record.quota) != kNoQuota) return Status::Ok();
  inode->record.quota = quota;
  Change change;
  const bool is_root = store_.quotas().Counting()->record.directory == number;
  if (!is_root) {  // which does not count itself
    change.CountUsage(inode->record, UsageOf(inode->record));
    ++counted_;
  }
  change.Save(*inode);
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  if (inode->record.IsDirectory()) waiting_.push_back(number);
  return Status::Ok();
}

}  // namespace siltfs
