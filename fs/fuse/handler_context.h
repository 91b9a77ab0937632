// State and functions shared by the request handlers: the file system, and the replies to the
// kernel. Thread-safety: all threads of the request loop may use everything here.
#pragma once

#include <initializer_list>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "fs/fuse/attribute_reply_tracker.h"
#include "fs/fuse/failure_log.h"
#include "fs/fuse/fuse_api.h"
#include "fs/fuse/fuse_binding.h"
#include "fs/fuse/ring_transport.h"
#include "fs/fuse/writeback.h"
#include "fs/interface/file_system.h"
#include "store/base/thread_annotations.h"

namespace siltfs::fuse {

// How long the kernel may cache attributes and names, in seconds. A long time is safe, because only
// this daemon changes them.
inline constexpr uint32_t kForever = 86400;

// Reply buffers for READ, kept for reuse. If each request allocated a new buffer, the kernel would
// have to map and zero a megabyte page by page for each of them.
class ReadBuffers {
 public:
  using Buffer = std::unique_ptr<uint8_t[]>;
  static constexpr size_t kBytes = FuseBinding::kMaxRequestBytes;

  Buffer Take();
  void Return(Buffer buffer);

 private:
  Mutex mutex_;
  std::vector<Buffer> free_ SILTFS_GUARDED_BY(mutex_);
};

// The protocol of Linux 6.6, the first kernel that keeps its cache coherent with direct reads and
// writes, which bypass the cache. Before a direct read or write, this kernel writes cached data
// back. After a direct write, it drops the cached pages of the range. Older kernels do neither:
// readers would see old content as long as it is cached, and a late writeback would overwrite newer
// data.
inline constexpr unsigned kFirstProtocolToPassCacheBy = 39;

struct HandlerContext {
  Env& env;
  FileSystem& file_system;
  const FuseBindingOptions options;
  ReadBuffers read_buffers;
  FailureLog failure_log;
  FilesOpenForWriting open_for_writing = {};
  BackgroundTasks tasks = {};  // each of them answers a request
  AttributeReplyTracker attribute_replies = {};
  RingTransport rings = RingTransport({});
  fuse_session* session = nullptr;  // set before Serve
  // Set at INIT, before any other request.
  bool opendir_may_be_declined = false;
  bool acls = false;                      // the kernel enforces access control lists
  bool writeback_can_be_awaited = false;  // see kFirstProtocolToAwait
  bool cache_can_be_passed_by = false;    // see kFirstProtocolToPassCacheBy
  uint64_t device = 0;                    // of the mount, see DeviceOf; set before Serve
  std::once_flag readahead_raised = {};   // see kernel_readahead.h
};

HandlerContext& ContextOf(fuse_req_t request);

// The attributes to reply for an inode, and how long the kernel may cache them.
//
// The kernel asks for a file's number of blocks again only after the file was closed. A file that
// is open for writing may have data that the kernel has not sent. So such a file is never reported
// with 0 blocks: programs would assume one large hole (tar --sparse would read no byte of it). If
// any other file has 0 blocks, the kernel must not cache its attributes, because the file may be
// opened for writing next. If the file has 0 blocks at its release, the kernel is made to ask
// again: between close and release, a reply may still tell another number.
struct AttributeReply;
AttributeReply AttributesToReply(const HandlerContext& context, const Attributes& attributes);

FileSystem& FileSystemOf(fuse_req_t request);
Caller CallerOf(fuse_req_t request);
// OwnerMapping::ModeOfNewFile for the caller.
uint32_t ModeOfNewFile(fuse_req_t request, uint32_t mode);

// Return the attributes for the answer to `request`. For a directory, these functions note the
// reply (attribute_reply_tracker.h) and then read the attributes.
Result<Attributes> LookUpToTell(fuse_req_t request, InodeNumber parent, std::string_view name);
Result<Attributes> GetAttributesToTell(fuse_req_t request, InodeNumber inode);

// Call it after a change of `directory`, before answering `request`, which asked for the change.
// Ensures that the kernel applies no late reply with the directory's old attributes.
void AnnounceChange(fuse_req_t request, InodeNumber directory);
// Makes the kernel ask again for the attributes of `inode`, which may be of any type. Call it after
// a change that the kernel does not notice. A new access control list changes the permission bits,
// and so does a write by a caller that may not keep set-id bits.
void AnnounceAttributes(HandlerContext& context, InodeNumber inode);

// Each function answers `request` once. If the kernel does not accept the answer, because the
// caller was interrupted, the function undoes the lookup that the core counted for the answer.
void ReplyError(fuse_req_t request, const Status& status);
void ReplyOutcome(fuse_req_t request, const Status& status);  // an error or plain success
void ReplyEntry(fuse_req_t request, const Result<Attributes>& entry);
void ReplyAttributes(fuse_req_t request, const Result<Attributes>& attributes);

// Like ReplyEntry and ReplyOutcome, for a request that changes directories. A successful change is
// announced first.
void ReplyNewEntry(fuse_req_t request, InodeNumber parent, const Result<Attributes>& entry);
void ReplyChange(fuse_req_t request, std::initializer_list<InodeNumber> directories,
                 const Status& status);

// Each sets the handlers for one kind of object.
void AddNameHandlers(fuse_lowlevel_ops& operations);
void AddAttributeHandlers(fuse_lowlevel_ops& operations);
void AddXattrHandlers(fuse_lowlevel_ops& operations);
void AddDirectoryHandlers(fuse_lowlevel_ops& operations);
void AddFileHandlers(fuse_lowlevel_ops& operations);

}  // namespace siltfs::fuse
