// Files: open, read, write, fsync, and the folds that follow.
#include <fmt/format.h>

#include "fs/core/file_system_impl.h"
#include "fs/meta/schema.h"

namespace siltfs {
namespace {

// Less than this in an overlay is not folded to relieve memory: it is the tail of a stream, or soon
// dropped.
constexpr uint64_t kWorthFolding = 256u << 10;

}  // namespace

Status FileSystemImpl::OpenFile(InodeNumber number, bool truncate) {
  InodePtr inode = inodes_.Get(number);
  {
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    SILTFS_RETURN_IF_ERROR(Load(*inode));
    if (inode->record.IsDirectory()) return Status(StatusCode::kIsADirectory, "is a directory");
    ++inode->open_count;
  }
  if (!truncate) return Status::Ok();
  AttributeChange change;
  change.size = 0;
  auto truncated = SetAttributes(number, change);
  if (truncated.ok()) return Status::Ok();
  ReleaseFile(number);
  return std::move(truncated).status();
}

void FileSystemImpl::ReleaseFile(InodeNumber number) {
  InodePtr inode = inodes_.Get(number);
  bool fold = false;
  {
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    if (inode->open_count > 0) --inode->open_count;
    fold = inode->open_count == 0 && inode->loaded && NeedsFold(inode->record);
  }
  if (fold) FoldAndLog(number);
  RemoveIfUnused(number);
}

Result<size_t> FileSystemImpl::Read(InodeNumber number, uint64_t offset, MutableByteView out) {
  size_t count = 0;
  SILTFS_RETURN_IF_ERROR(WithLoaded(number, true, [&](const Inode& inode) -> Status {
    if (inode.record.IsDirectory()) return Status(StatusCode::kIsADirectory, "is a directory");
    SILTFS_ASSIGN_OR_RETURN(count, content_.Read(inode.record, inode.overlay, offset, out));
    return Status::Ok();
  }));
  return count;
}

Status FileSystemImpl::Write(InodeNumber number, uint64_t offset, ByteView data,
                             Privileges privileges) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(LoadOverlay(*inode));
  InodeRecord& record = inode->record;
  if (record.IsDirectory()) return Status(StatusCode::kIsADirectory, "is a directory");
  if (!record.IsRegular()) return Status(StatusCode::kInvalidArgument, "is not a regular file");
  if (data.empty()) return Status::Ok();
  const Tally before(record);
  SILTFS_RETURN_IF_ERROR(content_.Write(record, inode->overlay, offset, data));
  record.mtime = record.ctime = Now();
  inode->last_write = env_.MonotonicNanoseconds();
  Change change;
  SILTFS_RETURN_IF_ERROR(DropPrivileges(*inode, privileges, change));
  SaveContent(*inode, before, change);
  SILTFS_RETURN_IF_ERROR(Apply(change));
  const bool pressure = UnderPressure();
  if (pressure) WakeHousekeeper();
  const bool fold_for_room = pressure && inode->overlay.plain_bytes() >= kWorthFolding;
  if (!fold_for_room && !FileContent::NeedsFold(inode->overlay)) return Status::Ok();
  // The write is accepted; should the fold fail, the overlay goes on holding what it holds.
  Status folded = FoldLocked(*inode, FileContent::FoldMode::kKeepTail);
  return folded.Is(StatusCode::kNoSpace) ? Status::Ok() : folded;
}

Status FileSystemImpl::FoldLocked(Inode& inode, FileContent::FoldMode mode) {
  SILTFS_RETURN_IF_ERROR(LoadOverlay(inode));
  if (!inode.record.IsRegular() || FileContent::IsSettled(inode.record)) return Status::Ok();
  const Tally before(inode.record);
  SILTFS_RETURN_IF_ERROR(content_.Fold(inode.record, inode.overlay, mode));
  Change change;
  SaveContent(inode, before, change);
  return Apply(change);
}

// What is about to go is not worth it.
bool FileSystemImpl::NeedsFold(const InodeRecord& record) {
  return record.IsRegular() && record.links > 0 && !FileContent::IsSettled(record);
}

void FileSystemImpl::FoldAndLog(InodeNumber number) {
  if (options_.read_only) return;
  Status status = metadata_->WaitForRoom();
  if (status.ok()) {
    InodePtr inode = inodes_.Get(number);
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    status = FoldLocked(*inode, FileContent::FoldMode::kAll);
  }
  // The file still holds everything; only the space for it is used less well.
  if (!status.ok() && !status.Is(StatusCode::kStale) && options_.report) {
    options_.report(fmt::format("inode {} was not folded: {}", number, status.ToString()));
  }
}

void FileSystemImpl::FoldLeftovers() {
  const KeyRange all = RangeOf(Table::kOverlay);
  std::string next = all.begin;
  for (;;) {
    std::optional<InodeNumber> found;
    Status scanned =
        metadata_->Pin().Scan(next, all.end, [&found](std::string_view key, std::string_view) {
          if (auto parts = ParseNumberedKey(Table::kOverlay, key)) found = parts->inode;
          return false;
        });
    if (!scanned.ok() || !found) return;  // what is left is folded when its file is next used
    bool in_use;
    {
      InodePtr inode = inodes_.Get(*found);
      in_use = inode->open_count > 0;
    }
    if (!in_use) FoldAndLog(*found);
    next = RangeOf(Table::kOverlay, *found).end;
    MutexLock lock(housekeeping_mutex_);
    if (stopping_) return;
  }
}

Status FileSystemImpl::Fsync(InodeNumber number) {
  uint64_t last_apply = 0;
  SILTFS_RETURN_IF_ERROR(WithLoaded(number, false, [&last_apply](const Inode& inode) {
    last_apply = inode.last_apply;
    return Status::Ok();
  }));
  // What an evicted inode remembers no more may still be in the open group.
  return last_apply > 0 ? metadata_->Commit(last_apply) : metadata_->CommitAll();
}

Status FileSystemImpl::SyncAll() { return metadata_->CommitAll(); }

}  // namespace siltfs
