#include <algorithm>
#include <utility>

#include "fs/mark/mark.h"
#include "fs/mark/reference_walk.h"

namespace siltfs {
namespace {

constexpr uint32_t kFree = UINT32_MAX;

}  // namespace

void SegmentMark::Add(SegmentId segment, std::span<const FooterChunk> chunks) {
  marked_ = false;
  const auto first = static_cast<uint32_t>(prefixes_.size());
  segments_.push_back({segment, first, static_cast<uint32_t>(chunks.size())});
  prefixes_.reserve(prefixes_.size() + chunks.size());
  for (const FooterChunk& chunk : chunks) {
    if (chunk == FooterChunk{}) lost_.push_back(static_cast<uint32_t>(prefixes_.size()));
    prefixes_.push_back(chunk.name_prefix);
  }
}

size_t SegmentMark::PlaceOf(uint64_t prefix) const { return (prefix >> 32) * table_.size() >> 32; }

void SegmentMark::BuildTable() {
  table_.assign(prefixes_.size() + prefixes_.size() / 2 + 1, kFree);
  for (uint32_t chunk = 0; chunk < prefixes_.size(); ++chunk) {
    size_t at = PlaceOf(prefixes_[chunk]);
    while (table_[at] != kFree) at = at + 1 == table_.size() ? 0 : at + 1;
    table_[at] = chunk;
  }
}

void SegmentMark::ForEachWith(uint64_t prefix,
                              const std::function<void(uint32_t chunk)>& visit) const {
  for (size_t at = PlaceOf(prefix); table_[at] != kFree;
       at = at + 1 == table_.size() ? 0 : at + 1) {
    if (prefixes_[table_[at]] == prefix) visit(table_[at]);
  }
}

// Marks all chunks with this prefix as live, because several chunks may have the same name.
void SegmentMark::SetLive(uint64_t prefix) {
  for (size_t at = PlaceOf(prefix); table_[at] != kFree;
       at = at + 1 == table_.size() ? 0 : at + 1) {
    if (prefixes_[table_[at]] == prefix) live_[table_[at]] = true;
  }
}

void SegmentMark::SetBase(const ChunkName& name) {
  ForEachWith(name.Prefix64(), [this](uint32_t chunk) { live_[chunk] = base_[chunk] = true; });
}

void SegmentMark::ForEachDead(const ChunkName& name,
                              const std::function<void(SegmentId)>& visit) const {
  if (!marked_) return;  // all chunks count as live
  ForEachWith(name.Prefix64(), [&](uint32_t chunk) {
    if (live_[chunk]) return;
    for (const Segment& added : segments_) {
      if (chunk >= added.first && chunk - added.first < added.count) visit(added.id);
    }
  });
}

Status SegmentMark::Mark(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace,
                         const std::function<void(const ChunkName&)>& visit,
                         const std::function<Status()>& more) {
  marked_ = false;
  live_.assign(prefixes_.size(), false);
  base_.assign(prefixes_.size(), false);
  for (const uint32_t chunk : lost_) live_[chunk] = true;
  BuildTable();
  Status walked = ForEachReference(metadata, nodes, pace, [&](const ChunkName& name) {
    SetLive(name.Prefix64());
    if (visit) visit(name);
    return Status::Ok();
  });
  marked_ = walked.ok();
  if (!marked_ || !more) return walked;
  Status added = more();
  marked_ = added.ok();
  return added;
}

const SegmentMark::Segment* SegmentMark::Find(SegmentId segment) const {
  const auto found = std::find_if(segments_.begin(), segments_.end(),
                                  [&](const Segment& added) { return added.id == segment; });
  return found == segments_.end() ? nullptr : &*found;
}

bool SegmentMark::Get(const std::vector<bool>& chunks, SegmentId segment, uint32_t ordinal) const {
  const Segment* const added = Find(segment);
  if (!marked_ || added == nullptr || ordinal >= added->count) return true;
  return chunks[added->first + ordinal];
}

bool SegmentMark::IsLive(SegmentId segment, uint32_t ordinal) const {
  return Get(live_, segment, ordinal);
}

bool SegmentMark::IsBase(SegmentId segment, uint32_t ordinal) const {
  return Get(base_, segment, ordinal);
}

uint32_t SegmentMark::LiveCount(SegmentId segment) const {
  const Segment* const added = Find(segment);
  if (added == nullptr) return UINT32_MAX;
  if (!marked_) return added->count;
  const auto first = live_.begin() + added->first;
  return static_cast<uint32_t>(std::count(first, first + added->count, true));
}

}  // namespace siltfs
