#include "fs/chunks/entry_check.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace siltfs {
namespace {

// The number of names that are looked up together.
constexpr uint32_t kLookupBatch = 4096;
// How many index entries are moved in one step. No other thread can append a block during a step.
constexpr size_t kMovesAtOnce = 256;

}  // namespace

EntryCheck::EntryCheck(ChunkIndex& index, SegmentCache& segments, ChunkReader& reader,
                       BlockPipeline& pipeline, std::function<bool(SegmentId)> gone, Pace pace,
                       BeforeEntries before_entries)
    : index_(index),
      segments_(segments),
      reader_(reader),
      pipeline_(pipeline),
      gone_(std::move(gone)),
      pace_(std::move(pace)),
      before_entries_(std::move(before_entries)) {}

Location EntryCheck::Content::PlaceOf(SegmentId segment, uint32_t ordinal) const {
  const auto behind = std::upper_bound(
      blocks.begin(), blocks.end(), ordinal,
      [](uint32_t number, const BlockPlace& block) { return number < block.first_ordinal; });
  return {segment, ordinal, std::prev(behind)->block_offset};
}

Status EntryCheck::Read(SegmentId segment, Content& content) {
  SILTFS_ASSIGN_OR_RETURN(const OpenSegmentPtr opened, segments_.Open(segment));
  const SegmentReader& reader = *opened->reader;
  auto footer = reader.ReadFooter();
  if (footer.ok()) {
    content.blocks = std::move(footer->blocks);
    content.names.reserve(footer->trailer.chunk_count);
  } else {
    footer.status().IgnoreError("the blocks are read instead");
    SILTFS_ASSIGN_OR_RETURN(BlockTable table, reader.ScanBlockTable());
    content.blocks = std::move(table.blocks);
  }
  for (const BlockPlace& place : content.blocks) {
    SILTFS_ASSIGN_OR_RETURN(const BlockHead head, reader.ReadBlockHead(place.block_offset));
    if (head.first_ordinal != content.names.size() || head.first_ordinal != place.first_ordinal) {
      return Status(StatusCode::kCorruption, "the block does not match the footer")
          .At(reader.path(), place.block_offset);
    }
    for (const ChunkRecord& record : head.records) content.names.push_back(record.name);
  }
  return Status::Ok();
}

bool EntryCheck::MayHold(const Location& place, const ChunkName& name) {
  const auto record = reader_.RecordAt(place);
  if (record.ok()) return *record && ShareEntry((*record)->name, name);
  record.status().IgnoreError("damage is found and repaired elsewhere");
  return true;
}

Result<bool> EntryCheck::FindMissing(SegmentId segment, const Content& content, uint32_t begin,
                                     uint32_t end, std::vector<Missing>& missing) {
  const std::span<const ChunkName> names(content.names);
  std::vector<std::optional<Location>> places(end - begin);
  SILTFS_RETURN_IF_ERROR(index_.Get(names.subspan(begin, end - begin), places));
  bool leads_here = true;
  for (uint32_t ordinal = begin; ordinal < end; ++ordinal) {
    const std::optional<Location>& place = places[ordinal - begin];
    if (!place || gone_(place->segment)) {
      missing.push_back({ordinal, std::nullopt});
      continue;
    }
    // The segment may hold the chunk twice, and the index may lead to either copy.
    const bool known = place->segment == segment && place->ordinal < names.size();
    if (known && names[place->ordinal] == names[ordinal]) continue;
    const bool leads = known ? ShareEntry(names[place->ordinal], names[ordinal])
                       : place->segment == segment ? false
                                                   : MayHold(*place, names[ordinal]);
    if (!leads) {
      missing.push_back({ordinal, place});
    } else {
      leads_here = false;
    }
  }
  return leads_here;
}

Result<bool> EntryCheck::Check(SegmentId segment) {
  Content content;
  const Status read = Read(segment, content);
  if (!read.ok()) {
    read.IgnoreError("a segment that cannot be read is not confirmed");
    return false;
  }
  const auto count = static_cast<uint32_t>(content.names.size());
  SILTFS_RETURN_IF_ERROR(pace_(count * sizeof(ChunkRecord)));
  bool leads_here = true;
  for (uint32_t begin = 0; begin < count; begin += kLookupBatch) {
    const uint32_t end = std::min(count, begin + kLookupBatch);
    std::vector<Missing> missing;
    SILTFS_ASSIGN_OR_RETURN(const bool here, FindMissing(segment, content, begin, end, missing));
    leads_here &= here;
    if (!missing.empty()) SILTFS_RETURN_IF_ERROR(before_entries_(segment));
    for (size_t at = 0; at < missing.size(); at += kMovesAtOnce) {
      std::vector<BlockPipeline::Move> moves;
      for (size_t i = at; i < std::min(missing.size(), at + kMovesAtOnce); ++i) {
        const auto& [ordinal, misled] = missing[i];
        const Location place = content.PlaceOf(segment, ordinal);
        moves.push_back({content.names[ordinal], place, place, misled});
      }
      SILTFS_RETURN_IF_ERROR(pipeline_.MoveEntries(moves, gone_));
      made_ += moves.size();
    }
    if (missing.empty() || !leads_here) continue;
    // A thread may have written a missing chunk again after the look-up. Then the index leads to
    // the new copy, so check again.
    missing.clear();
    SILTFS_ASSIGN_OR_RETURN(const bool still, FindMissing(segment, content, begin, end, missing));
    leads_here = still && missing.empty();
  }
  return leads_here;
}

}  // namespace siltfs
