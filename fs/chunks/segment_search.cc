#include "fs/chunks/segment_search.h"

#include <utility>

#include "fs/chunks/footer_cache.h"

namespace siltfs {
namespace {

// At most this many places are kept for one prefix. Only in a crafted store do more chunks share a
// prefix.
constexpr size_t kMostPlaces = 16;

}  // namespace

Result<SegmentSearch::Places> SegmentSearch::Find(uint64_t prefix,
                                                  std::span<const uint64_t> companions) {
  if (auto places = found_.Get(prefix)) return places;
  MutexLock lock(mutex_);
  if (auto places = found_.Get(prefix))
    return places;  // found by the search that this call waited for
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
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing listing, segments_.store().List());
  bool complete = true;
  for (const SegmentId segment : listing.ids) complete &= SearchSegment(segment, wanted);
  return complete;
}

bool SegmentSearch::SearchSegment(SegmentId segment, Wanted& wanted) {
  const auto opened = segments_.Open(segment);
  if (!opened.ok()) {
    opened.status().IgnoreError("an unreadable segment is skipped");
    return !opened.status().Is(StatusCode::kIoError);
  }
  const SegmentReader& reader = *(*opened)->reader;
  // Read and verify the whole footer, because a part of a damaged footer may lack the wanted
  // chunks.
  const auto footer = reader.ReadFooter();
  if (footer.ok()) {
    Take(segment, 0, footer->chunks, wanted);
    return true;
  }
  if (footer.status().Is(StatusCode::kIoError)) return false;
  if (footer.status().Is(StatusCode::kInvalidArgument) && SearchOpenSegment(segment, wanted))
    return true;
  // The segment has no usable footer. Search the blocks, which have the same names.
  const auto table = reader.ScanBlockTable();
  if (!table.ok()) {
    table.status().IgnoreError("an unreadable segment is skipped");
    return !table.status().Is(StatusCode::kIoError);
  }
  for (const BlockPlace& place : table->blocks) {
    const auto head = reader.ReadBlockHead(place.block_offset);
    if (!head.ok()) {
      head.status().IgnoreError("an unreadable block is skipped");
      continue;
    }
    std::vector<FooterChunk> chunks;
    for (const ChunkRecord& record : head->records)
      chunks.push_back({record.name.Prefix64(), record.tag});
    Take(segment, head->first_ordinal, chunks, wanted);
  }
  return true;
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
