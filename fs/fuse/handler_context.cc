#include "fs/fuse/handler_context.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>

#include "fs/fuse/attribute_translation.h"
#include "fs/fuse/errno_map.h"

namespace siltfs::fuse {
namespace {

AttributeReplyTracker::Thread ThreadOf(fuse_req_t request) { return fuse_req_ctx(request)->pid; }

bool IsDirectory(const Attributes& attributes) { return S_ISDIR(attributes.mode); }

// Returns the attributes to reply. A directory's attributes are read twice. The first read shows
// that it is a directory. The second one gives the attributes of the reply, which must be read
// after the reply is noted.
Result<Attributes> ReadToTell(fuse_req_t request, const Attributes& found) {
  if (!IsDirectory(found)) return found;
  ContextOf(request).attribute_replies.NoteReply(found.inode, ThreadOf(request));
  return FileSystemOf(request).GetAttributes(found.inode);
}

// Makes the kernel ignore late replies to the requests that it has sent for attributes of this
// inode until now, and ask for the attributes again. False if the kernel could not be notified.
bool Invalidate(HandlerContext& context, InodeNumber inode) {
  // A negative offset means that only the attributes become invalid. So the kernel waits neither
  // for pages nor for the inode's lock, which the thread that waits for this request's answer may
  // hold.
  const int outcome = fuse_lowlevel_notify_inval_inode(context.session, inode, -1, 0);
  if (outcome == 0 || outcome == -ENOENT) return true;  // ENOENT: the inode is not cached
  const bool unmounted = outcome == -ENODEV || outcome == -ENOTCONN;  // no program sees old data
  if (!unmounted) {
    context.failure_log.Add(Status(StatusCode::kIoError,
                                   fmt::format("the kernel may show old attributes of inode {}: {}",
                                               inode, std::strerror(-outcome))));
  }
  return false;
}

}  // namespace

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

uint32_t ModeOfNewFile(fuse_req_t request, uint32_t mode) {
  return ContextOf(request).options.mount.owners.ModeOfNewFile(mode, fuse_req_ctx(request)->uid);
}

Result<Attributes> LookUpToTell(fuse_req_t request, InodeNumber parent, std::string_view name) {
  SILTFS_ASSIGN_OR_RETURN(const Attributes found, FileSystemOf(request).Lookup(parent, name));
  Result<Attributes> read = ReadToTell(request, found);
  if (!read.ok()) FileSystemOf(request).Forget(found.inode, 1);
  return read;
}

Result<Attributes> GetAttributesToTell(fuse_req_t request, InodeNumber inode) {
  SILTFS_ASSIGN_OR_RETURN(const Attributes found, FileSystemOf(request).GetAttributes(inode));
  return ReadToTell(request, found);
}

void AnnounceChange(fuse_req_t request, InodeNumber directory) {
  AttributeReplyTracker& told = ContextOf(request).attribute_replies;
  if (!told.TakeOthers(directory, ThreadOf(request))) return;
  if (!Invalidate(ContextOf(request), directory)) {
    told.NoteReply(directory, AttributeReplyTracker::kUnknownThread);
  }
}

void AnnounceAttributes(HandlerContext& context, InodeNumber inode) {
  static_cast<void>(Invalidate(context, inode));
}

AttributeReply AttributesToReply(const HandlerContext& context, const Attributes& attributes) {
  AttributeReply told{attributes, kForever};
  context.options.mount.owners.ApplyTo(told.attributes);
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
  const fuse_entry_param parameters = ToEntry(AttributesToReply(ContextOf(request), *entry));
  if (fuse_reply_entry(request, &parameters) != 0) file_system.Forget(entry->inode, 1);
}

void ReplyNewEntry(fuse_req_t request, InodeNumber parent, const Result<Attributes>& entry) {
  if (entry.ok()) {
    if (IsDirectory(*entry)) {
      ContextOf(request).attribute_replies.NoteMade(entry->inode, ThreadOf(request));
    }
    AnnounceChange(request, parent);
  }
  ReplyEntry(request, entry);
}

void ReplyChange(fuse_req_t request, std::initializer_list<InodeNumber> directories,
                 const Status& status) {
  if (status.ok()) {
    for (const InodeNumber directory : directories) AnnounceChange(request, directory);
  }
  ReplyOutcome(request, status);
}

void ReplyAttributes(fuse_req_t request, const Result<Attributes>& attributes) {
  if (!attributes.ok()) return ReplyError(request, attributes.status());
  const AttributeReply told = AttributesToReply(ContextOf(request), *attributes);
  const struct stat stat = ToStat(told.attributes);
  fuse_reply_attr(request, &stat, told.valid_seconds);
}

}  // namespace siltfs::fuse
