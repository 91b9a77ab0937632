#include "fs/ops/attribute_ops.h"

namespace siltfs {
namespace {

constexpr uint32_t kPermissionBits = 07777;

}  // namespace

Result<Attributes> AttributeOps::SetAttributes(InodeNumber number, const AttributeChange& wanted) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  const ChunkStore::Use use(store_.chunks());
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  Attributes attributes;
  {
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    SILTFS_ASSIGN_OR_RETURN(attributes, ChangeAttributes(*inode, wanted));
  }
  if (!wanted.size || inode->open_count > 0) return attributes;
  // The file is not open, so no release will fold it.
  folds_.FoldAndLog(number);
  auto folded = inodes_.GetAttributes(number);
  return folded.ok() ? std::move(folded).value() : attributes;
}

Result<Attributes> AttributeOps::ChangeAttributes(Inode& inode, const AttributeChange& wanted) {
  Change change;
  // If only the record of a dirty file changes, the change is deferred together with the deferred
  // changes of the content.
  const bool defers = inode.deferred && !wanted.size && inode.record.xattrs == 0;
  if (defers) {
    SILTFS_RETURN_IF_ERROR(changes_.Join(inode, change));
  } else {
    SILTFS_RETURN_IF_ERROR(wanted.size ? inodes_.LoadContentAndFlush(inode)
                                       : inodes_.LoadAndFlush(inode));
  }
  InodeRecord& record = inode.record;
  const int64_t now = store_.Now();
  const ContentTally before(record);
  if (wanted.size) {
    SILTFS_RETURN_IF_ERROR(CheckRegular(record));
    SILTFS_RETURN_IF_ERROR(content_.Truncate(record, inode.overlay, *wanted.size));
    record.mtime = now;
    inode.last_write = store_.env().MonotonicNanoseconds();
  }
  if (wanted.mode) {
    record.mode = (record.mode & ~kPermissionBits) | (*wanted.mode & kPermissionBits);
    SILTFS_RETURN_IF_ERROR(acls_.AdaptAcl(inode, record.mode, change));
  }
  if (wanted.uid) record.uid = *wanted.uid;
  if (wanted.gid) record.gid = *wanted.gid;
  if (wanted.kill_privileges || wanted.size || wanted.uid || wanted.gid) {
    SILTFS_RETURN_IF_ERROR(xattrs_.DropPrivileges(
        inode, wanted.kill_privileges ? Privileges::kDropAll : Privileges::kDropCapability,
        change));
  }
  if (wanted.atime) record.atime = *wanted.atime;
  if (wanted.mtime) record.mtime = *wanted.mtime;
  record.ctime = wanted.ctime.value_or(now);
  if (wanted.mtime && wanted.ctime) inode.times_replied = inode.open_count > 0;
  if (defers) {
    changes_.Defer(inode, before, change);
    return AttributesOf(inode);
  }
  if (wanted.size) {
    change.SaveContent(inode, before);
  } else {
    change.Save(inode);
  }
  const Attributes attributes = AttributesOf(inode);
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  return attributes;
}

}  // namespace siltfs
