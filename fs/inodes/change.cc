#include "fs/inodes/change.h"

namespace siltfs {

Change::~Change() {
  if (applied_) return;
  for (Inode* inode : inodes_) {
    if (!inode->deferred) inode->Invalidate();
  }
}

void Change::RemoveQuota(QuotaNumber quota) {
  Delete(QuotaKey(quota, QuotaPart::kLimits));
  Delete(QuotaKey(quota, QuotaPart::kUsage));
  removed_quota_ = quota;
}

void Change::Save(Inode& inode) {
  Put(InodeKey(inode.number), inode.record.Encode());
  Include(inode);
}

void Change::SaveContent(Inode& inode, const ContentTally& before) {
  inode.overlay.Describe(inode.record);
  inode.overlay.TakeMutations(inode.number, mutations_);
  Save(inode);
  const ContentTally& saved = inode.deferred ? inode.deferred->before : before;
  const ContentTally after(inode.record);
  const int64_t grown = after.allocated - saved.allocated;
  Count(Counter::kLogicalBytes, grown);
  if (grown != 0) CountUsage(inode.record, {.bytes = grown, .files = 0});
  Count(Counter::kChunkReferences, after.references - saved.references);
}

}  // namespace siltfs
