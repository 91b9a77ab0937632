#include "fs/interface/snapshot_inode.h"

namespace siltfs {

SnapshotInode SplitSnapshotInode(InodeNumber shown) {
  if (shown >= kSnapshotDirectory) return {0, shown};
  return {shown / kSnapshotInodeLimit, shown % kSnapshotInodeLimit};
}

InodeNumber JoinSnapshotInode(uint64_t snapshot, InodeNumber inode) {
  return snapshot * kSnapshotInodeLimit + inode;
}

}  // namespace siltfs
