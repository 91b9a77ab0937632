// Handlers of requests about open files. With the kernel's writeback cache a file opened only for
// writing is read too (to fill up a page), so nothing here depends on how a file was opened.
//
// FLUSH has no handler: libfuse then answers ENOSYS, and the kernel, which has written back before
// it asked, stops asking.
#include <fcntl.h>

#include <algorithm>

#include "fs/fuse/attribute_translation.h"
#include "fs/fuse/handler_context.h"
#include "fs/fuse/kernel_extensions.h"

namespace siltfs::fuse {
namespace {

void CreateFile(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
                fuse_file_info* file) {
  FileSystem& file_system = FileSystemOf(request);
  const Result<Attributes> created =
      CurrentRequest().temporary_file
          ? file_system.MakeTemporaryFile(parent, mode, CallerOf(request))
          : file_system.CreateFile(parent, name, mode, CallerOf(request));
  if (!created.ok()) return ReplyError(request, created.status());
  file->keep_cache = 1;
  const fuse_entry_param entry = ToEntry(*created);
  if (fuse_reply_create(request, &entry, file) !=
      0) {  // the caller is gone: no RELEASE and no FORGET will come
    file_system.ReleaseFile(created->inode);
    file_system.Forget(created->inode, 1);
  }
}

void OpenFile(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  FileSystem& file_system = FileSystemOf(request);
  const Status status = file_system.OpenFile(inode, (file->flags & O_TRUNC) != 0);
  if (!status.ok()) return ReplyError(request, status);
  file->keep_cache = 1;
  if (fuse_reply_open(request, file) != 0) file_system.ReleaseFile(inode);
}

void ReleaseFile(fuse_req_t request, fuse_ino_t inode, fuse_file_info* /*file*/) {
  FileSystemOf(request).ReleaseFile(inode);
  fuse_reply_err(request, 0);
}

void Read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
          fuse_file_info* /*file*/) {
  HandlerContext& context = ContextOf(request);
  ReadBuffers::Buffer buffer = context.read_buffers.Take();
  const size_t room = std::min(size, ReadBuffers::kBytes);
  const Result<size_t> count = context.file_system.Read(inode, static_cast<uint64_t>(offset),
                                                        MutableByteView(buffer.get(), room));
  if (count.ok()) {
    fuse_reply_buf(request, reinterpret_cast<const char*>(buffer.get()), *count);
  } else {
    ReplyError(request, count.status());
  }
  context.read_buffers.Return(std::move(buffer));
}

void Write(fuse_req_t request, fuse_ino_t inode, const char* data, size_t size, off_t offset,
           fuse_file_info* /*file*/) {
  const Status status = FileSystemOf(request).Write(inode, static_cast<uint64_t>(offset),
                                                    AsBytes(std::string_view(data, size)),
                                                    CurrentRequest().privileges);
  if (!status.ok()) return ReplyError(request, status);
  fuse_reply_write(request, size);
}

void SyncFile(fuse_req_t request, fuse_ino_t inode, int /*data_only*/, fuse_file_info* /*file*/) {
  ReplyOutcome(request, FileSystemOf(request).Fsync(inode));
}

}  // namespace

void AddFileHandlers(fuse_lowlevel_ops& operations) {
  operations.create = CreateFile;
  operations.open = OpenFile;
  operations.release = ReleaseFile;
  operations.read = Read;
  operations.write = Write;
  operations.fsync = SyncFile;
}

}  // namespace siltfs::fuse
