#include "fs/ops/file_ops.h"

namespace siltfs {
namespace {

// Smaller files get no readahead: their reads are done before it would start.
constexpr uint64_t kWorthReadahead = 512u << 10;

}  // namespace

Status FileOps::OpenFile(InodeNumber number, bool truncate) {
  InodePtr inode = inodes_.Get(number);
  {
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    // LoadRecord changes nothing in metadata. So deferred changes stay deferred, and files can be
    // opened even if the store has turned read-only.
    SILTFS_RETURN_IF_ERROR(inodes_.LoadRecord(*inode));
    if (inode->record.IsDirectory()) return Status(StatusCode::kIsADirectory, "is a directory");
    ++inode->open_count;
  }
  if (!truncate) return Status::Ok();
  AttributeChange change;
  change.size = 0;
  auto truncated = attributes_.SetAttributes(number, change);
  if (truncated.ok()) return Status::Ok();
  ReleaseFile(number);
  return std::move(truncated).status();
}

void FileOps::ReleaseFile(InodeNumber number) {
  InodePtr inode = inodes_.Get(number);
  bool fold = false;
  {
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    if (inode->open_count > 0) --inode->open_count;
    if (inode->open_count == 0) {
      inode->times_replied = false;
      store_.chunks().ForgetReads(store_.Shown(number));
    }
    fold = inode->open_count == 0 && folds_.NeedsFold(*inode);
  }
  if (fold) folds_.FoldAndLog(number);
  lifetimes_.RemoveIfUnused(number);
}

Result<size_t> FileOps::Read(InodeNumber number, uint64_t offset, MutableByteView out) {
  const ChunkStore::Use use(store_.chunks());
  size_t count = 0;
  const Status read = inodes_.WithLoaded(number, true, [&](const Inode& inode) -> Status {
    if (inode.record.IsDirectory()) return Status(StatusCode::kIsADirectory, "is a directory");
    const InodeRecord& record = inode.record;
    SILTFS_ASSIGN_OR_RETURN(count, content_.Read(record, inode.overlay, offset, out));
    store_.chunks().NoteUse();
    if (record.IsRegular() && record.recipe_limit >= kWorthReadahead)
      store_.chunks().NoteRead(store_.Shown(number), record.recipe, record.recipe_limit, offset,
                               count);
    return Status::Ok();
  });
  if (read.Is(StatusCode::kCorruption))
    damage_.ReportRead(store_.Shown(number), offset, out.size(), read);
  SILTFS_RETURN_IF_ERROR(read);
  store_.chunks().CountRead(count);
  return count;
}

Result<std::optional<uint64_t>> FileOps::Seek(InodeNumber number, uint64_t offset,
                                              SeekTarget target) {
  std::optional<uint64_t> found;
  const ChunkStore::Use use(store_.chunks());
  Status sought = inodes_.WithLoaded(number, true, [&](const Inode& inode) -> Status {
    const InodeRecord& record = inode.record;
    SILTFS_RETURN_IF_ERROR(CheckRegular(record));
    if (offset >= record.size) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const uint64_t place,
                            target == SeekTarget::kHole
                                ? content_.FindHole(record, inode.overlay, offset)
                                : content_.FindData(record, inode.overlay, offset));
    if (target == SeekTarget::kHole || place < record.size) found = place;
    return Status::Ok();
  });
  SILTFS_RETURN_IF_ERROR(sought);
  return found;
}

Status FileOps::Fsync(InodeNumber number) {
  uint64_t last_apply = 0;
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(number, false, [&last_apply](const Inode& inode) {
    last_apply = inode.last_apply;
    return Status::Ok();
  }));
  // If the inode table has released the inode since its last change, last_apply is 0 again. The
  // change may still be in the open group, so commit everything.
  return last_apply > 0 ? store_.metadata().Commit(last_apply) : store_.metadata().CommitAll();
}

}  // namespace siltfs
