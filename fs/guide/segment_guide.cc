#include "fs/guide/segment_guide.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "store/env/files.h"

namespace siltfs {

SegmentGuide::SegmentGuide(Options options) : options_(std::move(options)) {}

SegmentGuide::~SegmentGuide() = default;

void SegmentGuide::Report(const std::string& sentence) const {
  if (options_.report) options_.report(sentence);
}

Status SegmentGuide::OpenFilters(Env& env) {
  SliceBloomOptions filters = options_.filters;
  filters.directory = options_.directory;
  filters.read_only = options_.read_only;
  const auto info = env.GetFileInfo(options_.directory);
  const bool there = info.ok() && info->type == FileType::kDirectory;
  if (options_.read_only && info.status().Is(StatusCode::kNotFound))
    return {StatusCode::kNotFound, "there is no segment guide"};
  if (!options_.read_only && !there)
    SILTFS_RETURN_IF_ERROR(MakeEmptyDirectory(env, options_.directory));
  auto opened = SliceBloom::Open(env, filters);
  if (opened.status().Is(StatusCode::kCorruption) && !options_.read_only) {
    Report(fmt::format("the segment guide cannot be used and is made again from the segments: {}",
                       opened.status().ToString()));
    SILTFS_RETURN_IF_ERROR(MakeEmptyDirectory(env, options_.directory));
    opened = SliceBloom::Open(env, filters);
  }
  SILTFS_ASSIGN_OR_RETURN(filters_, std::move(opened));
  return Status::Ok();
}

std::unique_ptr<SegmentGuide> SegmentGuide::Open(Env& env, Options options,
                                                 const SegmentRecords& records) {
  std::unique_ptr<SegmentGuide> guide(new SegmentGuide(std::move(options)));
  SegmentGuide& g = *guide;
  if (const Status opened = g.OpenFilters(env); !opened.ok()) {
    opened.IgnoreError("searches read all segments instead");
    if (!opened.Is(StatusCode::kNotFound)) {
      g.Report(fmt::format("chunks are searched without the segment guide: {}", opened.ToString()));
    }
  }
  std::unordered_set<SegmentId> there;
  {
    MutexLock lock(g.mutex_);
    for (const auto& [id, record] : records) {
      there.insert(id);
      if (record.chunks == 0 || (g.usable() && g.filters_->Covers(id))) continue;
      g.uncovered_[id] = record.sealed;
    }
  }
  if (g.usable() && !g.options_.read_only) {
    g.DropGone([&](SegmentId id) {
       return !there.contains(id);
     }).IgnoreError("segments that are gone cost a little space");
  }
  return guide;
}

Status SegmentGuide::Find(std::span<const uint64_t> names,
                          std::vector<std::vector<SegmentId>>& segments,
                          std::vector<SegmentId>& uncovered) {
  if (!usable()) {
    return Status(StatusCode::kNotFound, "the segment guide cannot be used").At(options_.directory);
  }
  // The list comes first: a segment that is covered meanwhile is in both.
  uncovered.clear();
  {
    MutexLock lock(mutex_);
    for (const auto& [id, waits] : uncovered_) uncovered.push_back(id);
  }
  lookups_ += names.size();
  return filters_->Find(names, segments);
}

void SegmentGuide::NoteSealed(SegmentId segment) {
  if (usable() && filters_->Covers(segment)) return;
  MutexLock lock(mutex_);
  uncovered_[segment] = true;
}

SegmentId SegmentGuide::NextWaiting() const {
  if (!usable() || options_.read_only) return kNoSegment;
  MutexLock lock(mutex_);
  if (limited_) return kNoSegment;
  for (const auto& [id, waits] : uncovered_) {
    if (waits) return id;
  }
  return kNoSegment;
}

Status SegmentGuide::Limit(Status status) {
  if (status.ok() || status.Is(StatusCode::kNoSpace)) return status;
  Report(fmt::format("the segment guide does not cover new segments: {}", status.ToString()));
  MutexLock lock(mutex_);
  limited_ = true;
  return status;
}

Status SegmentGuide::Cover(SegmentId segment, std::span<const uint64_t> names) {
  SILTFS_RETURN_IF_ERROR(Limit(filters_->Add(segment, names)));
  MutexLock lock(mutex_);
  uncovered_.erase(segment);
  return Status::Ok();
}

void SegmentGuide::GiveUp(SegmentId segment) {
  MutexLock lock(mutex_);
  const auto found = uncovered_.find(segment);
  if (found != uncovered_.end()) found->second = false;
}

Status SegmentGuide::DropGone(const std::function<bool(SegmentId)>& gone) {
  {
    MutexLock lock(mutex_);
    std::erase_if(uncovered_, [&](const auto& segment) { return gone(segment.first); });
  }
  for (const SegmentId id : filters_->Segments()) {
    if (gone(id)) SILTFS_RETURN_IF_ERROR(Limit(filters_->Remove(id)));
  }
  const std::vector<SegmentId> sparse = filters_->Sparse();
  MutexLock lock(mutex_);
  for (const SegmentId id : sparse) uncovered_[id] = true;
  return Status::Ok();
}

Status SegmentGuide::Verify(const std::function<void(const std::string&)>& report) {
  return usable() ? filters_->Verify(report) : Status::Ok();
}

SegmentGuideStats SegmentGuide::stats() const {
  SegmentGuideStats stats;
  if (usable()) stats.filters = filters_->stats();
  stats.lookups = lookups_;
  MutexLock lock(mutex_);
  stats.uncovered = uncovered_.size();
  return stats;
}

Status SegmentGuide::Close() {
  if (!usable() || options_.read_only) return Status::Ok();
  return filters_->Close();
}

}  // namespace siltfs
