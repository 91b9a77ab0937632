// Handlers of requests about names.
#include <linux/fs.h>  // RENAME_...

#include "fs/fuse/handler_context.h"

namespace siltfs::fuse {
namespace {

void LookupName(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const Result<Attributes> entry = LookUpToTell(request, parent, name);
  if (!entry.ok() && entry.status().Is(StatusCode::kNotFound)) {
    fuse_entry_param nothing = {};  // node 0: the kernel remembers that there is no such name
    nothing.entry_timeout = kForever;
    fuse_reply_entry(request, &nothing);
    return;
  }
  ReplyEntry(request, entry);
}

void ForgetOne(fuse_req_t request, fuse_ino_t inode, uint64_t lookups) {
  FileSystemOf(request).Forget(inode, lookups);
  fuse_reply_none(request);
}

void ForgetMany(fuse_req_t request, size_t count, fuse_forget_data* forgets) {
  FileSystem& file_system = FileSystemOf(request);
  for (size_t i = 0; i < count; ++i) file_system.Forget(forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(request);
}

void MakeNode(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  ReplyNewEntry(request, parent,
                FileSystemOf(request).MakeNode(parent, name, ModeOfNewFile(request, mode), device,
                                               CallerOf(request)));
}

void MakeDirectory(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  ReplyNewEntry(request, parent,
                FileSystemOf(request).MakeDirectory(parent, name, mode, CallerOf(request)));
}

void MakeSymlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  ReplyNewEntry(request, parent,
                FileSystemOf(request).MakeSymlink(parent, name, target, CallerOf(request)));
}

void MakeLink(fuse_req_t request, fuse_ino_t inode, fuse_ino_t new_parent, const char* new_name) {
  ReplyNewEntry(request, new_parent, FileSystemOf(request).Link(inode, new_parent, new_name));
}

void Unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  ReplyChange(request, {parent}, FileSystemOf(request).Unlink(parent, name));
}

void RemoveDirectory(fuse_req_t request, fuse_ino_t parent, const char* name) {
  ReplyChange(request, {parent}, FileSystemOf(request).RemoveDirectory(parent, name));
}

void Rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
            const char* new_name, unsigned flags) {
  RenameMode mode = RenameMode::kReplace;
  switch (flags) {
    case 0:
      break;
    case RENAME_NOREPLACE:
      mode = RenameMode::kNoReplace;
      break;
    case RENAME_EXCHANGE:
      mode = RenameMode::kExchange;
      break;
    default:
      fuse_reply_err(request, EINVAL);
      return;  // whiteouts
  }
  ReplyChange(request, {parent, new_parent},
              FileSystemOf(request).Rename(parent, name, new_parent, new_name, mode));
}

void ReadLink(fuse_req_t request, fuse_ino_t inode) {
  const Result<std::string> target = FileSystemOf(request).ReadLink(inode);
  if (!target.ok()) return ReplyError(request, target.status());
  fuse_reply_readlink(request, target->c_str());
}

}  // namespace

void AddNameHandlers(fuse_lowlevel_ops& operations) {
  operations.lookup = LookupName;
  operations.forget = ForgetOne;
  operations.forget_multi = ForgetMany;
  operations.mknod = MakeNode;
  operations.mkdir = MakeDirectory;
  operations.symlink = MakeSymlink;
  operations.link = MakeLink;
  operations.unlink = Unlink;
  operations.rmdir = RemoveDirectory;
  operations.rename = Rename;
  operations.readlink = ReadLink;
}

}  // namespace siltfs::fuse
