#include "fs/ops/fold_ops.h"

#include <fmt/format.h>

#include <algorithm>

namespace siltfs {

Status FoldOps::FoldLocked(Inode& inode, FileContent::FoldMode mode) {
  SILTFS_RETURN_IF_ERROR(inodes_.LoadContent(inode));
  if (!inode.record.IsRegular() || FileContent::IsFolded(inode.record)) return Status::Ok();
  const ContentTally before(inode.record);
  Change change;
  SILTFS_RETURN_IF_ERROR(changes_.Join(inode, change));
  SILTFS_RETURN_IF_ERROR(content_.Fold(inode.record, inode.overlay, mode));
  change.SaveContent(inode, before);
  return changes_.ApplyJoined(inode, change);
}

Status FoldOps::FoldSomeLocked(Inode& inode, FileContent::FoldMode mode) {
  SILTFS_RETURN_IF_ERROR(inodes_.LoadContent(inode));
  if (!inode.record.IsRegular() || FileContent::IsFolded(inode.record)) return Status::Ok();
  const ContentTally before(inode.record);
  Change change;
  SILTFS_RETURN_IF_ERROR(changes_.Join(inode, change));
  const uint64_t plain_before = inode.overlay.plain_bytes();
  SILTFS_ASSIGN_OR_RETURN(inode.fold_from,
                          content_.FoldSome(inode.record, inode.overlay, inode.fold_from, mode));
  CountFresh(inode, plain_before, *change.commit());
  change.SaveContent(inode, before);
  return changes_.ApplyJoined(inode, change);
}

void FoldOps::CountFresh(Inode& inode, uint64_t plain_before, uint64_t commit) {
  if (inode.fresh_commit != commit) inode.fresh_raw_bytes = 0;
  inode.fresh_commit = commit;
  const uint64_t plain = inode.overlay.plain_bytes();
  if (plain >= plain_before) {
    inode.fresh_raw_bytes += plain - plain_before;
  } else {
    inode.fresh_raw_bytes -= std::min(inode.fresh_raw_bytes, plain_before - plain);
  }
}

bool FoldOps::NeedsFold(const InodeRecord& record) {
  return record.IsRegular() && record.links > 0 && !FileContent::IsFolded(record);
}

// After a failed change the inode may have to be loaded again. If loading fails, this file is not
// folded: it was removed, or the next operation on it returns the error.
bool FoldOps::NeedsFold(Inode& inode) {
  return inodes_.LoadRecord(inode).ok() && NeedsFold(inode.record);
}

Result<bool> FoldOps::FoldStep(InodeNumber number) {
  const ChunkStore::Use use(store_.chunks());
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadContent(*inode));
  if (FileContent::FoldsAtOnce(inode->overlay)) {
    SILTFS_RETURN_IF_ERROR(FoldLocked(*inode, FileContent::FoldMode::kAll));
    return true;
  }
  SILTFS_RETURN_IF_ERROR(FoldSomeLocked(*inode, FileContent::FoldMode::kAll));
  return false;
}

Status FoldOps::FoldInSteps(InodeNumber number) {
  constexpr uint64_t kLeastPerStep = 16;
  uint64_t extents = 0;
  Status loaded = inodes_.WithLoaded(number, true, [&extents](const Inode& inode) {
    extents = inode.overlay.extents();
    return Status::Ok();
  });
  SILTFS_RETURN_IF_ERROR(loaded);
  // The number of steps is limited because a steady writer could add work without end. Its writes
  // fold the file, too (WriteOps::ApplyContent).
  for (uint64_t step = 0; step < 16 + extents / kLeastPerStep; ++step) {
    SILTFS_ASSIGN_OR_RETURN(const bool done, FoldStep(number));
    if (done) return Status::Ok();
  }
  return Status(StatusCode::kInUse, "it changes as fast as it is folded");
}

Status FoldOps::FoldForCopy(InodeNumber number) {
  bool regular = false;
  Status known = inodes_.WithLoaded(number, false, [&regular](const Inode& inode) {
    regular = inode.record.IsRegular();
    return Status::Ok();
  });
  SILTFS_RETURN_IF_ERROR(known);
  if (!regular) return Status::Ok();  // CopyRange checks again under the lock, and refuses
  Status folded = FoldInSteps(number);
  return folded.Is(StatusCode::kInUse) ? Status::Ok() : folded;
}

void FoldOps::FoldAndLog(InodeNumber number) {
  if (store_.options().read_only) return;
  // If the fold fails, the file keeps its content and only takes more space.
  Status status = FoldInSteps(number);
  if (status.Is(StatusCode::kNoSpace)) {
    wait_for_room_ = true;
    return;
  }
  const auto& report = store_.options().report;
  const bool expected = status.Is(StatusCode::kStale) || status.Is(StatusCode::kInterrupted);
  if (!status.ok() && !expected && report) {
    report(fmt::format("inode {} was not folded: {}", number, status.ToString()));
  }
}

}  // namespace siltfs
