#include "fs/fuse/handler_context.h"

#include <sys/stat.h>

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

ToldAttributes WhatToTell(const HandlerContext& context, const Attributes& attributes) {
  ToldAttributes told{attributes, kForever};
  if (!S_ISREG(attributes.mode) || attributes.allocated_bytes > 0) return told;
  if (context.open_for_writing.Contains(attributes.inode)) {
    told.attributes.allocated_bytes = 1;
  } else {
    told.valid_seconds = 0;
  }
  return told;
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
  const fuse_entry_param parameters = ToEntry(WhatToTell(ContextOf(request), *entry));
  if (fuse_reply_entry(request, &parameters) != 0) file_system.Forget(entry->inode, 1);
}

void ReplyAttributes(fuse_req_t request, const Result<Attributes>& attributes) {
  if (!attributes.ok()) return ReplyError(request, attributes.status());
  const ToldAttributes told = WhatToTell(ContextOf(request), *attributes);
  const struct stat stat = ToStat(told.attributes);
  fuse_reply_attr(request, &stat, told.valid_seconds);
}

}  // namespace siltfs::fuse
