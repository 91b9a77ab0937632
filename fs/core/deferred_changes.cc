// Deferred changes of file contents.
//
// A write changes the overlay in memory and *joins* the group that is open: it belongs to that
// commit. Its mutations are made only when the group closes, when the file is folded, or before any
// other change of the inode. So a stream that is cut and folded as it comes, and a small file that
// is written and closed, add only their recipes to metadata.
//
// Why the crash model holds: an inode is in dirty_inodes_ before a write joins, and its lock is
// held until the write is done. When group N has closed, FlushDeferred locks each of these inodes
// and applies to N the changes that joined N. A later write joins N + 1; before it changes
// anything, it applies the inode's deferred changes to N. So N gets exactly the changes that joined
// it.
#include "fs/core/file_system_impl.h"

namespace siltfs {
namespace {

// Approximate bytes of a slice in an extent's mutation.
constexpr uint64_t kSliceBytes = 32;
// Approximate bytes of an extent's key and of its overhead in a group.
constexpr uint64_t kExtentBytes = 128;
// Approximate bytes of an inode's record, and of its object, which must stay in memory.
constexpr uint64_t kInodeBytes = 1024;

uint64_t BytesToSave(const Overlay& overlay) {
  return kInodeBytes + overlay.extents() * kExtentBytes + overlay.slices() * kSliceBytes +
         overlay.plain_bytes();
}

}  // namespace

Status FileSystemImpl::Join(Inode& inode, Change& change) {
  dirty_inodes_.Add(inode.shared_from_this());
  SILTFS_ASSIGN_OR_RETURN(change.commit, metadata_->Join());
  return inode.deferred && inode.deferred->commit != *change.commit ? SaveDeferred(inode)
                                                                    : Status::Ok();
}

void FileSystemImpl::Defer(Inode& inode, const ContentTally& before, Change& change) {
  inode.overlay.Describe(inode.record);
  if (!inode.deferred) inode.deferred = {.commit = *change.commit, .before = before};
  const uint64_t bytes = BytesToSave(inode.overlay);
  dirty_inodes_.CountBytes(static_cast<int64_t>(bytes - inode.deferred->bytes));
  inode.deferred->bytes = bytes;
  inode.last_apply = *change.commit;
  change.applied = true;
}

void FileSystemImpl::ForgetDeferred(Inode& inode) {
  dirty_inodes_.CountBytes(-static_cast<int64_t>(inode.deferred->bytes));
  inode.deferred.reset();
}

Status FileSystemImpl::ApplyJoined(Inode& inode, Change& change) {
  SILTFS_RETURN_IF_ERROR(Apply(change));
  dirty_inodes_.Remove(inode.number);
  return Status::Ok();
}

Status FileSystemImpl::SaveDeferred(Inode& inode) {
  Change change;
  change.commit = inode.deferred->commit;
  SaveContent(inode, inode.deferred->before, change);
  return Apply(change);
}

Status FileSystemImpl::SaveLast(Inode& inode) {
  SILTFS_RETURN_IF_ERROR(SaveDeferred(inode));
  dirty_inodes_.Remove(inode.number);
  return Status::Ok();
}

Status FileSystemImpl::SaveAllDeferred(uint64_t last_commit) {
  for (const InodePtr& inode : dirty_inodes_.All()) {
    const InodeLock lock(inode, InodeLock::Mode::kExclusive);
    if (!inode->deferred) {
      dirty_inodes_.Remove(inode->number);
    } else if (inode->deferred->commit <= last_commit) {
      SILTFS_RETURN_IF_ERROR(SaveLast(*inode));
    }
  }
  return Status::Ok();
}

Status FileSystemImpl::FlushDeferred(uint64_t number) { return SaveAllDeferred(number); }

}  // namespace siltfs
