#include "tests/support/memory_xattrs.h"

#include <sys/stat.h>

#include "fs/interface/posix_acl.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kPermissionBits = 07777;
constexpr uint32_t kAccessBits = 0777;

Status SetAcl(MemoryInode& inode, std::string_view name, std::string_view value, XattrMode mode,
              const std::function<int64_t()>& now) {
  Attributes& attributes = inode.attributes;
  if (S_ISLNK(attributes.mode))
    return Failed(StatusCode::kUnsupported, "a symbolic link", attributes.inode);
  const bool access = name == kAccessAclName;
  if (!access && !inode.IsDirectory())
    return Failed(StatusCode::kAccessDenied, "not a directory", attributes.inode);
  SILTFS_ASSIGN_OR_RETURN(const PosixAcl acl, PosixAcl::Decode(value));
  if (access) attributes.mode = (attributes.mode & ~kAccessBits) | acl.PermissionBits();
  if (access && mode == XattrMode::kSetWithoutSetGid) attributes.mode &= ~uint32_t{S_ISGID};
  if (access && acl.IsEquivalentToMode()) {
    inode.xattrs.erase(std::string(name));
  } else {
    inode.xattrs.insert_or_assign(std::string(name), acl.Encode());
  }
  attributes.ctime = now();
  return {};
}

}  // namespace

Status SetXattrOf(MemoryInode& inode, std::string_view name, std::string_view value, XattrMode mode,
                  const std::function<int64_t()>& now) {
  const InodeNumber number = inode.attributes.inode;
  if (name.empty() || name.size() > kMaxNameBytes)
    return Failed(StatusCode::kBufferTooSmall, "bad name", number);
  if (value.size() > kMaxXattrValueBytes)
    return Failed(StatusCode::kNoSpace, "the value is too long", number);
  const bool exists = inode.xattrs.contains(name);
  if (mode == XattrMode::kCreate && exists)
    return Failed(StatusCode::kAlreadyExists, "the name is taken", number);
  if (mode == XattrMode::kReplace && !exists) {
    return Failed(StatusCode::kNoAttribute, "no such extended attribute", number);
  }
  if (IsAclName(name)) return SetAcl(inode, name, value, mode, now);
  inode.xattrs.insert_or_assign(std::string(name), std::string(value));
  inode.attributes.ctime = now();
  return {};
}

Status RemoveXattrOf(MemoryInode& inode, std::string_view name,
                     const std::function<int64_t()>& now) {
  const auto xattr = inode.xattrs.find(name);
  if (xattr == inode.xattrs.end() && IsAclName(name)) return {};
  if (xattr == inode.xattrs.end())
    return Failed(StatusCode::kNoAttribute, "no such extended attribute", inode.attributes.inode);
  inode.xattrs.erase(xattr);
  inode.attributes.ctime = now();
  return {};
}

void SetPermissionBitsOf(MemoryInode& inode, uint32_t mode) {
  Attributes& attributes = inode.attributes;
  attributes.mode = (attributes.mode & S_IFMT) | (mode & kPermissionBits);
  if (const auto list = inode.xattrs.find(kAccessAclName); list != inode.xattrs.end()) {
    PosixAcl acl = *PosixAcl::Decode(list->second);
    acl.SetPermissionBits(attributes.mode);
    list->second = acl.Encode();
  }
}

void DropPrivilegesOf(MemoryInode& inode, Privileges privileges) {
  if (privileges == Privileges::kKeep || inode.IsDirectory()) return;
  inode.xattrs.erase("security.capability");
  if (privileges == Privileges::kDropCapability) return;
  uint32_t& mode = inode.attributes.mode;
  mode &= ~static_cast<uint32_t>((mode & S_IXGRP) != 0 ? S_ISUID | S_ISGID : S_ISUID);
}

uint32_t InheritAcls(const MemoryInode& directory, MemoryInode& inode, uint32_t mode,
                     const Caller& caller) {
  const auto inherited = directory.xattrs.find(kDefaultAclName);
  if (inherited == directory.xattrs.end() || !caller.acls) return mode & ~caller.umask;
  PosixAcl acl = *PosixAcl::Decode(inherited->second);
  acl.LimitTo(mode);
  if (!acl.IsEquivalentToMode()) inode.xattrs.emplace(kAccessAclName, acl.Encode());
  if (S_ISDIR(mode)) inode.xattrs.emplace(*inherited);
  return (mode & ~kAccessBits) | acl.PermissionBits();
}

}  // namespace siltfs::testing
