#include "fs/ops/xattr_ops.h"

#include "fs/interface/posix_acl.h"
#include "fs/ops/xattr_list.h"
#include "fs/records/schema.h"
#include "fs/records/source_record.h"

namespace siltfs {
namespace {

constexpr uint32_t kSetUserId = 04000;
constexpr uint32_t kSetGroupId = 02000;
constexpr uint32_t kGroupExecute = 00010;
constexpr std::string_view kCapability = "security.capability";

Status CheckXattrName(std::string_view name) {
  if (name.empty())
    return Status(StatusCode::kBufferTooSmall, "an extended attribute needs a name");
  if (name.size() > 255)
    return Status(StatusCode::kBufferTooSmall, "the attribute's name is longer than 255 bytes");
  if (IsHiddenXattr(name))
    return Status(StatusCode::kUnsupported, "extended attributes of this name belong to siltfs");
  return Status::Ok();
}

// Returns the mode without the set-user-ID bit, and without the set-group-ID bit if the group may
// execute. If the group may not execute, the set-group-ID bit gives no privileges, and stays.
uint32_t WithoutSetId(uint32_t mode) {
  mode &= ~kSetUserId;
  return (mode & kGroupExecute) != 0 ? mode & ~kSetGroupId : mode;
}

Status NoAttribute() { return Status(StatusCode::kNoAttribute, "has no such extended attribute"); }

}  // namespace

Result<std::string> XattrOps::GetXattr(InodeNumber number, std::string_view name) {
  SILTFS_RETURN_IF_ERROR(CheckXattrName(name));
  std::string found;
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(number, false, [&](const Inode& inode) -> Status {
    if (inode.record.xattrs == 0) return NoAttribute();
    SILTFS_ASSIGN_OR_RETURN(auto value, store_.metadata().Get(XattrKey(number, name)));
    if (!value) return NoAttribute();
    found = std::move(*value);
    return Status::Ok();
  }));
  return found;
}

Status XattrOps::SetXattr(InodeNumber number, std::string_view name, std::string_view value,
                          XattrMode mode) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(kBytesPerName));
  SILTFS_RETURN_IF_ERROR(CheckXattrName(name));
  if (value.size() > kMaxXattrValueBytes) {
    return Status(StatusCode::kBufferTooSmall, "the attribute's value is longer than 65,536 bytes");
  }
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*inode));
  SILTFS_ASSIGN_OR_RETURN(auto present, store_.metadata().Get(XattrKey(number, name)));
  if (present && mode == XattrMode::kCreate)
    return Status(StatusCode::kAlreadyExists, "the attribute exists already");
  if (!present && mode == XattrMode::kReplace) return NoAttribute();
  if (IsAclName(name)) return acls_.SetAcl(*inode, name, value, present.has_value(), mode);
  if (!present) SILTFS_RETURN_IF_ERROR(CheckXattrList(store_.metadata(), *inode, name));
  Change change;
  change.Put(XattrKey(number, name), std::string(value));
  if (!present) ++inode->record.xattrs;
  if (name == kCapability) inode->no_capability = false;
  inode->record.ctime = store_.Now();
  change.Save(*inode);
  return changes_.Apply(change);
}

Result<std::vector<std::string>> XattrOps::ListXattrs(InodeNumber number) {
  std::vector<std::string> names;
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(number, false, [&](const Inode& inode) -> Status {
    SILTFS_ASSIGN_OR_RETURN(names, ListXattrNames(store_.metadata(), inode));
    return Status::Ok();
  }));
  return names;
}

Status XattrOps::RemoveXattr(InodeNumber number, std::string_view name) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(CheckXattrName(name));
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*inode));
  SILTFS_ASSIGN_OR_RETURN(auto present, store_.metadata().Get(XattrKey(number, name)));
  // An access control list that grants the same as the permission bits is not stored. So it is not
  // an error to remove an access control list that is not stored.
  if (!present) return IsAclName(name) ? Status::Ok() : NoAttribute();
  if (name == kDefaultAclName) inode->default_acl.reset();
  Change change;
  change.Delete(XattrKey(number, name));
  --inode->record.xattrs;
  inode->record.ctime = store_.Now();
  change.Save(*inode);
  return changes_.Apply(change);
}

Status XattrOps::DropPrivileges(Inode& inode, Privileges privileges, Change& change) const {
  InodeRecord& record = inode.record;
  if (privileges == Privileges::kKeep || record.IsDirectory()) return Status::Ok();
  change.Include(inode);
  if (privileges == Privileges::kDropAll) record.mode = WithoutSetId(record.mode);
  if (record.xattrs == 0 || inode.no_capability) return Status::Ok();
  const std::string key = XattrKey(inode.number, kCapability);
  SILTFS_ASSIGN_OR_RETURN(auto present, store_.metadata().Get(key));
  if (present) {
    change.Delete(key);
    --record.xattrs;
  }
  inode.no_capability = true;
  return Status::Ok();
}

}  // namespace siltfs
