#include "fs/fuse/handler_context.h"

#include "fs/fuse/attribute_translation.h"
#include "fs/fuse/errno_map.h"

namespace siltfs::fuse {

ReadBuffers::Buffer ReadBuffers::Take() {
  {
    const MutexLock lock(mutex_);
    if (!free_.empty()) {
      Buffer buffer = std::move(free_.back());
      free_.pop_back();
      return buffer;
    }
  }
  return Buffer(new uint8_t[kBytes]);  // not zeroed
}

void ReadBuffers::Return(Buffer buffer) {
  const MutexLock lock(mutex_);
  free_.push_back(std::move(buffer));
}

HandlerContext& ContextOf(fuse_req_t request) {
  return *static_cast<HandlerContext*>(fuse_req_userdata(request));
}

FileSystem& FileSystemOf(fuse_req_t request) { return ContextOf(request).file_system; }

Caller CallerOf(fuse_req_t request) {
  const fuse_ctx* caller = fuse_req_ctx(request);
  return {.uid = caller->uid,
          .gid = caller->gid,
          .umask = caller->umask,
          .acls = ContextOf(request).acls};
}

void ReplyError(fuse_req_t request, const Status& status) {
  ContextOf(request).failure_log.Add(status);
  fuse_reply_err(request, ErrnoOf(status.code()));
}

void ReplyOutcome(fuse_req_t request, const Status& status) {
  if (!status.ok()) return ReplyError(request, status);
  fuse_reply_err(request, 0);
}

void ReplyEntry(fuse_req_t request, const Result<Attributes>& entry) {
  if (!entry.ok()) return ReplyError(request, entry.status());
  FileSystem& file_system = FileSystemOf(request);  // the request is gone after the reply
  const fuse_entry_param parameters = ToEntry(*entry);
  if (fuse_reply_entry(request, &parameters) != 0) file_system.Forget(entry->inode, 1);
}

void ReplyAttributes(fuse_req_t request, const Result<Attributes>& attributes) {
  if (!attributes.ok()) return ReplyError(request, attributes.status());
  const struct stat stat = ToStat(*attributes);
  fuse_reply_attr(request, &stat, kForever);
}

}  // namespace siltfs::fuse
