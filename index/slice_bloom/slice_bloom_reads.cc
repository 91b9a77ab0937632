#include <algorithm>

#include "index/flash/channel_order.h"
#include "index/slice_bloom/slice_bloom_impl.h"

namespace siltfs {
class SliceBloomImpl::FindBatch final : public LookupBatch<SliceBloomLookup> {
 public:
  FindBatch(SliceBloomImpl& bloom, std::span<const uint64_t> names,
            std::vector<std::vector<SegmentId>>& segments)
      : bloom_(bloom), names_(names), segments_(segments), pin_(bloom.files_.Pin()) {
    if (names.size() > kFewLookups && bloom.options_.channels > 0) SpreadOut();
  }
  ~FindBatch() override {
    bloom_.flash_reads_ += pages_read_;
    bloom_.damaged_pages_ += damaged_pages_;
  }

  size_t size() const override { return names_.size(); }
  SliceBloomLookup Prepare(size_t i) override {
    return {bloom_.HashOf(names_[NameNumber(i)]), bloom_.filter_shape_};
  }
  void Begin(SliceBloomLookup& lookup) override {
    ReaderLock lock(bloom_.mutex_);
    const size_t partition = bloom_.PartitionOf(lookup.hash());
    lookup.Begin(bloom_.files_, bloom_.partitions_[partition],
                 {.groups = bloom_.groups_.size(),
                  .in_memory = bloom_.present_filters_[partition].MayHave(lookup.hash()),
                  .moves = bloom_.moves_});
  }
  void End(size_t i, const SliceBloomLookup& lookup) override {
    pages_read_ += lookup.pages_read();
    damaged_pages_ += lookup.damaged_pages();
    if (!lookup.status().ok() && status_.ok()) status_ = lookup.status();
    AddSegments(lookup, segments_[NameNumber(i)]);
  }

  Status TakeStatus() { return std::move(status_); }

 private:
  size_t NameNumber(size_t i) const { return order_.empty() ? i : order_[i]; }
  void SpreadOut();
  void AddSegments(const SliceBloomLookup& lookup, std::vector<SegmentId>& segments) const;

  SliceBloomImpl& bloom_;
  const std::span<const uint64_t> names_;
  std::vector<std::vector<SegmentId>>& segments_;
  const PageFiles::FilePin pin_;
  std::vector<uint32_t> order_;  // of the lookups, as numbers of names; empty: as they come
  uint64_t pages_read_ = 0;
  uint64_t damaged_pages_ = 0;
  Status status_;
};

// Spreads the lookups over the channels of their first pages.
void SliceBloomImpl::FindBatch::SpreadOut() {
  std::vector<uint32_t> channel_of_name(names_.size(), kNoChannel);
  const uint32_t chunk_pages = std::max(bloom_.options_.chunk_pages, 1U);
  ReaderLock lock(bloom_.mutex_);
  for (size_t i = 0; i < names_.size(); ++i) {
    const uint64_t hash = bloom_.HashOf(names_[i]);
    const SliceFilters& filters = *bloom_.partitions_[bloom_.PartitionOf(hash)];
    if (filters.empty() || filters.back().first.value == 0) continue;
    bloom_.filter_shape_.ForEachBit(hash, [&](uint32_t position) {
      channel_of_name[i] = filters.back().PageOf(position) / chunk_pages % bloom_.options_.channels;
      return false;
    });
  }
  order_ = SpreadOverChannels(channel_of_name, bloom_.options_.channels);
}

// The group that was in memory when the lookup began may have ended meanwhile. A segment that has
// left its group meanwhile is in that group or in a later one.
void SliceBloomImpl::FindBatch::AddSegments(const SliceBloomLookup& lookup,
                                            std::vector<SegmentId>& segments) const {
  const auto add = [&](const SliceBloomGroup& group) {
    for (const auto& member : group.members) segments.push_back(member.segment);
  };
  const SliceBloomLookup::Moment& began = lookup.moment();
  ReaderLock lock(bloom_.mutex_);
  const bool moved = began.moves != bloom_.moves_;
  if (moved) {
    add(bloom_.present_);
    for (uint64_t group = bloom_.groups_.size(); group-- > began.groups;)
      add(bloom_.groups_[group]);
  } else if (began.in_memory) {
    add(began.groups < bloom_.groups_.size() ? bloom_.groups_[began.groups] : bloom_.present_);
  }
  const uint64_t end = moved || began.in_memory ? began.groups : bloom_.groups_.size();
  for (const auto& [filter, column] : lookup.found()) {
    const uint64_t group = uint64_t{filter} * bloom_.header_.shape.groups_per_filter + column;
    // The column of the present group may be there before its end.
    if (group < end) add(bloom_.groups_[group]);
  }
}

Status SliceBloomImpl::Find(std::span<const uint64_t> names,
                            std::vector<std::vector<SegmentId>>& segments) {
  segments.assign(names.size(), {});
  FindBatch batch(*this, names, segments);
  SILTFS_RETURN_IF_ERROR(RunBatch(batch, readers_));
  return batch.TakeStatus();
}

bool SliceBloomImpl::Covers(SegmentId segment) const {
  ReaderLock lock(mutex_);
  return group_of_.contains(segment);
}

std::vector<SegmentId> SliceBloomImpl::Segments() const {
  std::vector<SegmentId> segments;
  ReaderLock lock(mutex_);
  segments.reserve(group_of_.size());
  for (const auto& [segment, group] : group_of_) segments.push_back(segment);
  return segments;
}

}  // namespace siltfs
