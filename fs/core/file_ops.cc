// Files: open, read, write, fsync, and the folds that follow.
#include <fmt/format.h>

#include <algorithm>

#include "fs/core/file_system_impl.h"
#include "fs/meta/schema.h"

namespace siltfs {
namespace {

// An overlay with fewer raw bytes is not folded to relieve memory: they are the tail of a stream,
// or soon dropped. The target of a shorter copy is not folded first, either.
constexpr uint64_t kWorthFolding = 256u << 10;
// Raw bytes that remain when their commit closes are written to metadata's log and tables, and
// dropped by the fold. Folding them at once is faster. So a file that gets more raw bytes than this
// in one commit is folded while it is being written. Raw bytes of an earlier commit may wait for
// more writes to the same chunks.
constexpr uint64_t kMaxFreshRawBytes = 1u << 20;
// Readahead would start too late for a smaller file: its reads are done by then.
constexpr uint64_t kWorthReadahead = 512u << 10;

}  // namespace

Status FileSystemImpl::OpenFile(InodeNumber number, bool truncate) {
  InodePtr inode = inodes_.Get(number);
  {
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    // LoadRecord changes nothing in metadata. So deferred changes stay deferred, and a failed store
    // can still be read.
    SILTFS_RETURN_IF_ERROR(LoadRecord(*inode));
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
    if (inode->open_count == 0) {
      inode->times_replied = false;
      chunks_->ForgetReads(number);
    }
    fold = inode->open_count == 0 && NeedsFold(*inode);
  }
  if (fold) FoldAndLog(number);
  RemoveIfUnused(number);
}

Result<size_t> FileSystemImpl::Read(InodeNumber number, uint64_t offset, MutableByteView out) {
  const ChunkStore::Use use(*chunks_);
  size_t count = 0;
  const Status read = WithLoaded(number, true, [&](const Inode& inode) -> Status {
    if (inode.record.IsDirectory()) return Status(StatusCode::kIsADirectory, "is a directory");
    const InodeRecord& record = inode.record;
    SILTFS_ASSIGN_OR_RETURN(count, content_.Read(record, inode.overlay, offset, out));
    chunks_->NoteUse();
    if (record.IsRegular() && record.recipe_limit >= kWorthReadahead)
      chunks_->NoteRead(number, record.recipe, record.recipe_limit, offset, count);
    return Status::Ok();
  });
  if (read.Is(StatusCode::kCorruption)) ReportDamage(number, offset, out.size(), read);
  SILTFS_RETURN_IF_ERROR(read);
  return count;
}

Status FileSystemImpl::CheckRegular(const InodeRecord& record) {
  if (record.IsDirectory()) return Status(StatusCode::kIsADirectory, "is a directory");
  if (!record.IsRegular()) return Status(StatusCode::kInvalidArgument, "is not a regular file");
  return Status::Ok();
}

Status FileSystemImpl::ApplyContent(Inode& inode, const ContentTally& before, Change& change,
                                    Privileges privileges, WriteTimes times) {
  if (times == WriteTimes::kNow || !inode.times_replied)
    inode.record.mtime = inode.record.ctime = Now();
  inode.last_write = env_.MonotonicNanoseconds();
  SILTFS_RETURN_IF_ERROR(DropPrivileges(inode, privileges, change));
  if (change.commit && change.mutations.empty() && !TooMuchToDefer()) {
    Defer(inode, before, change);
  } else {
    const bool joined = change.commit.has_value();
    SaveContent(inode, before, change);
    SILTFS_RETURN_IF_ERROR(joined ? ApplyJoined(inode, change) : Apply(change));
  }
  const bool pressure = UnderPressure();
  if (pressure) WakeMaintenance();
  const bool fold_for_room = pressure && inode.overlay.plain_bytes() >= kWorthFolding;
  // Raw bytes after the end of the recipe are left alone: a stream there may be waiting for earlier
  // data.
  const bool fold_before_commit =
      inode.fresh_raw_bytes > kMaxFreshRawBytes && inode.overlay.end() <= inode.record.recipe_limit;
  if (!fold_for_room && !fold_before_commit && !FileContent::NeedsFold(inode.overlay))
    return Status::Ok();
  // The change is accepted; if the fold fails, the overlay keeps its content.
  Status folded = FoldSomeLocked(inode, FileContent::FoldMode::kKeepTail);
  return folded.Is(StatusCode::kNoSpace) ? Status::Ok() : folded;
}

void FileSystemImpl::CountFresh(Inode& inode, uint64_t plain_before, uint64_t commit) {
  if (inode.fresh_commit != commit) inode.fresh_raw_bytes = 0;
  inode.fresh_commit = commit;
  const uint64_t plain = inode.overlay.plain_bytes();
  if (plain >= plain_before) {
    inode.fresh_raw_bytes += plain - plain_before;
  } else {
    inode.fresh_raw_bytes -= std::min(inode.fresh_raw_bytes, plain_before - plain);
  }
}

Status FileSystemImpl::Write(InodeNumber number, uint64_t offset, ByteView data,
                             Privileges privileges, WriteTimes times) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(CheckRoom(data.size()));
  InodePtr inode = inodes_.Get(number);
  const SequencedWrite turn(inode->write_sequencer, offset, data.size());
  const ChunkStore::Use use(*chunks_);
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  // Earlier writes may have filled the disk while this one waited for its turn. Data accepted on a
  // full disk could not become chunks. As raw bytes, the data would take metadata's part of the
  // reserve.
  SILTFS_RETURN_IF_ERROR(CheckRoom(0));
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(LoadContent(*inode));
  SILTFS_RETURN_IF_ERROR(CheckRegular(inode->record));
  if (data.empty()) return Status::Ok();
  const ContentTally before(inode->record);
  Change change;
  SILTFS_RETURN_IF_ERROR(Join(*inode, change));
  const uint64_t plain_before = inode->overlay.plain_bytes();
  if (offset < inode->record.size)
    chunks_->NoteReleased(std::min<uint64_t>(inode->record.size - offset, data.size()));
  SILTFS_RETURN_IF_ERROR(content_.Write(inode->record, inode->overlay, offset, data));
  CountFresh(*inode, plain_before, *change.commit);
  return ApplyContent(*inode, before, change, privileges, times);
}

Status FileSystemImpl::Allocate(InodeNumber number, AllocateMode mode, uint64_t offset,
                                uint64_t length, bool keep_size, Privileges privileges) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  if (length == 0) return Status(StatusCode::kInvalidArgument, "there is nothing to allocate");
  const ChunkStore::Use use(*chunks_);
  if (offset > kMaxFileBytes || length > kMaxFileBytes - offset)
    return Status(StatusCode::kFileTooLarge, "the file would grow too large");
  const uint64_t end = offset + length;
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(LoadContentAndFlush(*inode));
  InodeRecord& record = inode->record;
  SILTFS_RETURN_IF_ERROR(CheckRegular(record));
  if (mode == AllocateMode::kReserve && end > record.size) {
    SILTFS_ASSIGN_OR_RETURN(const SpaceInfo space, GetSpace());
    if (end - std::max(offset, record.size) > space.available_bytes)
      return Status(StatusCode::kNoSpace, "the disk has less than is to be allocated");
  }
  const ContentTally before(record);
  if (mode == AllocateMode::kZero) FileContent::PunchHole(record, inode->overlay, offset, length);
  if (!keep_size && end > record.size)
    SILTFS_RETURN_IF_ERROR(content_.Truncate(record, inode->overlay, end));
  Change change;
  return ApplyContent(*inode, before, change, privileges);
}

Result<std::optional<uint64_t>> FileSystemImpl::Seek(InodeNumber number, uint64_t offset,
                                                     SeekTarget target) {
  std::optional<uint64_t> found;
  const ChunkStore::Use use(*chunks_);
  Status sought = WithLoaded(number, true, [&](const Inode& inode) -> Status {
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

Status FileSystemImpl::FoldForCopy(InodeNumber number) {
  bool regular = false;
  Status known = WithLoaded(number, false, [&regular](const Inode& inode) {
    regular = inode.record.IsRegular();
    return Status::Ok();
  });
  SILTFS_RETURN_IF_ERROR(known);
  if (!regular) return Status::Ok();  // CopyRange checks again under the lock, and refuses
  Status folded = FoldInSteps(number);
  return folded.Is(StatusCode::kInUse) ? Status::Ok() : folded;
}

Result<uint64_t> FileSystemImpl::CopyRange(InodeNumber source_number, uint64_t source_offset,
                                           InodeNumber target_number, uint64_t target_offset,
                                           uint64_t length, Privileges privileges) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(CheckRoom(kBytesPerName));
  const ChunkStore::Use use(*chunks_);
  // Long folds are done before both files are locked.
  SILTFS_RETURN_IF_ERROR(FoldForCopy(source_number));
  if (length >= kWorthFolding) SILTFS_RETURN_IF_ERROR(FoldForCopy(target_number));
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  InodePtr source = inodes_.Get(source_number);
  InodePtr target = inodes_.Get(target_number);
  InodeLock lock({source, target}, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(LoadContentAndFlush(*source));
  SILTFS_RETURN_IF_ERROR(LoadContentAndFlush(*target));
  SILTFS_RETURN_IF_ERROR(CheckRegular(source->record));
  SILTFS_RETURN_IF_ERROR(CheckRegular(target->record));
  if (source_offset >= source->record.size) return uint64_t{0};
  length = std::min(length, source->record.size - source_offset);
  if (length == 0) return length;
  if (target_offset > kMaxFileBytes || length > kMaxFileBytes - target_offset)
    return Status(StatusCode::kFileTooLarge, "the file would grow too large");
  if (source == target && source_offset < target_offset + length &&
      target_offset < source_offset + length) {
    return Status(StatusCode::kInvalidArgument, "the ranges overlap");
  }
  SILTFS_RETURN_IF_ERROR(FoldLocked(*source, FileContent::FoldMode::kAll));
  SILTFS_ASSIGN_OR_RETURN(const bool few_parts,
                          content_.HasFewParts(source->record, source_offset, length));
  if (length >= kWorthFolding || !few_parts)
    SILTFS_RETURN_IF_ERROR(FoldLocked(*target, FileContent::FoldMode::kAll));
  const ContentTally before(target->record);
  SILTFS_RETURN_IF_ERROR(content_.Clone(
      source->record,
      {.source_offset = source_offset, .target_offset = target_offset, .length = length},
      target->record, target->overlay));
  Change change;
  SILTFS_RETURN_IF_ERROR(ApplyContent(*target, before, change, privileges));
  return length;
}

Status FileSystemImpl::FoldLocked(Inode& inode, FileContent::FoldMode mode) {
  SILTFS_RETURN_IF_ERROR(LoadContent(inode));
  if (!inode.record.IsRegular() || FileContent::IsFolded(inode.record)) return Status::Ok();
  const ContentTally before(inode.record);
  Change change;
  SILTFS_RETURN_IF_ERROR(Join(inode, change));
  SILTFS_RETURN_IF_ERROR(content_.Fold(inode.record, inode.overlay, mode));
  SaveContent(inode, before, change);
  return ApplyJoined(inode, change);
}

Status FileSystemImpl::FoldSomeLocked(Inode& inode, FileContent::FoldMode mode) {
  SILTFS_RETURN_IF_ERROR(LoadContent(inode));
  if (!inode.record.IsRegular() || FileContent::IsFolded(inode.record)) return Status::Ok();
  const ContentTally before(inode.record);
  Change change;
  SILTFS_RETURN_IF_ERROR(Join(inode, change));
  const uint64_t plain_before = inode.overlay.plain_bytes();
  SILTFS_ASSIGN_OR_RETURN(inode.fold_from,
                          content_.FoldSome(inode.record, inode.overlay, inode.fold_from, mode));
  CountFresh(inode, plain_before, *change.commit);
  SaveContent(inode, before, change);
  return ApplyJoined(inode, change);
}

// A file without links is not worth folding: it will be deleted.
bool FileSystemImpl::NeedsFold(const InodeRecord& record) {
  return record.IsRegular() && record.links > 0 && !FileContent::IsFolded(record);
}

// After a failed change the inode may have to be loaded again. If that fails, the inode was
// removed, or its next user reports the error.
bool FileSystemImpl::NeedsFold(Inode& inode) {
  return LoadRecord(inode).ok() && NeedsFold(inode.record);
}

Result<bool> FileSystemImpl::FoldStep(InodeNumber number) {
  const ChunkStore::Use use(*chunks_);
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(LoadContent(*inode));
  if (FileContent::FoldsAtOnce(inode->overlay)) {
    SILTFS_RETURN_IF_ERROR(FoldLocked(*inode, FileContent::FoldMode::kAll));
    return true;
  }
  SILTFS_RETURN_IF_ERROR(FoldSomeLocked(*inode, FileContent::FoldMode::kAll));
  return false;
}

Status FileSystemImpl::FoldInSteps(InodeNumber number) {
  constexpr uint64_t kLeastPerStep = 16;
  uint64_t extents = 0;
  Status loaded = WithLoaded(number, true, [&extents](const Inode& inode) {
    extents = inode.overlay.extents();
    return Status::Ok();
  });
  SILTFS_RETURN_IF_ERROR(loaded);
  // The number of steps is limited because a steady writer adds work. Its own writes fold the file,
  // too.
  for (uint64_t step = 0; step < 16 + extents / kLeastPerStep; ++step) {
    SILTFS_ASSIGN_OR_RETURN(const bool done, FoldStep(number));
    if (done) return Status::Ok();
  }
  return Status(StatusCode::kInUse, "it changes as fast as it is folded");
}

void FileSystemImpl::FoldAndLog(InodeNumber number) {
  if (options_.read_only) return;
  // A failed fold loses nothing; the file only takes more space.
  Status status = FoldInSteps(number);
  if (status.Is(StatusCode::kNoSpace)) {
    folds_wait_for_room_ = true;
    return;
  }
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
    if (!scanned.ok() || !found) return;  // other files are folded when they are next used
    bool in_use;
    {
      InodePtr inode = inodes_.Get(*found);
      in_use = inode->open_count > 0;
    }
    if (!in_use) FoldAndLog(*found);
    if (UnderPressure()) RelievePressure();
    next = RangeOf(Table::kOverlay, *found).end;
    MutexLock lock(maintenance_mutex_);
    if (stopping_) return;
  }
}

Status FileSystemImpl::Fsync(InodeNumber number) {
  uint64_t last_apply = 0;
  SILTFS_RETURN_IF_ERROR(WithLoaded(number, false, [&last_apply](const Inode& inode) {
    last_apply = inode.last_apply;
    return Status::Ok();
  }));
  // An evicted inode has lost last_apply, but its last change may still be in the open group.
  return last_apply > 0 ? metadata_->Commit(last_apply) : metadata_->CommitAll();
}

Status FileSystemImpl::SyncAll() { return metadata_->CommitAll(); }

}  // namespace siltfs
