#include "fs/segments/segment_bases.h"

#include "store/segment/segment_reader.h"

namespace siltfs {

void SegmentBases::Add(const SegmentRecords& records) {
  for (const auto& [id, record] : records) {
    if (record.deltas) Add(id);
  }
}

void SegmentBases::Add(SegmentId segment) {
  MutexLock lock(mutex_);
  added_[segment] = ++now_;
}

void SegmentBases::Remove(SegmentId segment) {
  MutexLock lock(mutex_);
  added_.erase(segment);
}

bool SegmentBases::Contains(SegmentId segment) const {
  MutexLock lock(mutex_);
  return added_.contains(segment);
}

std::vector<SegmentId> SegmentBases::All() const { return AddedSince(0); }

size_t SegmentBases::size() const {
  MutexLock lock(mutex_);
  return added_.size();
}

uint64_t SegmentBases::Now() const {
  MutexLock lock(mutex_);
  return now_;
}

std::vector<SegmentId> SegmentBases::AddedSince(uint64_t when) const {
  std::vector<SegmentId> segments;
  MutexLock lock(mutex_);
  for (const auto& [segment, added] : added_) {
    if (added > when) segments.push_back(segment);
  }
  return segments;
}

Status ForEachBase(SegmentCache& segments, SegmentId segment,
                   const std::function<Status(const BaseRef&)>& visit) {
  const auto opened = segments.Open(segment);
  if (opened.status().Is(StatusCode::kNotFound)) return Status::Ok();
  if (!opened.ok()) return opened.status();
  const SegmentReader& reader = *(*opened)->reader;
  auto bases = reader.ReadBaseTable();
  if (bases.status().Is(StatusCode::kCorruption)) {
    bases.status().IgnoreError("the blocks are read instead");
    bases = reader.ScanBases();
  }
  SILTFS_RETURN_IF_ERROR(bases.status());
  for (const BaseRef& base : *bases) SILTFS_RETURN_IF_ERROR(visit(base));
  return Status::Ok();
}

}  // namespace siltfs
