#include "fs/gc/reference_restorer.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "store/segment/segment_reader.h"

namespace siltfs {
namespace {

// At most this many places of one chunk are considered.
constexpr size_t kMostPlaces = 16;

}  // namespace

ReferenceRestorer::ReferenceRestorer(const Dependencies& dependencies, Options options)
    : deps_(dependencies), options_(std::move(options)) {}

Result<uint64_t> ReferenceRestorer::Restore(const KvSnapshot& metadata,
                                            std::span<const uint64_t> orders,
                                            std::span<const SegmentId> segments) {
  SILTFS_ASSIGN_OR_RETURN(LostByPrefix lost, FindLost(metadata, orders));
  if (lost.empty()) return uint64_t{0};
  for (const SegmentId segment : segments) {
    if (options_.pace) SILTFS_RETURN_IF_ERROR(options_.pace());
    if (!options_.gone(segment)) SearchSegment(segment, lost);
  }
  uint64_t restored = 0;
  for (const auto& [prefix, chunk] : lost) {
    SILTFS_ASSIGN_OR_RETURN(const bool entered, Enter(chunk));
    restored += entered ? 1 : 0;
  }
  return restored;
}

Result<ReferenceRestorer::LostByPrefix> ReferenceRestorer::FindLost(
    const KvSnapshot& metadata, std::span<const uint64_t> orders) {
  std::set<ChunkName> names;
  const auto visit = [&](const ChunkName& name) {
    if (std::binary_search(orders.begin(), orders.end(), deps_.index.OrderOf(name)))
      names.insert(name);
    return Status::Ok();
  };
  SILTFS_RETURN_IF_ERROR(ForEachReference(metadata, deps_.nodes, options_.pace, visit));
  if (options_.more) SILTFS_RETURN_IF_ERROR(options_.more(visit));
  LostByPrefix lost;
  for (const ChunkName& name : names) {
    SILTFS_ASSIGN_OR_RETURN(const std::optional<Location> place, deps_.index.Get(name));
    if (place && !options_.gone(place->segment)) continue;
    lost.emplace(name.Prefix64(), Lost{name, {}});
  }
  return lost;
}

void ReferenceRestorer::SearchSegment(SegmentId segment, LostByPrefix& lost) {
  const auto opened = deps_.segments.Open(segment);
  if (!opened.ok()) return opened.status().IgnoreError("an unreadable segment is skipped");
  const SegmentReader& reader = *(*opened)->reader;
  const auto footer = reader.ReadFooter();
  if (!footer.ok()) {
    footer.status().IgnoreError("the blocks are read instead");
    return SearchBlocks(segment, reader, lost);
  }
  for (uint32_t ordinal = 0; ordinal < footer->chunks.size(); ++ordinal) {
    if (!lost.contains(footer->chunks[ordinal].name_prefix)) continue;
    const auto block = footer->FindBlock(ordinal);
    if (!block) continue;
    const auto head = reader.ReadBlockHead(block->block_offset);
    if (!head.ok()) {
      head.status().IgnoreError("an unreadable block is skipped");
    } else if (head->Covers(ordinal)) {
      Take({segment, ordinal, block->block_offset}, *head, lost);
    }
  }
}

// Searches the blocks of a segment that is not sealed or has a damaged footer.
void ReferenceRestorer::SearchBlocks(SegmentId segment, const SegmentReader& reader,
                                     LostByPrefix& lost) {
  const auto table = reader.ScanBlockTable();
  if (!table.ok()) return table.status().IgnoreError("an unreadable segment is skipped");
  for (const BlockPlace& place : table->blocks) {
    const auto head = reader.ReadBlockHead(place.block_offset);
    if (!head.ok()) {
      head.status().IgnoreError("an unreadable block is skipped");
      continue;
    }
    for (uint32_t ordinal = head->first_ordinal; ordinal < head->end_ordinal(); ++ordinal)
      Take({segment, ordinal, place.block_offset}, *head, lost);
  }
}

void ReferenceRestorer::Take(const Location& place, const BlockHead& head, LostByPrefix& lost) {
  const ChunkName& name = head.records[place.ordinal - head.first_ordinal].name;
  const auto [begin, end] = lost.equal_range(name.Prefix64());
  if (begin == end || options_.is_damaged(place.segment, place.ordinal)) return;
  for (auto chunk = begin; chunk != end; ++chunk) {
    std::vector<Location>& places = chunk->second.places;
    if (chunk->second.name == name && places.size() < kMostPlaces) places.push_back(place);
  }
}

Result<bool> ReferenceRestorer::Enter(const Lost& chunk) {
  if (chunk.places.empty()) return false;
  const auto noted = [this](const Location& place) {
    return deps_.secondary.Contains(place.segment);
  };
  auto best = std::find_if_not(chunk.places.begin(), chunk.places.end(), noted);
  if (best == chunk.places.end()) best = chunk.places.begin();
  // Note the segment of `best`, too. A writer may be putting a new copy of the chunk now, and this
  // copy may take over the index entry.
  std::vector<SegmentId> holders;
  for (const Location& place : chunk.places) {
    if (!noted(place)) holders.push_back(place.segment);
  }
  if (!holders.empty()) SILTFS_RETURN_IF_ERROR(deps_.secondary.Note(holders));
  const BlockPipeline::Move move{chunk.name, *best, *best};
  SILTFS_RETURN_IF_ERROR(deps_.pipeline.MoveEntries(std::span(&move, 1), options_.gone));
  return true;
}

}  // namespace siltfs
