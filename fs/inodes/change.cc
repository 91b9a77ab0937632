#include "fs/inodes/change.h"

namespace siltfs {

Change::~Change() {
  if (applied_) return;
  for (Inode* inode : inodes_) {
    if (!inode->deferred) inode->Invalidate();
  }
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
  Count(Counter::kLogicalBytes, after.allocated - saved.allocated);
  Count(Counter::kChunkReferences, after.references - saved.references);
}

}  // namespace siltfs
