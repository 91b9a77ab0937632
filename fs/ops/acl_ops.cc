#include "fs/ops/acl_ops.h"

#include "fs/ops/xattr_list.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

constexpr uint32_t kAccessBits = 0777;
constexpr uint32_t kSetGidBit = 02000;

// Lists are checked when they are set, so a stored list that is malformed means damage.
Result<PosixAcl> DecodeStored(std::string_view value) {
  auto acl = PosixAcl::Decode(value);
  if (acl.ok()) return acl;
  return Status(StatusCode::kCorruption, std::string(acl.status().cause()));
}

}  // namespace

Status AclOps::SetAcl(Inode& inode, std::string_view name, std::string_view value, bool present,
                      XattrMode mode) {
  InodeRecord& record = inode.record;
  if (record.IsSymlink())
    return Status(StatusCode::kUnsupported, "a symbolic link has no access control list");
  const bool access = name == kAccessAclName;
  if (!access && !record.IsDirectory())
    return Status(StatusCode::kAccessDenied, "only a directory has a default access control list");
  SILTFS_ASSIGN_OR_RETURN(const PosixAcl acl, PosixAcl::Decode(value));
  const bool keep = !access || !acl.IsEquivalentToMode();
  if (keep && !present) SILTFS_RETURN_IF_ERROR(CheckXattrList(store_.metadata(), inode, name));

  Change change;
  if (access) {
    record.mode = (record.mode & ~kAccessBits) | acl.PermissionBits();
    if (mode == XattrMode::kSetWithoutSetGid) record.mode &= ~kSetGidBit;
  } else {
    inode.default_acl.reset();
  }
  if (keep) {
    change.Put(XattrKey(inode.number, name), acl.Encode());
    if (!present) ++record.xattrs;
  } else if (present) {
    change.Delete(XattrKey(inode.number, name));
    --record.xattrs;
  }
  record.ctime = store_.Now();
  change.Save(inode);
  return changes_.Apply(change);
}

Status AclOps::AdaptAcl(Inode& inode, uint32_t mode, Change& change) const {
  change.Include(inode);  // its mode has changed already
  if (inode.record.xattrs == 0) return Status::Ok();
  const std::string key = XattrKey(inode.number, kAccessAclName);
  SILTFS_ASSIGN_OR_RETURN(auto value, store_.metadata().Get(key));
  if (!value) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(PosixAcl acl, DecodeStored(*value));
  acl.SetPermissionBits(mode);
  change.Put(key, acl.Encode());
  return Status::Ok();
}

Result<std::shared_ptr<const PosixAcl>> AclOps::DefaultAclOf(Inode& directory) const {
  if (directory.record.xattrs == 0) return std::shared_ptr<const PosixAcl>();
  if (directory.default_acl) return *directory.default_acl;
  SILTFS_ASSIGN_OR_RETURN(auto value,
                          store_.metadata().Get(XattrKey(directory.number, kDefaultAclName)));
  std::shared_ptr<const PosixAcl> acl;
  if (value) {
    SILTFS_ASSIGN_OR_RETURN(PosixAcl decoded, DecodeStored(*value));
    acl = std::make_shared<const PosixAcl>(std::move(decoded));
  }
  directory.default_acl = acl;
  return acl;
}

void AclOps::SetFirstMode(Inode& inode, const std::shared_ptr<const PosixAcl>& inherited,
                          uint32_t umask, Change& change) {
  InodeRecord& record = inode.record;
  if (!inherited) {
    record.mode &= ~(umask & kAccessBits);
    return;
  }
  PosixAcl access = *inherited;
  access.LimitTo(record.mode);
  record.mode = (record.mode & ~kAccessBits) | access.PermissionBits();
  if (!access.IsEquivalentToMode()) {
    change.Put(XattrKey(inode.number, kAccessAclName), access.Encode());
    ++record.xattrs;
  }
  if (!record.IsDirectory()) return;
  change.Put(XattrKey(inode.number, kDefaultAclName), inherited->Encode());
  ++record.xattrs;
  inode.default_acl = inherited;
}

}  // namespace siltfs
