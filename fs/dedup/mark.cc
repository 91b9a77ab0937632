#include "fs/dedup/mark.h"

#include "fs/meta/inode_record.h"
#include "fs/meta/overlay_extent.h"
#include "fs/meta/recipe_reader.h"
#include "fs/meta/schema.h"

namespace siltfs {

Status ForEachReference(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace,
                        const std::function<Status(const ChunkName&)>& visit) {
  auto iterator = metadata.NewIterator();
  KeyRange range = RangeOf(Table::kInode);
  for (iterator->Seek(range.begin); iterator->Valid() && iterator->key() < range.end;
       iterator->Next()) {
    if (pace) SILTFS_RETURN_IF_ERROR(pace());
    SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(iterator->value()));
    if (!record.IsRegular()) continue;
    Status failed;
    SILTFS_RETURN_IF_ERROR(WalkRecipe(
        nodes, record.recipe,
        {.node =
             [&](const RecipeChild& node, uint8_t, uint64_t) {
               failed = visit(node.name);
               return failed.ok();
             },
         .entry = [&](const RecipeEntry& entry,
                      uint64_t) { return entry.is_hole() ? Status::Ok() : visit(entry.name); },
         .damaged = {}}));
    SILTFS_RETURN_IF_ERROR(failed);
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  range = RangeOf(Table::kOverlay);
  for (iterator->Seek(range.begin); iterator->Valid() && iterator->key() < range.end;
       iterator->Next()) {
    SILTFS_ASSIGN_OR_RETURN(const OverlayExtent extent, OverlayExtent::Decode(iterator->value()));
    for (const ChunkSlice& slice : extent.slices) SILTFS_RETURN_IF_ERROR(visit(slice.name));
  }
  return iterator->status();
}

Result<LiveCounts> CountLive(Env&, const KvSnapshot& metadata, NodeStore& nodes, ChunkIndex& index,
                             const MarkOptions& options) {
  std::unordered_set<ChunkName> live;
  SILTFS_RETURN_IF_ERROR(
      ForEachReference(metadata, nodes, options.pace, [&](const ChunkName& name) {
        live.insert(name);
        return Status::Ok();
      }));
  LiveCounts counts;
  SILTFS_RETURN_IF_ERROR(index.ForEach([&](const IndexEntry& entry) {
    if (live.contains(entry.name)) {
      ++counts.live_chunks[entry.location.segment];
    } else {
      ++counts.dead_entries;
    }
    return Status::Ok();
  }));
  return counts;
}

void SegmentMark::Add(SegmentId segment, std::span<const FooterChunk> chunks) {
  for (const FooterChunk& chunk : chunks) names_[segment].push_back(chunk.name_prefix);
}
Status SegmentMark::Mark(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace) {
  return ForEachReference(metadata, nodes, pace, [&](const ChunkName& name) {
    live_.insert(name.Prefix64());
    return Status::Ok();
  });
}
bool SegmentMark::IsLive(SegmentId segment, uint32_t ordinal) const {
  const uint64_t name = names_.at(segment)[ordinal];
  return name == 0 || live_.contains(name);
}
uint32_t SegmentMark::LiveCount(SegmentId segment) const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < names_.at(segment).size(); ++i) count += IsLive(segment, i) ? 1 : 0;
  return count;
}

}  // namespace siltfs
