#include "fs/segments/damaged_block.h"

#include <algorithm>

namespace siltfs {
namespace {

DamagedChunk DamagedChunkOf(const FooterChunk& chunk) { return {chunk.name_prefix, chunk.tag}; }

// Sets the names and tags of the damaged chunks: from the footer, or, for an unsealed segment, from
// the writer's table in memory.
void NameChunks(SegmentCache& segments, const OpenSegment& segment, DamagedBlock& damaged) {
  const auto footer = segment.reader->ReadFooter();
  if (footer.ok()) {
    for (uint32_t i = 0; i < damaged.chunks.size(); ++i) {
      const size_t ordinal = damaged.first_ordinal + i;
      if (ordinal < footer->chunks.size())
        damaged.chunks[i] = DamagedChunkOf(footer->chunks[ordinal]);
    }
    return;
  }
  if (!footer.status().Is(StatusCode::kInvalidArgument))
    return;  // the segment is sealed, and no part of its damaged footer can be trusted
  const auto window = segments.Window(segment.id, damaged.first_ordinal,
                                      static_cast<uint32_t>(damaged.chunks.size()));
  if (!window.ok()) return window.status().IgnoreError("then the chunks are unknown");
  for (size_t i = 0; i < std::min(window->size(), damaged.chunks.size()); ++i)
    damaged.chunks[i] = DamagedChunkOf((*window)[i]);
}

}  // namespace

DamagedChunk DamagedChunkOf(const ChunkRecord& record) {
  return {record.name.Prefix64(), record.tag};
}

DamagedBlock IdentifyDamage(SegmentCache& segments, const OpenSegment& segment, uint32_t ordinal) {
  DamagedBlock damaged{segment.id, ordinal, std::vector<DamagedChunk>(1)};
  const auto found = segments.FindBlock(segment, ordinal);
  if (!found.ok()) {
    found.status().IgnoreError("then only the chunk's place is known");
  } else if (*found) {
    const auto head = segment.reader->ReadBlockHead((*found)->place.block_offset);
    if (head.ok() && head->Covers(ordinal)) {
      damaged.first_ordinal = head->first_ordinal;
      damaged.chunks.clear();
      for (const ChunkRecord& record : head->records)
        damaged.chunks.push_back(DamagedChunkOf(record));
      return damaged;
    }
    // Without the head, the block has the chunks between the end of the block before it and the
    // beginning of the next block.
    const uint32_t begin = head.ok() ? head->end_ordinal() : (*found)->place.first_ordinal;
    const uint32_t end = (*found)->end_ordinal;
    if (begin <= ordinal && ordinal < end && end - begin <= DamagedBlock::kMostChunks) {
      damaged.first_ordinal = begin;
      damaged.chunks.resize(end - begin);
    }
  }
  NameChunks(segments, segment, damaged);
  return damaged;
}

}  // namespace siltfs
