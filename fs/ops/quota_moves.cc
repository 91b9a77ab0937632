#include "fs/ops/quota_moves.h"

namespace siltfs {
namespace {

Status OtherQuota() { return {StatusCode::kOtherQuota, "the directories have different quotas"}; }

}  // namespace

Result<QuotaNumber> QuotaBelow(const StoreContext& store, const DirectoryNames& names,
                               const Inode& directory) {
  const QuotaNumber own = store.quotas().Existing(directory.record.quota);
  if (own != kNoQuota) return own;
  const auto counting = store.quotas().Counting();
  if (!counting) return kNoQuota;
  const Status outside = names.CheckNotInside(directory.number, counting->record.directory);
  if (outside.Is(StatusCode::kInvalidArgument)) return counting->number;
  SILTFS_RETURN_IF_ERROR(outside);
  return kNoQuota;
}

Status CheckSameQuota(const StoreContext& store, const DirectoryNames& names, const Inode& from,
                      const Inode& to) {
  if (!store.quotas().any() || &from == &to) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const QuotaNumber before, QuotaBelow(store, names, from));
  SILTFS_ASSIGN_OR_RETURN(const QuotaNumber after, QuotaBelow(store, names, to));
  return before == after ? Status::Ok() : OtherQuota();
}

Status CheckLinkQuota(const StoreContext& store, const DirectoryNames& names, const Inode& inode,
                      const Inode& directory) {
  if (!store.quotas().any()) return Status::Ok();
  const QuotaNumber before = store.quotas().Existing(inode.record.quota);
  SILTFS_ASSIGN_OR_RETURN(const QuotaNumber after, QuotaBelow(store, names, directory));
  if (before == after) return Status::Ok();
  const auto counting = store.quotas().Counting();
  return counting && after == counting->number && before == kNoQuota ? Status::Ok() : OtherQuota();
}

void CountMoved(const StoreContext& store, const Inode& directory, Inode& inode, Change& change) {
  const auto counting = store.quotas().Counting();
  if (!counting || directory.record.quota != counting->number) return;
  if (store.quotas().Existing(inode.record.quota) != kNoQuota) return;
  inode.record.quota = counting->number;
  change.Include(inode);
  change.CountUsage(inode.record, UsageOf(inode.record));
  if (inode.record.IsDirectory()) store.quotas().AddToCount(inode.number);
}

QuotaUsage UsageOf(const InodeRecord& record) {
  return {.bytes = record.IsRegular() ? ContentTally(record).allocated : 0, .files = 1};
}

}  // namespace siltfs
