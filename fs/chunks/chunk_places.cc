#include "fs/chunks/chunk_places.h"

#include <utility>

namespace siltfs {

void ChunkPlaces::Damage::Note(Status status) {
  status.IgnoreError("irrelevant if the chunk is found elsewhere");
  const bool replaces = status.Is(StatusCode::kIoError) && !first_.Is(StatusCode::kIoError);
  if (!first_.ok() && !replaces) return;
  first_ = std::move(status);
  first_.IgnoreError("as before");
}

ChunkPlaces::ChunkPlaces(SegmentCache& segments, ChunkIndex& index, FooterCache& windows,
                         const DamageList& damage, SegmentGuide* guide,
                         std::vector<IndexEntry> unindexed)
    : segments_(segments),
      index_(index),
      windows_(windows),
      damage_(damage),
      search_(segments, guide) {
  for (const IndexEntry& entry : unindexed) unindexed_[entry.name] = entry.location;
}

std::optional<FooterCache::Hit> ChunkPlaces::FindInWindows(const ChunkName& name) {
  auto hit = windows_.Find(name);
  if (hit && damage_.Contains(hit->segment, hit->ordinal)) return std::nullopt;
  return hit;
}

bool ChunkPlaces::Visit(const ChunkName& name, Effort effort, const Companions& companions,
                        const Try& attempt, Damage& damage) {
  const auto is_at = [&](const Location& location, bool offset_known) {
    const auto there = attempt(location, offset_known);
    if (there.ok()) return *there;
    damage.Note(there.status());
    return false;
  };
  // Skip a damaged place in the footer cache: once a chunk is healed, the index leads to the
  // undamaged copy.
  if (const auto hit = FindInWindows(name)) {
    if (is_at({hit->segment, hit->ordinal, 0}, false)) return true;
  }
  if (auto extra = unindexed_.find(name); extra != unindexed_.end()) {
    if (is_at(extra->second, true)) return true;
  }
  const auto location = index_.Get(name);
  if (!location.ok()) {
    location.status().IgnoreError("the segments are searched");
  } else if (*location && is_at(**location, true)) {
    LoadWindow((*location)->segment, (*location)->ordinal);
    return true;
  }
  const std::optional<Location> led_to = location.ok() ? *location : std::nullopt;
  return SearchSegments(
      name, effort, [&] { return companions(led_to); }, attempt, damage);
}

bool ChunkPlaces::SearchSegments(const ChunkName& name, Effort effort,
                                 const std::function<std::vector<uint64_t>()>& companions,
                                 const Try& attempt, Damage& damage) {
  using Extent = SegmentSearch::Extent;
  const uint64_t prefix = name.Prefix64();
  for (const auto extent : {Extent::kGuided, Extent::kAll}) {
    if (extent == Extent::kAll && effort == Effort::kLookUp) return false;
    const Extent allowed = effort == Effort::kLookUp ? Extent::kOnlyGuided : extent;
    // The search may return remembered places that are stale. Then repeat the search once.
    for (int round = 0; round < 2; ++round) {
      std::vector<uint64_t> together;
      if (!search_.Remembers(prefix, allowed)) together = companions();
      const auto found = search_.Find(prefix, together, allowed);
      if (!found.ok()) {
        damage.Note(found.status());
        return false;
      }
      bool stale = false;
      for (const Location& place : (*found)->places) {
        const auto there = attempt(place, false);
        if (there.ok() && *there) {
          // The next chunks of the file probably lie there as well.
          LoadWindow(place.segment, place.ordinal);
          return true;
        }
        stale |= there.ok();
        if (!there.ok()) damage.Note(there.status());
      }
      if (!stale) {
        if (!(*found)->failure.ok()) damage.Note((*found)->failure);
        if ((*found)->all) return false;
        break;
      }
      search_.Forget(prefix);
    }
  }
  return false;
}

void ChunkPlaces::LookUp(std::span<const ChunkName> names,
                         std::span<std::optional<Location>> locations) {
  index_.Get(names, locations).IgnoreError("these places stay unknown");
  for (size_t i = 0; i < names.size(); ++i) {
    const auto extra = unindexed_.find(names[i]);
    if (extra != unindexed_.end()) locations[i] = extra->second;
  }
}

void ChunkPlaces::LoadWindow(SegmentId segment, uint32_t ordinal) {
  const uint32_t start = FooterCache::WindowStart(ordinal);
  auto window = segments_.Window(segment, start, FooterCache::kWindowChunks);
  if (window.ok()) windows_.Insert(segment, start, std::move(window).value());
}

}  // namespace siltfs
