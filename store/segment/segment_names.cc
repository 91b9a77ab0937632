#include "store/segment/segment_names.h"

#include <memory>

namespace siltfs {

Status VisitChunksOfBlocks(const SegmentReader& reader, const VisitFooterChunks& visit) {
  SILTFS_ASSIGN_OR_RETURN(const BlockTable table, reader.ScanBlockTable());
  for (const BlockPlace& place : table.blocks) {
    const auto head = reader.ReadBlockHead(place.block_offset);
    if (!head.ok()) {
      head.status().IgnoreError("an unreadable block is skipped");
      continue;
    }
    std::vector<FooterChunk> chunks;
    chunks.reserve(head->records.size());
    for (const ChunkRecord& record : head->records)
      chunks.push_back({record.name.Prefix64(), record.tag});
    visit(head->first_ordinal, chunks);
  }
  return Status::Ok();
}

Result<std::vector<uint64_t>> ReadNamePrefixes(SegmentStore& segments,
                                               const SegmentIdentity& identity) {
  const BlockCodec codec;
  SILTFS_ASSIGN_OR_RETURN(const auto reader, SegmentReader::Open(segments, identity, codec));
  std::vector<uint64_t> names;
  const VisitFooterChunks take = [&](uint32_t, std::span<const FooterChunk> chunks) {
    for (const FooterChunk& chunk : chunks) names.push_back(chunk.name_prefix);
  };
  const auto footer = reader->ReadFooter();
  if (footer.ok()) {
    take(0, footer->chunks);
    return names;
  }
  if (!footer.status().Is(StatusCode::kCorruption)) return footer.status();
  SILTFS_RETURN_IF_ERROR(VisitChunksOfBlocks(*reader, take));
  return names;
}

}  // namespace siltfs
