// Handlers of requests about extended attributes.
//
// Access control lists (system.posix_acl_*) are refused rather than stored: the kernel would not
// enforce them here, and a list that is kept but not obeyed is worse than none. So is everything
// else under "system.", and what belongs to no namespace: the kernel hands on every name.
#include <sys/xattr.h>

#include "fs/fuse/handler_context.h"

namespace siltfs::fuse {
namespace {

bool IsRefused(std::string_view name) {
  return !name.starts_with("user.") && !name.starts_with("trusted.") &&
         !name.starts_with("security.");
}

// `size` is what the caller has room for; 0 asks how much is needed.
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
  if (IsRefused(name)) {
    fuse_reply_err(request, EOPNOTSUPP);
    return;
  }
  const Result<std::string> value = FileSystemOf(request).GetXattr(inode, name);
  if (!value.ok()) return ReplyError(request, value.status());
  ReplyValue(request, *value, size);
}

void SetXattr(fuse_req_t request, fuse_ino_t inode, const char* name, const char* value,
              size_t size, int flags) {
  if (IsRefused(name)) {
    fuse_reply_err(request, EOPNOTSUPP);
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
  ReplyOutcome(request, FileSystemOf(request).SetXattr(inode, name, {value, size}, mode));
}

void ListXattrs(fuse_req_t request, fuse_ino_t inode, size_t size) {
  const Result<std::vector<std::string>> names = FileSystemOf(request).ListXattrs(inode);
  if (!names.ok()) return ReplyError(request, names.status());
  std::string list;  // each name with a zero behind it
  for (const std::string& name : *names) list.append(name.c_str(), name.size() + 1);
  ReplyValue(request, list, size);
}

void RemoveXattr(fuse_req_t request, fuse_ino_t inode, const char* name) {
  if (IsRefused(name)) {
    fuse_reply_err(request, EOPNOTSUPP);
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
