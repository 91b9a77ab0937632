#include "fs/ops/write_ops.h"

#include <algorithm>

namespace siltfs {
namespace {

// When overlays take too much memory, an overlay with fewer raw bytes than this is not folded: the
// bytes are the tail of a stream, or FoldThread drops them from memory. Before a copy, the target
// is not folded if the copy is shorter than this and has few parts.
constexpr uint64_t kWorthFolding = 256u << 10;
// When a group closes, the raw bytes of its operations are written to metadata's log and tables,
// and a later fold removes them again. Folding earlier is faster. So if a file gets more raw bytes
// than this in one commit, it is folded while it is being written. Raw bytes of an earlier commit
// are in metadata already, and may wait for more writes to the same chunks.
constexpr uint64_t kMaxFreshRawBytes = 1u << 20;

}  // namespace

Status WriteOps::Write(InodeNumber number, uint64_t offset, ByteView data, Privileges privileges,
                       WriteTimes times) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(data.size()));
  SILTFS_RETURN_IF_ERROR(store_.WaitForSegmentRoom());
  InodePtr inode = inodes_.Get(number);
  const SequencedWrite turn(inode->write_sequencer, offset, data.size());
  const ChunkStore::Use use(store_.chunks());
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  // Earlier writes may have filled the disk while this write waited to be admitted. Data that is
  // accepted on a full disk could not become chunks. It would stay raw bytes, and take metadata's
  // part of the reserve.
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(0));
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadContent(*inode));
  SILTFS_RETURN_IF_ERROR(CheckRegular(inode->record));
  if (data.empty()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const auto room, Reserve(*inode, offset, data.size(), data.size()));
  const ContentTally before(inode->record);
  Change change;
  SILTFS_RETURN_IF_ERROR(changes_.Join(*inode, change));
  const uint64_t plain_before = inode->overlay.plain_bytes();
  if (offset < inode->record.size)
    store_.chunks().NoteReleased(std::min<uint64_t>(inode->record.size - offset, data.size()));
  SILTFS_RETURN_IF_ERROR(content_.Write(inode->record, inode->overlay, offset, data));
  FoldOps::CountFresh(*inode, plain_before, *change.commit());
  store_.chunks().CountWrite(data.size());
  return ApplyContent(*inode, before, change, privileges, times);
}

Status WriteOps::Allocate(InodeNumber number, AllocateMode mode, uint64_t offset, uint64_t length,
                          bool keep_size, Privileges privileges) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  if (length == 0) return Status(StatusCode::kInvalidArgument, "there is nothing to allocate");
  const ChunkStore::Use use(store_.chunks());
  if (offset > kMaxFileBytes || length > kMaxFileBytes - offset)
    return Status(StatusCode::kFileTooLarge, "the file would grow too large");
  const uint64_t end = offset + length;
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadContentAndFlush(*inode));
  InodeRecord& record = inode->record;
  SILTFS_RETURN_IF_ERROR(CheckRegular(record));
  if (mode == AllocateMode::kReserve && end > record.size) {
    SILTFS_ASSIGN_OR_RETURN(const SpaceInfo space, store_.GetContentSpace());
    if (end - std::max(offset, record.size) > space.available_bytes)
      return Status(StatusCode::kNoSpace, "the disk has less space than the range needs");
    const auto bytes = static_cast<int64_t>(end - std::max(offset, record.size));
    SILTFS_RETURN_IF_ERROR(
        store_.quotas().Reserve(record.quota, {.bytes = bytes, .files = 0}).status());
  }
  const ContentTally before(record);
  if (mode == AllocateMode::kZero) FileContent::PunchHole(record, inode->overlay, offset, length);
  if (!keep_size && end > record.size)
    SILTFS_RETURN_IF_ERROR(content_.Truncate(record, inode->overlay, end));
  Change change;
  return ApplyContent(*inode, before, change, privileges);
}

Result<uint64_t> WriteOps::CopyRange(InodeNumber source_number, uint64_t source_offset,
                                     InodeNumber target_number, uint64_t target_offset,
                                     uint64_t length, Privileges privileges) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(kBytesPerName));
  const ChunkStore::Use use(store_.chunks());
  // The long part of the folds is done here, before both files are locked.
  SILTFS_RETURN_IF_ERROR(folds_.FoldForCopy(source_number));
  if (length >= kWorthFolding) SILTFS_RETURN_IF_ERROR(folds_.FoldForCopy(target_number));
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  InodePtr source = inodes_.Get(source_number);
  InodePtr target = inodes_.Get(target_number);
  InodeLock lock({source, target}, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadContentAndFlush(*source));
  SILTFS_RETURN_IF_ERROR(inodes_.LoadContentAndFlush(*target));
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
  SILTFS_RETURN_IF_ERROR(folds_.FoldLocked(*source, FileContent::FoldMode::kAll));
  SILTFS_ASSIGN_OR_RETURN(const bool few_parts,
                          content_.HasFewParts(source->record, source_offset, length));
  if (length >= kWorthFolding || !few_parts)
    SILTFS_RETURN_IF_ERROR(folds_.FoldLocked(*target, FileContent::FoldMode::kAll));
  SILTFS_ASSIGN_OR_RETURN(const auto room,
                          ReserveForCopy(*source, source_offset, *target, target_offset, length));
  const ContentTally before(target->record);
  SILTFS_RETURN_IF_ERROR(content_.Clone(
      source->record,
      {.source_offset = source_offset, .target_offset = target_offset, .length = length},
      target->record, target->overlay));
  Change change;
  SILTFS_RETURN_IF_ERROR(ApplyContent(*target, before, change, privileges));
  return length;
}

Result<uint64_t> WriteOps::HoleBytes(const Inode& inode, uint64_t offset, uint64_t length) const {
  const InodeRecord& record = inode.record;
  const uint64_t end = std::min(offset + length, std::max(offset, record.size));
  uint64_t holes = length - (end - offset);
  for (uint64_t at = offset; at < end;) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t data, content_.FindData(record, inode.overlay, at));
    holes += std::min(data, end) - at;
    if (data >= end) break;
    SILTFS_ASSIGN_OR_RETURN(at, content_.FindHole(record, inode.overlay, data));
  }
  return holes;
}

Result<Quotas::Reservation> WriteOps::Reserve(Inode& inode, uint64_t offset, uint64_t length,
                                              uint64_t most) {
  const auto reserve = [&](uint64_t bytes) {
    return store_.quotas().Reserve(inode.record.quota,
                                   {.bytes = static_cast<int64_t>(bytes), .files = 0});
  };
  auto room = reserve(most);
  if (!room.status().Is(StatusCode::kQuotaExceeded)) return room;
  SILTFS_ASSIGN_OR_RETURN(uint64_t holes, HoleBytes(inode, offset, length));
  auto exact = reserve(std::min(holes, most));
  if (!exact.status().Is(StatusCode::kQuotaExceeded) || FileContent::IsFolded(inode.record))
    return exact;
  // A fold releases the old bytes that were overwritten, and makes holes of zeros.
  SILTFS_RETURN_IF_ERROR(folds_.FoldLocked(inode, FileContent::FoldMode::kAll));
  SILTFS_ASSIGN_OR_RETURN(holes, HoleBytes(inode, offset, length));
  return reserve(std::min(holes, most));
}

Result<Quotas::Reservation> WriteOps::ReserveForCopy(const Inode& source, uint64_t source_offset,
                                                     Inode& target, uint64_t target_offset,
                                                     uint64_t length) {
  if (store_.quotas().Existing(target.record.quota) == kNoQuota) return Quotas::Reservation();
  SILTFS_ASSIGN_OR_RETURN(const uint64_t holes, HoleBytes(source, source_offset, length));
  return Reserve(target, target_offset, length, length - holes);
}

Status WriteOps::ApplyContent(Inode& inode, const ContentTally& before, Change& change,
                              Privileges privileges, WriteTimes times) {
  if (times == WriteTimes::kNow || !inode.times_replied)
    inode.record.mtime = inode.record.ctime = store_.Now();
  inode.last_write = store_.env().MonotonicNanoseconds();
  SILTFS_RETURN_IF_ERROR(xattrs_.DropPrivileges(inode, privileges, change));
  if (change.commit() && change.mutations().empty() && !changes_.TooMuchToDefer()) {
    changes_.Defer(inode, before, change);
  } else {
    const bool joined = change.commit().has_value();
    change.SaveContent(inode, before);
    SILTFS_RETURN_IF_ERROR(joined ? changes_.ApplyJoined(inode, change) : changes_.Apply(change));
  }
  const bool pressure = overlay_memory_.UnderPressure();
  if (pressure) fold_thread_.Wake();
  const bool fold_for_room = pressure && inode.overlay.plain_bytes() >= kWorthFolding;
  // Do not fold early if there are changes beyond the end of the recipe. They may belong to a
  // stream whose earlier data has not arrived yet.
  const bool fold_before_commit =
      inode.fresh_raw_bytes > kMaxFreshRawBytes && inode.overlay.end() <= inode.record.recipe_limit;
  if (!fold_for_room && !fold_before_commit && !FileContent::NeedsFold(inode.overlay))
    return Status::Ok();
  // The change is accepted; if the fold fails, the overlay keeps its content.
  Status folded = folds_.FoldSomeLocked(inode, FileContent::FoldMode::kKeepTail);
  return folded.Is(StatusCode::kNoSpace) ? Status::Ok() : folded;
}

}  // namespace siltfs
