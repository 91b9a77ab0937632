// Handlers of requests about attributes and about the whole file system.
#include "fs/fuse/attribute_translation.h"
#include "fs/fuse/handler_context.h"
#include "fs/fuse/kernel_extensions.h"

namespace siltfs::fuse {
namespace {

void GetAttributes(fuse_req_t request, fuse_ino_t inode, fuse_file_info* /*file*/) {
  const Result<Attributes> attributes = GetAttributesToTell(request, inode);
  if (!attributes.ok() || !CurrentRequest().wants_statx) {
    return ReplyAttributes(request, attributes);
  }
  const StatxReply reply = ToStatx(AttributesToReply(ContextOf(request), *attributes));
  fuse_reply_buf(request, reinterpret_cast<const char*>(&reply), sizeof reply);
}

void SetAttributes(fuse_req_t request, fuse_ino_t inode, struct stat* wanted, int which,
                   fuse_file_info* /*file*/) {
  const HandlerContext& context = ContextOf(request);
  struct stat allowed = *wanted;
  allowed.st_mode =
      context.options.mount.owners.ModeToStore(wanted->st_mode, fuse_req_ctx(request)->uid);
  const AttributeChange change = ToChange(allowed, which, context.env.NowNanoseconds());
  ReplyAttributes(request, FileSystemOf(request).SetAttributes(inode, change));
}

void GetFileSystemStatistics(fuse_req_t request, fuse_ino_t inode) {
  const Result<SpaceInfo> space = FileSystemOf(request).GetSpaceOf(inode);
  if (!space.ok()) return ReplyError(request, space.status());
  struct statvfs reply = {};
  reply.f_bsize = space->block_size;
  reply.f_frsize = space->block_size;
  reply.f_blocks = space->total_bytes / space->block_size;
  reply.f_bfree = space->free_bytes / space->block_size;
  reply.f_bavail = space->available_bytes / space->block_size;
  // Inodes are made as needed, and each takes less than a block. So each free block counts as a
  // free inode.
  reply.f_ffree = space->inodes_left.value_or(reply.f_bfree);
  reply.f_favail = space->inodes_left.value_or(reply.f_bavail);
  reply.f_files = space->inodes + reply.f_ffree;
  reply.f_namemax = kMaxNameBytes;
  fuse_reply_statfs(request, &reply);
}

}  // namespace

void AddAttributeHandlers(fuse_lowlevel_ops& operations) {
  operations.getattr = GetAttributes;
  operations.setattr = SetAttributes;
  operations.statfs = GetFileSystemStatistics;
}

}  // namespace siltfs::fuse
