#include <algorithm>
#include <set>
#include <utility>

#include "index/flash/payload_pages.h"
#include "index/flash/store_files.h"
#include "index/slice_bloom/slice_bloom_impl.h"

namespace siltfs {
namespace {

// So many slicefilters are written between two commits, which remove the old ones.
constexpr size_t kColumnsPerCommit = 16;
// A group is sparse if it has lost all but one of so many names.
constexpr uint64_t kSparse = 4;

}  // namespace

Status SliceBloomImpl::StopUnlessNoSpace(Status status) {
  if (status.ok() || status.Is(StatusCode::kNoSpace)) return status;
  stopped_ = status;
  stopped_.IgnoreError("the next write returns it");
  return status;
}

Status SliceBloomImpl::CheckWritable() const {
  if (options_.read_only) return {StatusCode::kReadOnly, "the SliceBloom was opened read-only"};
  if (closed_) return {StatusCode::kInvalidArgument, "the SliceBloom is closed"};
  return stopped_;
}

Status SliceBloomImpl::Add(SegmentId segment, std::span<const uint64_t> names) {
  MutexLock write_lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  if (segment == kNoSegment || names.size() > UINT32_MAX) {
    return {StatusCode::kInvalidArgument, "these are no names of a segment"};
  }
  std::vector<uint64_t> hashes;
  hashes.reserve(names.size());
  for (const uint64_t name : names) hashes.push_back(HashOf(name));
  bool repeated = false;
  bool full = false;
  {
    WriterLock lock(mutex_);
    const auto found = group_of_.find(segment);
    const bool in_present = found != group_of_.end() && found->second == kPresent;
    // The group has ended, but the commit found no space.
    repeated = found != group_of_.end() && !in_present && found->second >= committed_groups_;
    if (!repeated) {
      // The repetition of an Add that could not end the group adds nothing.
      if (!in_present) EnterMember(segment, static_cast<uint32_t>(names.size()));
      for (const uint64_t hash : hashes) AddToPresent(hash);
      full = present_.names >= header_.shape.names_per_group;
    }
  }
  if (repeated) return StopUnlessNoSpace(Commit());
  return full ? StopUnlessNoSpace(EndPresent()) : Status::Ok();
}

void SliceBloomImpl::AddToPresent(uint64_t hash) {
  BloomFilter& filter = present_filters_[PartitionOf(hash)];
  if (filter.MayHave(hash)) return;
  filter.Add(hash);
  written_columns_ = 0;
  unsaved_ = true;
}

// Makes the segment a member of the present group.
void SliceBloomImpl::EnterMember(SegmentId segment, uint32_t names) {
  if (group_of_.contains(segment)) ++moves_;
  Leave(segment);
  present_.members.push_back({segment, names});
  present_.names += names;
  group_of_[segment] = kPresent;
  unsaved_ = true;
}

Status SliceBloomImpl::EndGroup() {
  MutexLock write_lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  return StopUnlessNoSpace(EndPresent());
}

Status SliceBloomImpl::EndPresent() {
  uint64_t group = 0;
  size_t partitions = 0;
  bool any = false;
  {
    ReaderLock lock(mutex_);
    any = !present_.members.empty();
    group = groups_.size();
    partitions = partitions_.size();
  }
  if (!any) return Commit();  // an earlier commit may have failed
  while (written_columns_ < partitions) {
    Status written = WriteColumn(written_columns_, group);
    if (written.Is(StatusCode::kNoSpace)) {
      // The commit frees the space of the slicefilters that were replaced.
      SILTFS_RETURN_IF_ERROR(Commit());
      written = WriteColumn(written_columns_, group);
    }
    SILTFS_RETURN_IF_ERROR(written);
    ++written_columns_;
    if (written_columns_ % kColumnsPerCommit == 0 && written_columns_ < partitions) {
      SILTFS_RETURN_IF_ERROR(Commit());
    }
  }
  ReleaseSaved();
  {
    WriterLock lock(mutex_);
    for (const auto& member : present_.members) {
      group_of_[member.segment] = static_cast<uint32_t>(group);
    }
    groups_.push_back(std::exchange(present_, {}));
    header_.groups = groups_.size();
    present_filters_.assign(partitions, BloomFilter(filter_shape_));
  }
  written_columns_ = 0;
  unsaved_ = false;
  changed_groups_.push_back(group);
  changed_ = true;
  return Commit();
}

// Adds the present group to the newest slicefilter of a partition.
Status SliceBloomImpl::WriteColumn(size_t partition, uint64_t group) {
  const PageFiles::FilePin pin = files_.Pin();
  const auto per_filter = header_.shape.groups_per_filter;
  const size_t number = group / per_filter;
  SliceFilters filters;
  BloomFilter present(filter_shape_);
  {
    ReaderLock lock(mutex_);
    filters = *partitions_[partition];
    present = present_filters_[partition];
  }
  if (number == filters.size()) filters.emplace_back();
  const SliceFilter old = filters[number];
  uint64_t damaged_pages = 0;
  SILTFS_ASSIGN_OR_RETURN(
      filters[number],
      WriteSliceFilter(files_, kFilterLog, old, static_cast<uint32_t>(group % per_filter), present,
                       damaged_pages));
  damaged_pages_ += damaged_pages;
  auto made = std::make_shared<const SliceFilters>(std::move(filters));
  {
    WriterLock lock(mutex_);
    partitions_[partition].swap(made);
  }
  if (old.first.value != 0) {
    files_.Release(old.first,
                   SliceFilter::Pages(static_cast<uint32_t>(filter_shape_.bits()), old.columns));
  }
  changed_partitions_.push_back(partition);
  changed_ = true;
  return Status::Ok();
}

// Takes a segment out of its group.
void SliceBloomImpl::Leave(SegmentId segment) {
  const auto found = group_of_.find(segment);
  if (found == group_of_.end()) return;
  const uint32_t number = found->second;
  group_of_.erase(found);
  SliceBloomGroup& group = number == kPresent ? present_ : groups_[number];
  std::erase_if(group.members, [&](const auto& member) { return member.segment == segment; });
  if (number == kPresent) {
    unsaved_ = true;
    return;
  }
  changed_groups_.push_back(number);
  changed_ = true;
}

Status SliceBloomImpl::Remove(SegmentId segment) {
  MutexLock write_lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  WriterLock lock(mutex_);
  Leave(segment);
  return Status::Ok();  // the next commit records it
}

std::vector<SegmentId> SliceBloomImpl::Sparse() const {
  std::vector<SegmentId> segments;
  ReaderLock lock(mutex_);
  for (const SliceBloomGroup& group : groups_) {
    if (group.MemberNames() >= group.names / kSparse) continue;
    for (const auto& member : group.members) segments.push_back(member.segment);
  }
  return segments;
}

// Releases slicefilters that have all their columns and no group with segments.
void SliceBloomImpl::ReleaseFiltersOf(uint64_t filter) {
  const uint64_t per_filter = header_.shape.groups_per_filter;
  const auto positions = static_cast<uint32_t>(filter_shape_.bits());
  WriterLock lock(mutex_);
  const uint64_t begin = filter * per_filter;
  if (begin + per_filter > groups_.size()) return;
  for (uint64_t group = begin; group < begin + per_filter; ++group) {
    if (!groups_[group].members.empty()) return;
  }
  for (size_t partition = 0; partition < partitions_.size(); ++partition) {
    SliceFilters filters = *partitions_[partition];
    SliceFilter& empty = filters[filter];
    if (empty.first.value == 0) continue;
    files_.Release(empty.first, SliceFilter::Pages(positions, empty.columns));
    empty.first = {};
    partitions_[partition] = std::make_shared<const SliceFilters>(std::move(filters));
    changed_partitions_.push_back(partition);
  }
}

void SliceBloomImpl::ReleaseSaved() {
  if (!saved_) return;
  files_.Release(saved_->first, PayloadPages(FilterBytes() << header_.shape.partition_bits));
  saved_.reset();
  changed_ = true;
}

// --- Commits ---

Status SliceBloomImpl::Commit() {
  for (const uint64_t group : std::set<uint64_t>(changed_groups_.begin(), changed_groups_.end())) {
    ReleaseFiltersOf(group / header_.shape.groups_per_filter);
  }
  if (!changed_) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(files_.Sync());
  const Status committed = UnlessNoFiles(state_.Commit(ChangesSinceCommit()));
  state_bytes_written_ = state_.bytes_written();
  state_memory_ = state_.memory_bytes();
  SILTFS_RETURN_IF_ERROR(committed);
  changed_partitions_.clear();
  changed_groups_.clear();
  changed_ = false;
  committed_groups_ = header_.groups;
  return files_.Committed();
}

StateMap::Changes SliceBloomImpl::ChangesSinceCommit() const {
  StateMap::Changes changes;
  changes.emplace_back(kSliceBloomHeaderRecord, EncodeSliceBloomHeader(header_));
  if (saved_) {
    changes.emplace_back(kSavedGroupRecord, EncodeSavedGroup(*saved_));
  } else {
    changes.emplace_back(kSavedGroupRecord, std::nullopt);
  }
  ReaderLock lock(mutex_);
  for (const uint64_t group : std::set<uint64_t>(changed_groups_.begin(), changed_groups_.end())) {
    changes.emplace_back(GroupRecordOf(group), EncodeGroup(groups_[group]));
  }
  for (const size_t partition :
       std::set<size_t>(changed_partitions_.begin(), changed_partitions_.end())) {
    changes.emplace_back(FiltersRecordOf(partition), EncodeSliceFilters(*partitions_[partition]));
  }
  for (auto& [id, state] : files_.changes()) {
    changes.emplace_back(SliceBloomFileRecordOf(id), std::move(state));
  }
  return changes;
}

}  // namespace siltfs
