#include "tools/export/export_job.h"

#include <utility>

namespace siltfs {
namespace {

// Whether two neighbours of a sorted batch lie in one block, as far as is known.
bool InOneBlock(const ExportPart& a, const ExportPart& b) {
  const Location& one = a.piece.chunk.location;
  const Location& other = b.piece.chunk.location;
  return a.piece.kind == ContentPiece::Kind::kChunk && b.piece.kind == ContentPiece::Kind::kChunk &&
         one.segment != kNoSegment && one.segment == other.segment &&
         one.block_offset == other.block_offset;
}

}  // namespace

void ExportJob::AddError(const std::string& path, const Status& status) {
  ++totals_.errors;
  const MutexLock lock(report_mutex_);
  report_(path, std::string(status.cause()));
}

void ExportJob::AddError(const std::string& path, const Status& status, InodeNumber inode) {
  AddError(path, status);
  const MutexLock lock(report_mutex_);
  failed_.insert(inode);
}

void ExportJob::Fail(ExportFile& file, const Status& status) {
  if (!file.failed.exchange(true)) AddError(file.path, status, file.inode);
}

bool ExportJob::HasFailed(InodeNumber inode) const {
  const MutexLock lock(report_mutex_);
  return failed_.contains(inode);
}

void ExportJob::Post(ExportBatch batch) {
  const MutexLock lock(mutex_);
  while (!stopped_ && taken_ < batch_.size()) changed_.Wait(mutex_);
  batch_ = std::move(batch);
  taken_ = 0;
  changed_.NotifyAll();
}

void ExportJob::EndBatches() {
  const MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

std::vector<ExportPart> ExportJob::TakeSlice() {
  const MutexLock lock(mutex_);
  while (!stopped_ && taken_ == batch_.size() && !ended_) changed_.Wait(mutex_);
  std::vector<ExportPart> slice;
  uint64_t bytes = 0;
  while (!stopped_ && taken_ < batch_.size()) {
    const bool full = bytes >= kSliceBytes;
    if (full && !InOneBlock(slice.back(), batch_[taken_])) break;
    bytes += batch_[taken_].piece.length;
    slice.push_back(std::move(batch_[taken_++]));
  }
  if (taken_ == batch_.size()) changed_.NotifyAll();
  return slice;
}

void ExportJob::Stop(Status why) {
  const MutexLock lock(mutex_);
  if (outcome_.ok()) {
    outcome_ = std::move(why);
    outcome_.IgnoreError("outcome() returns it");
  } else {
    why.IgnoreError("the first reason counts");
  }
  stopped_ = true;
  changed_.NotifyAll();
}

Status ExportJob::outcome() const {
  const MutexLock lock(mutex_);
  return outcome_;
}

}  // namespace siltfs
