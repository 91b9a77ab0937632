#include "tests/crash/model_file_system.h"

#include <sys/stat.h>

#include "fs/interface/snapshot_inode.h"

namespace siltfs::testing {

Result<Attributes> ModelFileSystem::Lookup(InodeNumber parent, std::string_view name) {
  if (parent == kRootInode && name == kSnapshotDirectoryName)
    return Attributes{.inode = kSnapshotDirectory, .mode = S_IFDIR | 0555};
  if (parent == kSnapshotDirectory) {
    SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, snapshots_.Find(name));
    return Attributes{.inode = JoinSnapshotInode(found.number, kRootInode), .mode = S_IFDIR | 0555};
  }
  const SnapshotInode within = SplitSnapshotInode(parent);
  if (within.snapshot == 0) return MemoryFileSystem::Lookup(parent, name);
  const auto inodes = snapshots_.InodesOf(within.snapshot);
  if (!inodes) return Failed(StatusCode::kStale, "no such snapshot", parent);
  const MemoryInode& directory = inodes->all().at(within.inode);
  if (!directory.IsDirectory())
    return Failed(StatusCode::kNotADirectory, "not a directory", parent);
  SILTFS_ASSIGN_OR_RETURN(const MemoryEntry entry, MemoryInodes::FindEntry(directory, name));
  Attributes attributes = inodes->all().at(entry.inode).attributes;
  attributes.inode = JoinSnapshotInode(within.snapshot, entry.inode);
  return attributes;
}

}  // namespace siltfs::testing
