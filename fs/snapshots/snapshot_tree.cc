#include "fs/snapshots/snapshot_tree.h"

#include <utility>

#include "fs/interface/snapshot_inode.h"
#include "fs/meta/snapshot_metadata.h"

namespace siltfs {
namespace {

// There may be a tree for each snapshot, so each keeps few inodes. A record is read again when it
// is needed again.
constexpr size_t kCachedInodes = 64;

FileSystemOptions ReadOnly(FileSystemOptions options) {
  options.read_only = true;
  return options;
}

}  // namespace

SnapshotTree::SnapshotTree(const StoreContext& live, const FileContent& content,
                           const NumberedSnapshot& snapshot)
    : metadata_(OpenSnapshotMetadata(live.metadata(), snapshot)),
      options_(ReadOnly(live.options())),
      store_(live.env(), options_, live.chunks(), *metadata_, nullptr,
             JoinSnapshotInode(snapshot.number, 0)),
      changes_(store_),
      inodes_(store_, changes_, overlay_memory_, kCachedInodes),
      lifetimes_(store_, inodes_, changes_),
      acls_(store_, changes_),
      xattrs_(store_, inodes_, changes_, acls_),
      folds_(store_, content, inodes_, changes_),
      attributes_(store_, content, inodes_, changes_, acls_, xattrs_, folds_),
      names_(store_, inodes_),
      namespace_(store_, nullptr, inodes_, lifetimes_, changes_, acls_, names_),
      files_(store_, content, inodes_, lifetimes_, attributes_, folds_),
      contents_(store_, inodes_) {}

}  // namespace siltfs
