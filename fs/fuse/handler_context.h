// What the request handlers share: the file system behind them, and how answers and failures get
// back to the kernel. Thread-safety: everything here may be used from all threads of the request
// loop.
#pragma once

#include <initializer_list>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "fs/core/file_system.h"
#include "fs/fuse/failure_log.h"
#include "fs/fuse/fuse_api.h"
#include "fs/fuse/fuse_binding.h"
#include "fs/fuse/told_directories.h"
#include "fs/fuse/writeback.h"
#include "store/base/thread_annotations.h"

namespace siltfs::fuse {

// How long the kernel may believe what it was told, in seconds: nobody else changes anything.
inline constexpr uint32_t kForever = 86400;

// Reply buffers for READ, kept for the next one: a fresh megabyte would be mapped and zeroed page
// by page every time.
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

// The protocol of the first kernel (6.6) where what is read and written past its cache agrees with
// what others have in it: it writes back before, and drops what was written over. Kernels before it
// do neither, so a file's readers would see old content for as long as they cache it, and what is
// written back late would bury what came after it.
inline constexpr unsigned kFirstProtocolToPassCacheBy = 39;

struct HandlerContext {
  Env& env;
  FileSystem& file_system;
  const FuseBindingOptions options;
  ReadBuffers read_buffers;
  FailureLog failure_log;
  FilesOpenForWriting open_for_writing = {};
  BackgroundTasks tasks = {};  // each of them answers a request
  ToldDirectories told_directories = {};
  fuse_session* session = nullptr;  // whose requests these are; set before it is served
  // Set at INIT, before any other request.
  bool opendir_may_be_declined = false;
  bool acls = false;                      // the kernel enforces access control lists
  bool writeback_can_be_awaited = false;  // see kFirstProtocolToAwait
  bool cache_can_be_passed_by = false;    // see kFirstProtocolToPassCacheBy
  uint64_t device = 0;                    // of the mount, see DeviceOf; set before it is served
  std::once_flag readahead_raised = {};   // see kernel_readahead.h
};

HandlerContext& ContextOf(fuse_req_t request);

// What the kernel is told of an inode.
//
// It asks for a file's blocks anew only when the file was closed. A file that is open for writing
// may have data that the kernel has not sent, so it never has 0 blocks, by which programs know a
// file that is one hole (tar --sparse reads no byte of it); and 0 blocks of any other file are not
// to be remembered, as it may be opened for writing next.
struct ToldAttributes;
ToldAttributes WhatToTell(const HandlerContext& context, const Attributes& attributes);

FileSystem& FileSystemOf(fuse_req_t request);
Caller CallerOf(fuse_req_t request);

// Attributes to answer `request` with: a directory's are noted as told (told_directories.h), and
// read once that is done.
Result<Attributes> LookUpToTell(fuse_req_t request, InodeNumber parent, std::string_view name);
Result<Attributes> GetAttributesToTell(fuse_req_t request, InodeNumber inode);

// To be called when `directory` has changed, before `request`, which asked for that, is answered:
// sees to it that the kernel applies no late reply with what the directory was before.
void AnnounceChange(fuse_req_t request, InodeNumber directory);
// The same for the permission bits of `inode`, of whatever type, where the kernel does not see to
// it: they change with an access control list, and with content that is changed by a caller who may
// not keep set-id bits.
void AnnounceNewMode(fuse_req_t request, InodeNumber inode);

// Each answers `request`, once. What the core counted for an answer that did not arrive (the caller
// was interrupted) is taken back.
void ReplyError(fuse_req_t request, const Status& status);
void ReplyOutcome(fuse_req_t request, const Status& status);  // an error or plain success
void ReplyEntry(fuse_req_t request, const Result<Attributes>& entry);
void ReplyAttributes(fuse_req_t request, const Result<Attributes>& attributes);

// The same for a change of directories, which is announced if it was made.
void ReplyNewEntry(fuse_req_t request, InodeNumber parent, const Result<Attributes>& entry);
void ReplyChange(fuse_req_t request, std::initializer_list<InodeNumber> directories,
                 const Status& status);

// The handlers, by what they deal with.
void AddNameHandlers(fuse_lowlevel_ops& operations);
void AddAttributeHandlers(fuse_lowlevel_ops& operations);
void AddXattrHandlers(fuse_lowlevel_ops& operations);
void AddDirectoryHandlers(fuse_lowlevel_ops& operations);
void AddFileHandlers(fuse_lowlevel_ops& operations);

}  // namespace siltfs::fuse
