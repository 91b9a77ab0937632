#include "fs/chunks/segment_search.h"

#include <map>
#include <utility>

#include "fs/chunks/footer_cache.h"
#include "store/segment/segment_names.h"

namespace siltfs {
namespace {

// At most this many places are kept for one prefix. Only in a crafted store do more chunks share a
// prefix.
constexpr size_t kMostPlaces = 16;

Status OnlyDeviceError(const Status& status) {
  if (status.Is(StatusCode::kIoError)) return status;
  status.IgnoreError("an unreadable segment is skipped");
  return Status::Ok();
}

// Keeps the first failure.
void Keep(Status status, Status& first) {
  status.IgnoreError("an earlier failure says as much");
  if (first.ok()) first = std::move(status);
}

}  // namespace

SegmentSearch::FoundPtr SegmentSearch::Remembered(uint64_t prefix, Extent extent) {
  FoundPtr found = found_.Get(prefix);
  return found && (found->all || extent != Extent::kAll) ? found : nullptr;
}

SegmentSearch::FoundPtr SegmentSearch::Remember(uint64_t prefix, Wanted wanted, bool all,
                                                const Status& failure) {
  FoundPtr sought;
  for (auto& [name, places] : wanted) {
    auto found = std::make_shared<const Found>(Found{std::move(places), all, failure});
    found->failure.IgnoreError("it matters only if the chunk is not at one of the places");
    if (name == prefix) sought = found;
    if (failure.ok()) found_.Put(name, found, 1 + found->places.size());
  }
  return sought;
}

Result<SegmentSearch::FoundPtr> SegmentSearch::Find(uint64_t prefix,
                                                    std::span<const uint64_t> companions,
                                                    Extent extent) {
  if (auto found = Remembered(prefix, extent)) return found;
  if (extent != Extent::kAll) {
    if (auto found = FindGuided(prefix, companions)) return found;
  }
  if (extent == Extent::kOnlyGuided) return std::make_shared<const Found>();
  MutexLock lock(mutex_);
  // It may have been found by the search that this call waited for.
  if (auto found = Remembered(prefix, Extent::kAll)) return found;
  Wanted wanted{{prefix, {}}};
  for (const uint64_t companion : companions) wanted.try_emplace(companion);
  const Status failure = SearchAll(wanted);
  return Remember(prefix, std::move(wanted), /*all=*/true, failure);
}

SegmentSearch::FoundPtr SegmentSearch::FindGuided(uint64_t prefix,
                                                  std::span<const uint64_t> companions) {
  if (guide_ == nullptr || !guide_->usable()) return nullptr;
  Wanted all{{prefix, {}}};
  for (const uint64_t companion : companions) all.try_emplace(companion);
  std::vector<uint64_t> names;
  for (const auto& [name, places] : all) names.push_back(name);
  std::vector<std::vector<SegmentId>> candidates;
  std::vector<SegmentId> uncovered;
  const Status asked = guide_->Find(names, candidates, uncovered);
  if (!asked.ok()) {
    asked.IgnoreError("all segments are searched instead");
    return nullptr;
  }
  std::map<SegmentId, std::vector<uint64_t>> names_in;
  for (const SegmentId segment : uncovered) names_in[segment] = names;
  for (size_t i = 0; i < names.size(); ++i) {
    for (const SegmentId segment : candidates[i]) names_in[segment].push_back(names[i]);
  }
  Status failure;
  for (const auto& [segment, sought] : names_in) {
    // A segment is searched for the names that it may hold, and for no others: with other names
    // the result would depend on the companions.
    Wanted wanted;
    for (const uint64_t name : sought) wanted.try_emplace(name);
    Keep(SearchSegment(segment, wanted), failure);
    for (const auto& [name, places] : wanted) {
      auto& found = all[name];
      found.insert(found.end(), places.begin(), places.end());
    }
  }
  return Remember(prefix, std::move(all), /*all=*/false, failure);
}

Status SegmentSearch::SearchAll(Wanted& wanted) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing listing, segments_.store().List());
  Status failure;
  for (const SegmentId segment : listing.ids) Keep(SearchSegment(segment, wanted), failure);
  return failure;
}

Status SegmentSearch::SearchSegment(SegmentId segment, Wanted& wanted) {
  ++segments_read_;
  const auto opened = segments_.Open(segment);
  if (!opened.ok()) {
    return OnlyDeviceError(opened.status());
  }
  const SegmentReader& reader = *(*opened)->reader;
  // Read and verify the whole footer, because a part of a damaged footer may lack the wanted
  // chunks.
  const auto footer = reader.ReadFooter();
  if (footer.ok()) {
    Take(segment, 0, footer->chunks, wanted);
    return Status::Ok();
  }
  if (footer.status().Is(StatusCode::kIoError)) return footer.status();
  if (footer.status().Is(StatusCode::kInvalidArgument) && SearchOpenSegment(segment, wanted))
    return Status::Ok();
  // The segment has no usable footer. Search the blocks, which have the same names.
  const Status scanned =
      VisitChunksOfBlocks(reader, [&](uint32_t first, std::span<const FooterChunk> chunks) {
        Take(segment, first, chunks, wanted);
      });
  return OnlyDeviceError(scanned);
}

// Searches the writer's table in memory. False if the segment has no writer.
bool SegmentSearch::SearchOpenSegment(SegmentId segment, Wanted& wanted) {
  for (uint32_t start = 0; start < kMaxSegmentChunks; start += FooterCache::kWindowChunks) {
    const auto window = segments_.Window(segment, start, FooterCache::kWindowChunks);
    if (!window.ok()) {
      window.status().IgnoreError("the blocks on flash are searched instead");
      return false;
    }
    if (window->empty()) break;
    Take(segment, start, *window, wanted);
  }
  return true;
}

void SegmentSearch::Take(SegmentId segment, uint32_t first_ordinal,
                         std::span<const FooterChunk> chunks, Wanted& wanted) {
  for (size_t i = 0; i < chunks.size(); ++i) {
    const auto place = wanted.find(chunks[i].name_prefix);
    if (place == wanted.end() || place->second.size() >= kMostPlaces) continue;
    place->second.push_back({segment, first_ordinal + static_cast<uint32_t>(i), 0});
  }
}

}  // namespace siltfs
