#include "fs/inodes/change_applier.h"

#include <utility>

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

Status ChangeApplier::Apply(Change& change) {
  MetadataStore& metadata = store_.metadata();
  if (change.commit()) {
    SILTFS_RETURN_IF_ERROR(metadata.ApplyTo(*change.commit(), std::move(change.mutations()),
                                            change.differences(), change.quotas()));
  } else {
    SILTFS_ASSIGN_OR_RETURN(
        const uint64_t commit,
        metadata.Apply(std::move(change.mutations()), change.differences(), change.quotas()));
    change.SetCommit(commit);
  }
  change.SetApplied();
  const int64_t grown = change.differences()[static_cast<size_t>(Counter::kLogicalBytes)];
  if (grown < 0) store_.chunks().NoteReleased(static_cast<uint64_t>(-grown));
  CountApplied(change);
  for (Inode* inode : change.inodes()) {
    inode->last_apply = *change.commit();
    if (inode->deferred) ForgetDeferred(*inode);
  }
  return Status::Ok();
}

Status ChangeApplier::Join(Inode& inode, Change& change) {
  dirty_inodes_.Add(inode.shared_from_this());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t commit, store_.metadata().Join());
  change.SetCommit(commit);
  return inode.deferred && inode.deferred->commit != commit ? SaveDeferred(inode) : Status::Ok();
}

void ChangeApplier::Defer(Inode& inode, const ContentTally& before, Change& change) {
  inode.overlay.Describe(inode.record);
  if (!inode.deferred) inode.deferred = {.commit = *change.commit(), .before = before};
  const uint64_t bytes = BytesToSave(inode.overlay);
  dirty_inodes_.CountBytes(static_cast<int64_t>(bytes - inode.deferred->bytes));
  inode.deferred->bytes = bytes;
  if (inode.record.quota != kNoQuota) CountDeferred(inode);
  inode.last_apply = *change.commit();
  change.SetApplied();
}

void ChangeApplier::CountDeferred(Inode& inode) {
  const int64_t grown = ContentTally(inode.record).allocated - inode.deferred->before.allocated;
  const int64_t more = grown - std::exchange(inode.deferred->grown, grown);
  if (more != 0) store_.quotas().Count({{inode.record.quota, {.bytes = more, .files = 0}}});
}

// What was counted for deferred changes is a part of the change now. One call, so that no other
// operation sees only a part.
void ChangeApplier::CountApplied(const Change& change) {
  QuotaDifferences differences = change.quotas();
  for (Inode* inode : change.inodes()) {
    const int64_t counted = inode->deferred ? std::exchange(inode->deferred->grown, 0) : 0;
    if (counted != 0)
      differences.emplace_back(inode->record.quota, QuotaUsage{.bytes = -counted, .files = 0});
  }
  store_.quotas().Count(differences);
  if (change.removed_quota() != kNoQuota) store_.quotas().Remove(change.removed_quota());
}

void ChangeApplier::ForgetDeferred(Inode& inode) {
  dirty_inodes_.CountBytes(-static_cast<int64_t>(inode.deferred->bytes));
  inode.deferred.reset();
}

Status ChangeApplier::ApplyJoined(Inode& inode, Change& change) {
  SILTFS_RETURN_IF_ERROR(Apply(change));
  dirty_inodes_.Remove(inode.number);
  return Status::Ok();
}

Status ChangeApplier::SaveDeferred(Inode& inode) {
  Change change(inode.deferred->commit);
  change.SaveContent(inode, inode.deferred->before);
  return Apply(change);
}

Status ChangeApplier::SaveLast(Inode& inode) {
  SILTFS_RETURN_IF_ERROR(SaveDeferred(inode));
  dirty_inodes_.Remove(inode.number);
  return Status::Ok();
}

Status ChangeApplier::SaveAllDeferred(uint64_t last_commit) {
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

}  // namespace siltfs
