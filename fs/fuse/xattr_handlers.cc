// Handlers of requests about extended attributes in the namespaces of xattr(7): "user.",
// "trusted.", "security.", and the access control lists of "system.".
//
// The kernel checks the right to read and write each name, but does not hide names in "trusted."
// from a listing. The kernel sends a caller's user but not its capabilities, so only user 0 counts
// as having CAP_SYS_ADMIN here.
//
// If the kernel does not enforce access control lists, the handlers refuse them. If they did not, a
// user could set a list and rely on it, although the list has no effect.
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>

#include "fs/fuse/handler_context.h"
#include "fs/interface/posix_acl.h"

namespace siltfs::fuse {
namespace {

constexpr std::string_view kTrusted = "trusted.";
constexpr std::array<std::string_view, 3> kNamespaces = {"user.", kTrusted, "security."};

// Returns 0, or the errno to answer if there can be no attribute of this name.
int Refusal(fuse_req_t request, std::string_view name) {
  if (IsAclName(name)) return ContextOf(request).acls ? 0 : EOPNOTSUPP;
  const auto found =
      std::find_if(kNamespaces.begin(), kNamespaces.end(),
                   [name](std::string_view space) { return name.starts_with(space); });
  if (found == kNamespaces.end()) return EOPNOTSUPP;
  return name.size() == found->size() ? EINVAL : 0;
}

// Whether the caller is in the group. Supplementary groups are read from /proc, since the kernel
// does not send them. A caller that has exited or is in another pid namespace counts as having no
// supplementary groups.
bool IsInGroup(fuse_req_t request, gid_t group) {
  if (fuse_req_ctx(request)->gid == group) return true;
  std::vector<gid_t> groups(64);
  int count = fuse_req_getgroups(request, static_cast<int>(groups.size()), groups.data());
  if (count > static_cast<int>(groups.size())) {
    groups.resize(static_cast<size_t>(count));
    count = std::min(count, fuse_req_getgroups(request, count, groups.data()));
  }
  if (count < 0) return false;
  return std::find(groups.begin(), groups.begin() + count, group) != groups.begin() + count;
}

// Whether the caller may set the set-group-ID bit of this file, so that the bit survives a new
// access control list. (The kernel sends this as FUSE_SETXATTR_ACL_KILL_SGID, but libfuse does not
// pass it on. User 0 stands for CAP_FSETID.) The kernel blocks other changes of the inode until
// this request is answered.
Result<bool> KeepsSetGid(fuse_req_t request, InodeNumber inode) {
  if (fuse_req_ctx(request)->uid == 0) return true;
  SILTFS_ASSIGN_OR_RETURN(const Attributes attributes, FileSystemOf(request).GetAttributes(inode));
  return (attributes.mode & S_ISGID) == 0 || IsInGroup(request, attributes.gid);
}

// `size` is the caller's buffer size; 0 asks for the needed size.
void ReplyValue(fuse_req_t request, std::string_view value, size_t size) {
  if (size == 0) {
    fuse_reply_xattr(request, value.size());
  } else if (value.size() > size) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, value.data(), value.size());
  }
}

void GetXattr(fuse_req_t request, fuse_ino_t inode, const char* name, size_t size) {
  if (const int refusal = Refusal(request, name); refusal != 0) {
    fuse_reply_err(request, refusal);
    return;
  }
  const Result<std::string> value = FileSystemOf(request).GetXattr(inode, name);
  if (!value.ok()) return ReplyError(request, value.status());
  ReplyValue(request, *value, size);
}

void SetXattr(fuse_req_t request, fuse_ino_t inode, const char* name, const char* value,
              size_t size, int flags) {
  if (const int refusal = Refusal(request, name); refusal != 0) {
    fuse_reply_err(request, refusal);
    return;
  }
  XattrMode mode = XattrMode::kSet;
  switch (flags) {
    case 0:
      break;
    case XATTR_CREATE:
      mode = XattrMode::kCreate;
      break;
    case XATTR_REPLACE:
      mode = XattrMode::kReplace;
      break;
    default:
      fuse_reply_err(request, EINVAL);
      return;
  }
  if (name == kAccessAclName) {
    const Result<bool> keeps_set_gid = KeepsSetGid(request, inode);
    if (!keeps_set_gid.ok()) return ReplyError(request, keeps_set_gid.status());
    if (!*keeps_set_gid) mode = XattrMode::kSetWithoutSetGid;
  }
  const Status status = FileSystemOf(request).SetXattr(inode, name, {value, size}, mode);
  if (status.ok() && name == kAccessAclName) AnnounceAttributes(ContextOf(request), inode);
  ReplyOutcome(request, status);
}

void ListXattrs(fuse_req_t request, fuse_ino_t inode, size_t size) {
  const Result<std::vector<std::string>> names = FileSystemOf(request).ListXattrs(inode);
  if (!names.ok()) return ReplyError(request, names.status());
  std::string list;  // each name ends with a zero
  const bool shows_trusted = fuse_req_ctx(request)->uid == 0;
  for (const std::string& name : *names) {
    if (shows_trusted || !name.starts_with(kTrusted)) list.append(name.c_str(), name.size() + 1);
  }
  ReplyValue(request, list, size);
}

void RemoveXattr(fuse_req_t request, fuse_ino_t inode, const char* name) {
  if (const int refusal = Refusal(request, name); refusal != 0) {
    fuse_reply_err(request, refusal);
    return;
  }
  ReplyOutcome(request, FileSystemOf(request).RemoveXattr(inode, name));
}

}  // namespace

void AddXattrHandlers(fuse_lowlevel_ops& operations) {
  operations.getxattr = GetXattr;
  operations.setxattr = SetXattr;
  operations.listxattr = ListXattrs;
  operations.removexattr = RemoveXattr;
}

}  // namespace siltfs::fuse
