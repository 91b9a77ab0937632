#include "fs/dedup/segment_search.h"

#include <utility>

#include "fs/dedup/footer_windows.h"
#include "store/segment/segment_files.h"

namespace siltfs {
namespace {

// More of them have one beginning only in a store that was made to.
constexpr size_t kMostPlaces = 16;

}  // namespace

Result<SegmentSearch::Places> SegmentSearch::Find(uint64_t prefix,
                                                  std::span<const uint64_t> companions) {
  if (auto places = found_.Get(prefix)) return places;
  MutexLock lock(mutex_);
  if (auto places = found_.Get(prefix)) return places;  // by the search that it waited for
  Wanted wanted{{prefix, {}}};
  for (const uint64_t companion : companions) wanted.try_emplace(companion);
  SILTFS_ASSIGN_OR_RETURN(const bool complete, SearchAll(wanted));
  Places sought;
  for (auto& [name, locations] : wanted) {
    auto places = std::make_shared<const std::vector<Location>>(std::move(locations));
    if (name == prefix) sought = places;
    if (complete) found_.Put(name, places, 1 + places->size());
  }
  return sought;
}

Result<bool> SegmentSearch::SearchAll(Wanted& wanted) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing listing, ListSegments(env_, store_));
  bool complete = true;
  for (const SegmentId segment : listing.ids) complete &= SearchSegment(segment, wanted);
  return complete;
}

bool SegmentSearch::SearchSegment(SegmentId segment, Wanted& wanted) {
  for (uint32_t start = 0; start < kMaxSegmentChunks; start += FooterWindows::kWindowChunks) {
    const auto window = segments_.Window(segment, start, FooterWindows::kWindowChunks);
    if (!window.ok()) {
      // It may still be read by who knows the place.
      window.status().IgnoreError("here it has nothing to offer");
      return !window.status().Is(StatusCode::kIoError);
    }
    if (window->empty()) break;
    for (uint32_t i = 0; i < window->size(); ++i) {
      const auto place = wanted.find((*window)[i].name_prefix);
      if (place == wanted.end() || place->second.size() >= kMostPlaces) continue;
      place->second.push_back({segment, start + i, 0});
    }
  }
  return true;
}

}  // namespace siltfs
