#include "fs/chunks/secondary_copies.h"

#include "fs/records/schema.h"

namespace siltfs {

SecondaryCopies::SecondaryCopies(std::vector<SegmentId> noted, CommitPort* metadata)
    : metadata_(metadata), set_(noted) {
  MutexLock lock(mutex_);
  for (const SegmentId segment : noted) noted_.emplace(segment, Noted());
}

Status SecondaryCopies::Write(const std::vector<Mutation>& mutations) {
  if (metadata_ == nullptr || mutations.empty()) return Status::Ok();
  return metadata_->WriteThrough(mutations);
}

std::vector<SegmentId> SecondaryCopies::All() const {
  MutexLock lock(mutex_);
  std::vector<SegmentId> segments;
  for (const auto& [segment, when] : noted_) segments.push_back(segment);
  return segments;
}

uint64_t SecondaryCopies::Now() const {
  MutexLock lock(mutex_);
  return now_;
}

Status SecondaryCopies::Note(std::span<const SegmentId> segments) {
  return Enter(segments, /*compare=*/false);
}

Status SecondaryCopies::NoteVictims(std::span<const SegmentId> segments) {
  return Enter(segments, /*compare=*/true);
}

Status SecondaryCopies::Enter(std::span<const SegmentId> segments, bool compare) {
  MutexLock lock(mutex_);
  std::vector<Mutation> news;
  for (const SegmentId segment : segments) {
    const auto noted = noted_.find(segment);
    if (noted != noted_.end() && (noted->second.compare || !compare)) continue;
    news.push_back({SecondaryKey(segment), std::string(compare ? kVictimNote : kPlainNote)});
  }
  SILTFS_RETURN_IF_ERROR(Write(news));
  ++now_;
  for (const SegmentId segment : segments) {
    Noted& noted = noted_[segment];
    noted.when = now_;
    noted.compare |= compare;
    set_.Add(segment);
  }
  return Status::Ok();
}

Status SecondaryCopies::CompareAfterCrash(SegmentId segment) {
  MutexLock lock(mutex_);
  const auto noted = noted_.find(segment);
  if (noted == noted_.end() || noted->second.compare) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Write({{SecondaryKey(segment), std::string(kVictimNote)}}));
  noted->second.compare = true;
  return Status::Ok();
}

Status SecondaryCopies::Compared(std::span<const SegmentId> segments) {
  MutexLock lock(mutex_);
  std::vector<Mutation> plain;
  for (const SegmentId segment : segments) {
    const auto noted = noted_.find(segment);
    if (noted != noted_.end() && noted->second.compare) continue;  // since the mount
    plain.push_back({SecondaryKey(segment), std::string(kPlainNote)});
  }
  return Write(plain);
}

Status SecondaryCopies::Forget(std::span<const SegmentId> segments, uint64_t checked) {
  MutexLock lock(mutex_);
  std::vector<Mutation> gone;
  std::vector<SegmentId> forgotten;
  for (const SegmentId segment : segments) {
    const auto noted = noted_.find(segment);
    if (noted == noted_.end() || noted->second.when > checked) continue;
    gone.push_back({SecondaryKey(segment), std::nullopt});
    forgotten.push_back(segment);
  }
  if (gone.empty()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Write(gone));
  for (const SegmentId segment : forgotten) {
    noted_.erase(segment);
    set_.Remove(segment);
  }
  return Status::Ok();
}

void SecondaryCopies::Removed(SegmentId segment) {
  MutexLock lock(mutex_);
  noted_.erase(segment);
  set_.Remove(segment);
}

}  // namespace siltfs
