// The inode numbers that a mounted file system shows for the inodes of snapshots: the snapshot's
// number and the inode's own number. So they are stable, and distinct from all others.
//
// Pure functions, safe to call from any thread.
#pragma once

#include <cstdint>

#include "fs/interface/snapshots.h"

namespace siltfs {

struct SnapshotInode {
  uint64_t snapshot = 0;  // 0: the inode is no snapshot's
  InodeNumber inode = 0;
};

// The numbers of inodes in snapshots are below this limit, which 10 years of a million new files a
// minute do not reach. The numbers of snapshots are below kSnapshotNumberLimit (snapshot_record.h).
inline constexpr uint64_t kSnapshotInodeLimit = uint64_t{1} << 43;

SnapshotInode SplitSnapshotInode(InodeNumber shown);
InodeNumber JoinSnapshotInode(uint64_t snapshot, InodeNumber inode);

}  // namespace siltfs
