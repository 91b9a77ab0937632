#include "fs/gc/note_check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "fs/segments/segment_tables.h"

namespace siltfs {
namespace {

// One run compares at most this many noted segments with the index.
constexpr size_t kMostChecked = 512;

}  // namespace

NoteCheck::NoteCheck(const Dependencies& dependencies, Options options)
    : deps_(dependencies), options_(std::move(options)) {}

Status NoteCheck::Run() {
  const uint64_t begun = deps_.secondary.Now();
  SILTFS_ASSIGN_OR_RETURN(std::vector<SegmentId> segments, NextSegments());
  SILTFS_RETURN_IF_ERROR(KeepConfirmed(segments).status());
  if (segments.empty()) return Status::Ok();
  // Before the first comparison, a caller of Put may have found no entry for a chunk of these
  // segments. Then a new copy of the chunk may still be in the pipeline, and gets the index entry
  // when it is appended.
  deps_.uses.WaitForOthers();
  SILTFS_RETURN_IF_ERROR(deps_.metadata.CommitNow());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t made, KeepConfirmed(segments));
  if (segments.empty() || made > 0) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(options_.flush_index());
  const Status forgot = deps_.secondary.Forget(segments, begun);
  if (forgot.ok() || forgot.Is(StatusCode::kNoSpace)) return Status::Ok();  // retried later
  return deps_.log.Fail(forgot);
}

Result<std::vector<SegmentId>> NoteCheck::NextSegments() {
  std::vector<SegmentId> noted = deps_.secondary.All();
  std::vector<SegmentId> segments;
  if (noted.empty()) return segments;
  const std::shared_ptr<const KvSnapshot> metadata = deps_.metadata.CommittedSnapshot();
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(*metadata));
  const std::map<SegmentId, SegmentRecord> record_of(records.begin(), records.end());
  std::rotate(noted.begin(), std::lower_bound(noted.begin(), noted.end(), next_), noted.end());
  if (noted.size() > kMostChecked) noted.resize(kMostChecked);
  for (const SegmentId id : noted) {
    next_ = id + 1;
    const auto record = record_of.find(id);
    if (record == record_of.end() || !record->second.sealed || deps_.log.WriterOf(id) != nullptr)
      continue;
    if (!deps_.damage.HasAnyOf(id)) segments.push_back(id);
  }
  return segments;
}

Result<uint64_t> NoteCheck::KeepConfirmed(std::vector<SegmentId>& segments) {
  EntryCheck check(deps_.index, deps_.segments, deps_.reader, deps_.pipeline, options_.gone,
                   options_.pace, [this](SegmentId id) { return BeforeEntries(id); });
  std::vector<SegmentId> confirmed;
  for (const SegmentId id : segments) {
    SILTFS_ASSIGN_OR_RETURN(const bool leads_here, check.Check(id));
    if (leads_here) confirmed.push_back(id);
  }
  segments.swap(confirmed);
  return check.made();
}

Status NoteCheck::BeforeEntries(SegmentId segment) {
  const Status noted = deps_.secondary.CompareAfterCrash(segment);
  return noted.ok() || noted.Is(StatusCode::kNoSpace) ? noted : deps_.log.Fail(noted);
}

}  // namespace siltfs
