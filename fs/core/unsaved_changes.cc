// Changes of files' content that are kept back.
//
// A write changes the overlay in memory and *joins* the group that is open: it belongs to that
// commit, but its mutations are made only when the group closes, when the file is folded, or when
// anything else is about to change the inode. So a stream that is cut and folded as it comes, and a
// small file that is written and closed, give metadata nothing but their recipes.
//
// Why the crash model holds: an inode is in unsaved_files_ before a write joins, and its lock is
// held until the write is done. When group N has closed, ApplyLate locks each of them and applies
// to N what joined it. A write that comes later joins N + 1, and applies to N what was kept back
// before it changes anything more. So N gets what joined it, all of it and nothing else.
#include "fs/core/file_system_impl.h"

namespace siltfs {
namespace {

// Of mutations, about: a slice in an extent.
constexpr uint64_t kSliceBytes = 32;
// The key of an extent and what a group needs to hold it.
constexpr uint64_t kExtentBytes = 128;
// An inode's record, and its object, which cannot go.
constexpr uint64_t kInodeBytes = 1024;

uint64_t BytesToSave(const Overlay& overlay) {
  return kInodeBytes + overlay.extents() * kExtentBytes + overlay.slices() * kSliceBytes +
         overlay.plain_bytes();
}

}  // namespace

void UnsavedFiles::Add(const InodePtr& inode) {
  const MutexLock lock(mutex_);
  inodes_.try_emplace(inode->number, inode);
}

void UnsavedFiles::Remove(InodeNumber number) {
  InodePtr last;  // may be the last to hold it: let go of without the mutex
  const MutexLock lock(mutex_);
  if (auto found = inodes_.find(number); found != inodes_.end()) {
    last = std::move(found->second);
    inodes_.erase(found);
  }
}

std::vector<InodePtr> UnsavedFiles::All() const {
  const MutexLock lock(mutex_);
  std::vector<InodePtr> all;
  all.reserve(inodes_.size());
  for (const auto& [number, inode] : inodes_) all.push_back(inode);
  return all;
}

Status FileSystemImpl::Join(Inode& inode, Change& change) {
  unsaved_files_.Add(inode.shared_from_this());
  SILTFS_ASSIGN_OR_RETURN(change.commit, metadata_->Join());
  return inode.unsaved && inode.unsaved->commit != *change.commit ? SaveUnsaved(inode)
                                                                  : Status::Ok();
}

void FileSystemImpl::KeepBack(Inode& inode, const ContentTally& before, Change& change) {
  inode.overlay.Describe(inode.record);
  if (!inode.unsaved) inode.unsaved = {.commit = *change.commit, .before = before};
  const uint64_t bytes = BytesToSave(inode.overlay);
  unsaved_files_.CountBytes(static_cast<int64_t>(bytes - inode.unsaved->bytes));
  inode.unsaved->bytes = bytes;
  inode.last_apply = *change.commit;
  change.applied = true;
}

void FileSystemImpl::ForgetUnsaved(Inode& inode) {
  unsaved_files_.CountBytes(-static_cast<int64_t>(inode.unsaved->bytes));
  inode.unsaved.reset();
}

Status FileSystemImpl::ApplyJoined(Inode& inode, Change& change) {
  SILTFS_RETURN_IF_ERROR(Apply(change));
  unsaved_files_.Remove(inode.number);
  return Status::Ok();
}

Status FileSystemImpl::SaveUnsaved(Inode& inode) {
  Change change;
  change.commit = inode.unsaved->commit;
  SaveContent(inode, inode.unsaved->before, change);
  return Apply(change);
}

Status FileSystemImpl::SaveLast(Inode& inode) {
  SILTFS_RETURN_IF_ERROR(SaveUnsaved(inode));
  unsaved_files_.Remove(inode.number);
  return Status::Ok();
}

Status FileSystemImpl::SaveAllUnsaved(uint64_t last_commit) {
  for (const InodePtr& inode : unsaved_files_.All()) {
    const InodeLock lock(inode, InodeLock::Mode::kExclusive);
    if (!inode->unsaved) {
      unsaved_files_.Remove(inode->number);
    } else if (inode->unsaved->commit <= last_commit) {
      SILTFS_RETURN_IF_ERROR(SaveLast(*inode));
    }
  }
  return Status::Ok();
}

Status FileSystemImpl::ApplyLate(uint64_t number) { return SaveAllUnsaved(number); }

}  // namespace siltfs
