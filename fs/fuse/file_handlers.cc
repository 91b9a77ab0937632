// Handlers of requests about open files. Reading does not require that the file was opened for
// reading: the kernel's writeback cache also reads files that are open only for writing, to fill
// the rest of a page.
//
// FLUSH has no handler. So libfuse answers the first FLUSH with ENOSYS, and the kernel sends no
// more of them. The kernel writes dirty data back on close anyway.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "fs/fuse/attribute_translation.h"
#include "fs/fuse/errno_map.h"
#include "fs/fuse/handler_context.h"
#include "fs/fuse/kernel_extensions.h"
#include "fs/fuse/kernel_readahead.h"

namespace siltfs::fuse {
namespace {

// The reply's count of copied bytes has 32 bits.
constexpr size_t kMaxCopyBytes = 0xffff'f000;

// Stored in the file's handle, for its release.
enum class Access : uint64_t { kRead = 0, kWrite = 1 };

// Call it before answering the open. After the answer the kernel may send writes at once, and the
// readahead limit of the open file no longer changes. Readahead is raised here, because no file is
// opened before INIT was answered (kernel_readahead.h).
void NoteOpen(HandlerContext& context, InodeNumber inode, fuse_file_info& file) {
  std::call_once(context.readahead_raised,
                 [&context] { RaiseKernelReadahead(context.device, kKernelReadaheadBytes); });
  const bool writes = (file.flags & O_ACCMODE) != O_RDONLY;
  file.fh = static_cast<uint64_t>(writes ? Access::kWrite : Access::kRead);
  if (writes) context.open_for_writing.Add(inode);
  file.keep_cache = 1;
  // With direct I/O, a write itself fails if there is no space. If the kernel cached the written
  // data, only a later sync or close would report this error.
  if (writes && context.cache_can_be_passed_by && context.file_system.NearlyFullFor(inode))
    file.direct_io = 1;
}

void NoteRelease(HandlerContext& context, InodeNumber inode, const fuse_file_info& file) {
  if (file.fh == static_cast<uint64_t>(Access::kWrite) && context.open_for_writing.Remove(inode)) {
    // See AttributesToReply. A file without a name is not looked up again.
    const Result<Attributes> attributes = context.file_system.GetAttributes(inode);
    const bool told_blocks = attributes.ok() && attributes->allocated_bytes == 0;
    if (told_blocks && attributes->links > 0) AnnounceAttributes(context, inode);
  }
  context.file_system.ReleaseFile(inode);
}

void CreateFile(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
                fuse_file_info* file) {
  HandlerContext& context = ContextOf(request);
  FileSystem& file_system = context.file_system;
  mode = ModeOfNewFile(request, mode);
  const bool temporary = CurrentRequest().temporary_file;
  const Result<Attributes> created =
      temporary ? file_system.MakeTemporaryFile(parent, mode, CallerOf(request))
                : file_system.CreateFile(parent, name, mode, CallerOf(request));
  if (!created.ok()) return ReplyError(request, created.status());
  if (!temporary) AnnounceChange(request, parent);
  NoteOpen(context, created->inode, *file);
  const fuse_entry_param entry = ToEntry(AttributesToReply(context, *created));
  if (fuse_reply_create(request, &entry, file) !=
      0) {  // the caller is gone: no RELEASE and no FORGET will come
    NoteRelease(context, created->inode, *file);
    context.file_system.Forget(created->inode, 1);
  }
}

// Removes the set-id bits of a file that is opened for writing, if the mount does not show them.
// When a program writes to the kernel's cache, the kernel asks for their removal only if it knows
// of them. So the program could choose what later runs with the rights of the stored owner.
Status DropHiddenSetIds(fuse_req_t request, InodeNumber inode) {
  HandlerContext& context = ContextOf(request);
  const OwnerMapping& owners = context.options.mount.owners;
  if (!owners.any() || fuse_req_ctx(request)->uid == 0) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const Attributes stored, context.file_system.GetAttributes(inode));
  Attributes shown = stored;
  owners.ApplyTo(shown);
  // Without execution by the group, set-group-ID gives no rights, and a write leaves it.
  const mode_t rights = (stored.mode & S_IXGRP) != 0 ? S_ISUID | S_ISGID : S_ISUID;
  if ((stored.mode & ~shown.mode & rights) == 0) return Status::Ok();
  AttributeChange change;
  change.kill_privileges = true;
  SILTFS_RETURN_IF_ERROR(context.file_system.SetAttributes(inode, change).status());
  AnnounceAttributes(context, inode);  // a bit of the other id may have been shown
  return Status::Ok();
}

void OpenFile(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  HandlerContext& context = ContextOf(request);
  Status status;
  if ((file->flags & O_ACCMODE) != O_RDONLY) {
    status = context.file_system.CheckOpenForWriting(inode);
    if (status.ok()) status = DropHiddenSetIds(request, inode);
  }
  if (status.ok()) status = context.file_system.OpenFile(inode, (file->flags & O_TRUNC) != 0);
  if (!status.ok()) return ReplyError(request, status);
  NoteOpen(context, inode, *file);
  if (fuse_reply_open(request, file) != 0) NoteRelease(context, inode, *file);
}

void ReleaseFile(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  NoteRelease(ContextOf(request), inode, *file);
  fuse_reply_err(request, 0);
}

// Where the answer of a READ is built: in the ring's memory, or in a buffer kept for reuse.
class ReadBuffer {
 public:
  explicit ReadBuffer(HandlerContext& context) : context_(context), place_(CurrentReplyArea()) {
    if (!place_.empty()) return;
    buffer_ = context.read_buffers.Take();
    place_ = {buffer_.get(), ReadBuffers::kBytes};
  }
  ~ReadBuffer() {
    if (buffer_) context_.read_buffers.Return(std::move(buffer_));
  }
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;

  MutableByteView First(size_t size) const { return place_.first(std::min(size, place_.size())); }

 private:
  HandlerContext& context_;
  ReadBuffers::Buffer buffer_;
  MutableByteView place_;
};

void Read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
          fuse_file_info* /*file*/) {
  HandlerContext& context = ContextOf(request);
  const ReadBuffer buffer(context);
  const MutableByteView out = buffer.First(size);
  const Result<size_t> count = context.file_system.Read(inode, static_cast<uint64_t>(offset), out);
  if (count.ok()) {
    fuse_reply_buf(request, reinterpret_cast<const char*>(out.data()), *count);
  } else if (count.status().Is(StatusCode::kCorruption)) {
    fuse_reply_err(request, ErrnoOf(count.status().code()));  // the core has logged it
  } else {
    ReplyError(request, count.status());
  }
}

// Exists while a request changes a file's content. After the change, the kernel asks for size and
// times again, but still shows set-id bits that the change has removed. So AnnounceLoss makes the
// kernel ask for the mode, too.
class SetIdBits {
 public:
  SetIdBits(fuse_req_t request, InodeNumber inode, Privileges taken)
      : request_(request), inode_(inode), before_(taken == Privileges::kDropAll ? Read() : 0) {}

  // Call it after the change, before answering `request`.
  void AnnounceLoss() const {
    if (before_ != 0 && Read() != before_) AnnounceAttributes(ContextOf(request_), inode_);
  }

 private:
  uint32_t Read() const {
    const Result<Attributes> attributes = FileSystemOf(request_).GetAttributes(inode_);
    return attributes.ok() ? attributes->mode & (S_ISUID | S_ISGID) : 0;
  }

  const fuse_req_t request_;
  const InodeNumber inode_;
  const uint32_t before_;
};

void Write(fuse_req_t request, fuse_ino_t inode, const char* data, size_t size, off_t offset,
           fuse_file_info* /*file*/) {
  const Privileges taken = CurrentRequest().privileges;
  const SetIdBits bits(request, inode, taken);
  const Status status = FileSystemOf(request).Write(inode, static_cast<uint64_t>(offset),
                                                    AsBytes(std::string_view(data, size)), taken,
                                                    CurrentRequest().times);
  if (!status.ok()) return ReplyError(request, status);
  bits.AnnounceLoss();
  fuse_reply_write(request, size);
}

void SyncFile(fuse_req_t request, fuse_ino_t inode, int /*data_only*/, fuse_file_info* /*file*/) {
  ReplyOutcome(request, FileSystemOf(request).Fsync(inode));
}

// Returns the privileges that `request`, a change of a file's content, removes from the file. Only
// WRITE requests say what they remove. So this function is for all other requests, which remove
// what a write by the same caller removes. User 0 stands for all callers that may keep set-id bits.
Privileges PrivilegesTakenBy(fuse_req_t request) {
  return CallerOf(request).uid == 0 ? Privileges::kDropCapability : Privileges::kDropAll;
}

void Allocate(fuse_req_t request, fuse_ino_t inode, int mode, off_t offset, off_t length,
              fuse_file_info* /*file*/) {
  const bool keep_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  AllocateMode wanted = AllocateMode::kReserve;
  switch (mode & ~FALLOC_FL_KEEP_SIZE) {
    case 0:
      break;
    case FALLOC_FL_PUNCH_HOLE:  // the kernel requires KEEP_SIZE with it
    case FALLOC_FL_ZERO_RANGE:
      wanted = AllocateMode::kZero;
      break;
    default:  // collapse and insert do not come through FUSE
      fuse_reply_err(request, EOPNOTSUPP);
      return;
  }
  const Privileges taken = PrivilegesTakenBy(request);
  const SetIdBits bits(request, inode, taken);
  const Status status =
      FileSystemOf(request).Allocate(inode, wanted, static_cast<uint64_t>(offset),
                                     static_cast<uint64_t>(length), keep_size, taken);
  if (status.ok()) bits.AnnounceLoss();
  ReplyOutcome(request, status);
}

void AnswerSeek(fuse_req_t request, InodeNumber inode, uint64_t offset, SeekTarget target) {
  const auto found = FileSystemOf(request).Seek(inode, offset, target);
  if (!found.ok()) return ReplyError(request, found.status());
  if (!*found) {
    fuse_reply_err(request, ENXIO);
    return;
  }
  fuse_reply_lseek(request, static_cast<off_t>(**found));
}

void Seek(fuse_req_t request, fuse_ino_t inode, off_t offset, int whence,
          fuse_file_info* /*file*/) {
  if (whence != SEEK_DATA && whence != SEEK_HOLE) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  HandlerContext& context = ContextOf(request);
  const auto from = static_cast<uint64_t>(offset);
  const SeekTarget target = whence == SEEK_DATA ? SeekTarget::kData : SeekTarget::kHole;
  if (!context.open_for_writing.Contains(inode)) return AnswerSeek(request, inode, from, target);
  // The kernel may have data that it has not sent, which Seek would report as a hole. If the kernel
  // is too old to await its writeback, the answer is an error. Programs then copy the whole file.
  if (!context.writeback_can_be_awaited) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  const bool added = context.tasks.Add([request, inode, from, target, &context] {
    const Status status = WriteBack(context.options.mountpoint, context.device,
                                    {inode, context.file_system.GenerationOf(inode)});
    if (status.ok()) return AnswerSeek(request, inode, from, target);
    fuse_reply_err(request, EINVAL);
  });
  if (!added) fuse_reply_err(request, EINVAL);
}

void CopyRange(fuse_req_t request, fuse_ino_t source, off_t source_offset,
               fuse_file_info* /*source_file*/, fuse_ino_t target, off_t target_offset,
               fuse_file_info* /*target_file*/, size_t length, int flags) {
  if (flags != 0) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  const Privileges taken = PrivilegesTakenBy(request);
  const SetIdBits bits(request, target, taken);
  const Result<uint64_t> copied = FileSystemOf(request).CopyRange(
      source, static_cast<uint64_t>(source_offset), target, static_cast<uint64_t>(target_offset),
      std::min(length, kMaxCopyBytes), taken);
  if (!copied.ok()) return ReplyError(request, copied.status());
  bits.AnnounceLoss();
  fuse_reply_write(request, *copied);
}

}  // namespace

void AddFileHandlers(fuse_lowlevel_ops& operations) {
  operations.create = CreateFile;
  operations.open = OpenFile;
  operations.release = ReleaseFile;
  operations.read = Read;
  operations.write = Write;
  operations.fsync = SyncFile;
  operations.fallocate = Allocate;
  operations.lseek = Seek;
  operations.copy_file_range = CopyRange;
}

}  // namespace siltfs::fuse
