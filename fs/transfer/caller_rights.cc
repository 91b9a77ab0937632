#include "fs/transfer/caller_rights.h"

#include <algorithm>

namespace siltfs {
namespace {

constexpr uint32_t kTypeMask = 0170000;
constexpr uint32_t kCharacterDevice = 0020000;
constexpr uint32_t kBlockDevice = 0060000;
constexpr uint32_t kDirectory = 0040000;
constexpr uint32_t kSymlink = 0120000;
constexpr uint32_t kSetUserId = 04000;
constexpr uint32_t kSetGroupId = 02000;
constexpr uint32_t kSticky = 01000;

bool IsDevice(uint32_t mode) {
  return (mode & kTypeMask) == kCharacterDevice || (mode & kTypeMask) == kBlockDevice;
}

Status Denied() { return {StatusCode::kAccessDenied, "permission denied"}; }

// A name that was looked up. The lookup does not count for the kernel.
Result<Attributes> Find(FileSystem& file_system, InodeNumber directory, std::string_view name) {
  auto found = file_system.Lookup(directory, name);
  if (found.ok()) file_system.Forget(found->inode, 1);
  return found;
}

}  // namespace

Caller CallerRights::caller() const {
  return {.uid = uid_, .gid = groups_.empty() ? 0 : groups_[0], .umask = 0, .acls = false};
}

bool CallerRights::IsMember(uint32_t group) const {
  return std::find(groups_.begin(), groups_.end(), group) != groups_.end();
}

bool CallerRights::ListGrants(const PosixAcl& acl, const Attributes& attributes,
                              uint32_t wanted) const {
  uint32_t mask = 7;
  for (const PosixAcl::Entry& entry : acl.entries()) {
    if (entry.tag == PosixAcl::Tag::kMask) mask = entry.permissions;
  }
  bool in_group = false;
  for (const PosixAcl::Entry& entry : acl.entries()) {
    const bool enough = (entry.permissions & wanted) == wanted;
    switch (entry.tag) {
      case PosixAcl::Tag::kUser:
        if (entry.id == uid_) return enough && (mask & wanted) == wanted;
        break;
      case PosixAcl::Tag::kGroupObj:
      case PosixAcl::Tag::kGroup:
        if (!IsMember(entry.tag == PosixAcl::Tag::kGroupObj ? attributes.gid : entry.id)) break;
        // One entry must have all of the permissions; entries of several groups do not add up.
        if (enough) return (mask & wanted) == wanted;
        in_group = true;
        break;
      case PosixAcl::Tag::kOther:
        return enough && !in_group;
      default:
        break;
    }
  }
  return false;
}

Result<bool> CallerRights::Grants(const Attributes& attributes, uint32_t wanted,
                                  const FindList& find_list) const {
  const uint32_t mode = attributes.mode;
  if (attributes.uid == uid_) return (mode >> 6 & wanted) == wanted;
  // The kernel does not look at a list whose mask, which is in the group's bits, grants nothing.
  if ((mode >> 3 & 7) != 0) {
    SILTFS_ASSIGN_OR_RETURN(const auto stored, find_list());
    if (stored) {
      SILTFS_ASSIGN_OR_RETURN(const PosixAcl acl, PosixAcl::Decode(*stored));
      return ListGrants(acl, attributes, wanted);
    }
  }
  const uint32_t granted = IsMember(attributes.gid) ? mode >> 3 : mode;
  return (granted & wanted) == wanted;
}

Status CallerRights::Check(InodeNumber inode, uint32_t wanted) const {
  if (superuser()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const Attributes attributes, file_system_.GetAttributes(inode));
  const auto find_list = [&]() -> Result<std::optional<std::string>> {
    auto stored = file_system_.GetXattr(inode, kAccessAclName);
    if (stored.ok()) return std::optional(*std::move(stored));
    if (stored.status().Is(StatusCode::kNoAttribute)) return std::optional<std::string>();
    return stored.status();
  };
  SILTFS_ASSIGN_OR_RETURN(const bool granted, Grants(attributes, wanted, find_list));
  return granted ? Status::Ok() : Denied();
}

Result<bool> CallerRights::MayRead(const Attributes& attributes,
                                   const std::optional<std::string>& access_list) const {
  if (superuser()) return true;
  const auto find_list = [&] { return Result<std::optional<std::string>>(access_list); };
  SILTFS_ASSIGN_OR_RETURN(const bool readable, Grants(attributes, kRead, find_list));
  if (!readable || (attributes.mode & kTypeMask) != kDirectory) return readable;
  return Grants(attributes, kExecute, find_list);
}

Status CallerRights::CheckReach(InodeNumber directory) const {
  if (superuser()) return Status::Ok();
  while (true) {
    SILTFS_RETURN_IF_ERROR(Check(directory, kExecute));
    if (directory == kRootInode) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const Attributes parent, Find(file_system_, directory, ".."));
    directory = parent.inode;
  }
}

Status CallerRights::CheckChange(InodeNumber directory, std::string_view name) const {
  if (superuser()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Check(directory, kWrite | kExecute));
  SILTFS_ASSIGN_OR_RETURN(const Attributes attributes, file_system_.GetAttributes(directory));
  if ((attributes.mode & kSticky) == 0 || attributes.uid == uid_) return Status::Ok();
  const auto present = Find(file_system_, directory, name);
  if (!present.ok())
    return present.status().Is(StatusCode::kNotFound) ? Status::Ok() : present.status();
  if (present->uid == uid_) return Status::Ok();
  return {StatusCode::kNotPermitted, "the directory is sticky, and the file is not yours"};
}

Status CallerRights::CheckRead(InodeNumber directory, std::string_view name) const {
  if (superuser()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Check(directory, kExecute));
  const auto present = Find(file_system_, directory, name);
  if (!present.ok())
    return present.status().Is(StatusCode::kNotFound) ? Status::Ok() : present.status();
  return Check(present->inode, kRead);
}

Status CallerRights::CheckOwner(InodeNumber inode) const {
  if (superuser()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const Attributes attributes, file_system_.GetAttributes(inode));
  if (attributes.uid == uid_) return Status::Ok();
  return {StatusCode::kNotPermitted, "it belongs to another user"};
}

Status CallerRights::CheckClone(const ClonedInode& inode) const {
  if (superuser()) return Status::Ok();
  if (IsDevice(inode.mode))
    return {StatusCode::kNotPermitted, "only the superuser may make device nodes"};
  if (inode.uid != uid_) return {StatusCode::kNotPermitted, "it belongs to another user"};
  if (!IsMember(inode.gid)) return {StatusCode::kNotPermitted, "it belongs to another group"};
  return Status::Ok();
}

Status CallerRights::CheckXattrName(std::string_view name) const {
  if (superuser() || name.starts_with("user.") || IsAclName(name)) return Status::Ok();
  return {StatusCode::kNotPermitted, "only the superuser may set its extended attributes"};
}

Status CallerRights::Adapt(EntryImage& image, std::vector<XattrImage>& xattrs) const {
  if (superuser()) return Status::Ok();
  if (IsDevice(image.mode))
    return {StatusCode::kNotPermitted, "only the superuser may make device nodes"};
  const bool same_owner = image.uid == uid_;
  const bool same_group = IsMember(image.gid);
  if (!same_group) image.gid = caller().gid;
  image.uid = uid_;
  if ((image.mode & kTypeMask) != kDirectory) {
    if (!same_owner) image.mode &= ~kSetUserId;
    if (!same_group) image.mode &= ~kSetGroupId;
  }
  const bool is_link = (image.mode & kTypeMask) == kSymlink;
  std::erase_if(xattrs, [is_link](const XattrImage& xattr) {
    return is_link || !(xattr.name.starts_with("user.") || IsAclName(xattr.name));
  });
  return Status::Ok();
}

}  // namespace siltfs
