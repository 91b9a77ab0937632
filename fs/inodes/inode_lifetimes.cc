#include "fs/inodes/inode_lifetimes.h"

#include <string>
#include <vector>

#include "fs/records/schema.h"

namespace siltfs {

Status InodeLifetimes::DropLink(Inode& inode, int64_t now, Change& change) {
  InodeRecord& record = inode.record;
  record.links = record.IsDirectory() ? 0 : record.links - 1;
  record.ctime = now;
  if (record.links == 0) {
    const auto quota = store_.quotas().Find(record.quota);
    if (quota && quota->record.directory == inode.number) change.RemoveQuota(quota->number);
    // A concurrent ReleaseFile or Forget deletes nothing if it looks for an orphan before SetOrphan
    // is called here. So the operation must call RemoveIfUnused after the change was applied.
    const bool used = inode.open_count > 0 || lookups_.Of(inode.number) > 0;
    SetOrphan(inode.number, used);
    if (!used) return DeleteInode(inode, change);
    change.Put(OrphanKey(inode.number), "");
  }
  change.Save(inode);
  return Status::Ok();
}

void InodeLifetimes::ForgetRemoved(Inode& inode) {
  if (inode.record.links > 0 || IsOrphan(inode.number)) return;
  inode.Invalidate();
  inodes_.Erase(inode.number);
}

void InodeLifetimes::AddOrphan(Inode& inode, Change& change) {
  change.Put(OrphanKey(inode.number), "");
  SetOrphan(inode.number, true);
}

void InodeLifetimes::RemoveOrphanKey(const Inode& inode, Change& change) {
  change.Delete(OrphanKey(inode.number));
}

Status InodeLifetimes::DeleteInode(Inode& inode, Change& change) {
  change.Include(inode);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadContentAndFlush(inode));
  InodeRecord& record = inode.record;
  const ContentTally before(record);
  if (record.IsRegular()) {
    inode.overlay.Erase(0, inode.overlay.end());
    inode.overlay.TakeMutations(inode.number, change.mutations());
    change.Count(Counter::kLogicalBytes, -before.allocated);
    change.Count(Counter::kChunkReferences, -before.references);
  }
  if (record.xattrs > 0) {
    const KeyRange range = RangeOf(Table::kXattr, inode.number);
    SILTFS_RETURN_IF_ERROR(store_.metadata().Pin().Scan(
        range.begin, range.end, [&](std::string_view key, std::string_view) {
          change.Delete(std::string(key));
          return true;
        }));
  }
  change.Count(record.IsDirectory() ? Counter::kDirectories : Counter::kFiles, -1);
  change.CountUsage(record, {.bytes = record.IsRegular() ? -before.allocated : 0, .files = -1});
  change.Delete(InodeKey(inode.number));
  return Status::Ok();
}

bool InodeLifetimes::IsOrphan(InodeNumber number) const {
  MutexLock lock(orphans_mutex_);
  return orphans_.contains(number);
}

void InodeLifetimes::SetOrphan(InodeNumber number, bool orphan) {
  MutexLock lock(orphans_mutex_);
  if (orphan) {
    orphans_.insert(number);
  } else {
    orphans_.erase(number);
    if (orphans_.empty()) no_orphans_.NotifyAll();
  }
}

void InodeLifetimes::AwaitRemovals(std::chrono::nanoseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  MutexLock lock(orphans_mutex_);
  while (!orphans_.empty()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return;
    no_orphans_.WaitFor(orphans_mutex_, left);
  }
}

void InodeLifetimes::RemoveIfUnused(InodeNumber number) {
  if (!IsOrphan(number) || lookups_.Of(number) > 0 || store_.options().read_only) return;
  // After a failure the orphan's key stays, and the next mount tries again.
  if (!store_.metadata().WaitForRoom().ok()) return;
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  if (!IsOrphan(number) || lookups_.Of(number) > 0 || inode->open_count > 0) return;
  RemoveOrphan(*inode).IgnoreError("the orphan's key stays");
}

Status InodeLifetimes::RemoveOrphan(Inode& inode) {
  Change change;
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(inode));
  if (inode.record.links > 0) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(DeleteInode(inode, change));
  change.Delete(OrphanKey(inode.number));
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  inode.Invalidate();
  SetOrphan(inode.number, false);
  inodes_.Erase(inode.number);
  return Status::Ok();
}

Result<std::vector<InodeNumber>> InodeLifetimes::RemoveUnopened() {
  std::vector<InodeNumber> orphans;
  {
    const MutexLock lock(orphans_mutex_);
    orphans.assign(orphans_.begin(), orphans_.end());
  }
  for (const InodeNumber number : orphans) {
    SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
    const InodePtr inode = inodes_.Get(number);
    const InodeLock lock(inode, InodeLock::Mode::kExclusive);
    if (inode->open_count == 0) SILTFS_RETURN_IF_ERROR(RemoveOrphan(*inode));
  }
  return orphans;
}

Status InodeLifetimes::RemoveOrphans() {
  std::vector<InodeNumber> found;
  const KeyRange range = RangeOf(Table::kOrphan);
  SILTFS_RETURN_IF_ERROR(store_.metadata().Pin().Scan(
      range.begin, range.end, [&](std::string_view key, std::string_view) {
        if (auto number = ParseInodeKey(Table::kOrphan, key)) found.push_back(*number);
        return true;
      }));
  for (InodeNumber number : found) {
    SetOrphan(number, true);
    RemoveIfUnused(number);
  }
  return Status::Ok();
}

}  // namespace siltfs
