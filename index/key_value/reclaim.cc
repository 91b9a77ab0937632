// KeyValueStore::Reclaim: frees the space of values that are no longer in use.
//
// A record is live if the index has an entry with its name and its location. A dead record stays
// dead, because locations are never reused. Reclaim appends each live record again and enters the
// new location; no Put or Delete runs between these two steps. Reclaim removes the segment when the
// new entries are durable. If a lookup finds that the segment of its record was removed, it looks
// the name up again.
#include <algorithm>

#include "index/key_value/key_value_store.h"

namespace siltfs {

// The live share of each segment, in bytes of records, or in numbers of records if slots hold no
// item sizes.
class KeyValueStore::LiveBytes {
 public:
  explicit LiveBytes(const std::vector<ValueLog::SegmentInfo>& segments) {
    for (const auto& segment : segments) live_.push_back({segment.id, 0});
  }

  void Add(const SlotEntry& entry) {
    const auto at = std::ranges::lower_bound(live_, entry.location.segment, {}, &Segment::id);
    if (at != live_.end() && at->id == entry.location.segment) at->live += WeightOf(entry);
  }

  // `segment` must be one of those passed to the constructor.
  double ShareOf(const ValueLog::SegmentInfo& segment, bool by_bytes) const {
    const auto at = std::ranges::lower_bound(live_, segment.id, {}, &Segment::id);
    const uint64_t all = by_bytes ? segment.plain_bytes : segment.records;
    return all == 0 ? 0 : static_cast<double>(at->live) / static_cast<double>(all);
  }

 private:
  struct Segment {
    SegmentId id = kNoSegment;
    uint64_t live = 0;
  };

  static uint64_t WeightOf(const SlotEntry& entry) {
    if (entry.rest.empty()) return 1;
    const auto size = ItemSizeOf(entry.rest);
    size.status().IgnoreError(
        "a damaged slot counts as nothing in use; its record is moved all the same");
    return size.ok() && *size > entry.rest.size() ? *size - entry.rest.size() : 0;
  }

  std::vector<Segment> live_;  // rising by id
};

Result<ReclaimResult> KeyValueStore::Reclaim(const ReclaimOptions& options) {
  if (!(options.most_in_use >= 0 && options.most_in_use <= 1)) {
    return Status(StatusCode::kInvalidArgument, "most_in_use must be between 0 and 1");
  }
  MutexLock lock(reclaim_mutex_);
  {
    MutexLock write_lock(write_mutex_);
    SILTFS_RETURN_IF_ERROR(CheckWritable());
    SILTFS_RETURN_IF_ERROR(values_->SealOpenSegment());
  }
  std::vector<ValueLog::SegmentInfo> segments = values_->segments();
  std::erase_if(segments, [](const auto& segment) { return segment.open; });
  LiveBytes live(segments);
  SILTFS_RETURN_IF_ERROR(engine_->ForEach([&](const OrderKey&, const SlotEntry& entry) {
    live.Add(entry);
    return Status::Ok();
  }));
  const auto is_small = [this](const ValueLog::SegmentInfo& segment) {
    return segment.bytes < options_.values.segment_bytes / 8;
  };
  const auto small = static_cast<size_t>(std::ranges::count_if(segments, is_small));
  ReclaimResult result;
  std::vector<ValueLog::SegmentInfo> emptied;
  for (const auto& segment : segments) {
    const bool is_one_of_many = small > options.most_small_segments && is_small(segment);
    const double in_use = live.ShareOf(segment, layout_.rest_size() > 0);
    if (in_use > options.most_in_use && !is_one_of_many) continue;
    SILTFS_ASSIGN_OR_RETURN(const uint64_t damaged, MoveLiveRecords(segment.id, result));
    if (damaged == 0) {
      emptied.push_back(segment);
    } else {
      ++result.segments_damaged;
    }
  }
  SILTFS_RETURN_IF_ERROR(Flush());
  for (const auto& segment : emptied) {
    SILTFS_RETURN_IF_ERROR(values_->Remove(segment.id));
    ++result.segments_removed;
    result.bytes_removed += segment.bytes;
  }
  return result;
}

// Appends the live records of the segment again. Returns the number of damaged stretches in the
// segment. Live records in these stretches are lost, but the segment and their entries are kept.
Result<uint64_t> KeyValueStore::MoveLiveRecords(SegmentId segment, ReclaimResult& result) {
  return values_->ForEachRecord(
      segment, [&](const ChunkName& name, const Location& location, ByteView bytes) -> Status {
        MutexLock lock(write_mutex_);
        SILTFS_RETURN_IF_ERROR(CheckWritable());
        SILTFS_ASSIGN_OR_RETURN(const auto found, Find(name));
        if (!found || found->location != location) return Status::Ok();
        SILTFS_ASSIGN_OR_RETURN(const Location moved, values_->Append(name, bytes));
        ++result.records_moved;
        return Enter({{.name = name, .location = moved}, found->rest});
      });
}

}  // namespace siltfs
