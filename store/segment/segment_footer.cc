#include "store/segment/segment_footer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr std::string_view kTrailerMagic = "SILTSEAL";
constexpr uint16_t kFooterVersion = 1;
constexpr uint16_t kFooterVersionWithBases = 2;
constexpr size_t kChecksumOffset = 56;

static_assert(kChecksumOffset + 8 == kSegmentTrailerSize);

Status Corrupt(std::string cause) { return Status(StatusCode::kCorruption, std::move(cause)); }

// Checks that the sizes are consistent and fit the limits and the file, so that tables of these
// sizes can be allocated.
Status CheckSizes(const SegmentTrailer& trailer, uint64_t file_size) {
  uint64_t least_end = kSegmentHeaderSize + uint64_t{trailer.block_count} * kBlockHeaderSize +
                       uint64_t{trailer.chunk_count} * kChunkTableEntrySize;
  if (trailer.block_count == 0 || trailer.block_count > trailer.chunk_count ||
      trailer.chunk_count > kMaxSegmentChunks || trailer.data_end < least_end) {
    return Corrupt(fmt::format("footer claims {} chunks in {} blocks in {} bytes",
                               trailer.chunk_count, trailer.block_count, trailer.data_end));
  }
  if (trailer.base_count > trailer.chunk_count) {
    return Corrupt(fmt::format("footer claims {} bases for {} chunks", trailer.base_count,
                               trailer.chunk_count));
  }
  if (trailer.file_size() != file_size) {
    return Corrupt(fmt::format("footer is for a file of {} bytes, this one has {}",
                               trailer.file_size(), file_size));
  }
  return Status::Ok();
}

Status CheckBlocks(const SegmentTrailer& trailer, const std::vector<BlockPlace>& blocks) {
  if (blocks.front().block_offset < kSegmentHeaderSize ||
      blocks.back().block_offset >= std::min(trailer.data_end, kMaxSegmentTargetSize) ||
      blocks.back().first_ordinal >= trailer.chunk_count) {
    return Corrupt("footer's block table points outside the segment");
  }
  auto out_of_order = [](const BlockPlace& a, const BlockPlace& b) {
    return a.block_offset >= b.block_offset || a.first_ordinal >= b.first_ordinal;
  };
  if (std::adjacent_find(blocks.begin(), blocks.end(), out_of_order) != blocks.end()) {
    return Corrupt("footer's block table is out of order");
  }
  return Status::Ok();
}

// The entries of a base table that fills the file. 0 if there is no room for any; CheckSizes
// compares the sizes.
uint32_t BaseCount(const SegmentTrailer& trailer, uint64_t file_size) {
  const uint64_t others = trailer.file_size() + kBaseTableChecksumSize;
  if (file_size <= others) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>((file_size - others) / kBaseRefSize, UINT32_MAX));
}

void EncodeBases(const std::vector<BaseRef>& bases, const SegmentIdentity& identity, Encoder& out) {
  if (bases.empty()) return;
  Encoder table;
  for (const BaseRef& base : bases) EncodeBaseRef(base, table);
  out.Raw(table.view()).U64(Checksum(table.view(), identity.ChecksumSeed()));
}

}  // namespace

uint64_t LastDataEnd(uint64_t sealed_length, uint64_t chunk_count) {
  // A footer lists at least one block. It may have no base table, which makes the bound higher.
  const uint64_t footer = kSegmentTrailerSize + kFooterBlockSize + chunk_count * kFooterChunkSize;
  return sealed_length - std::min(sealed_length, footer);
}

std::optional<BlockPlace> FindBlockPlace(const std::vector<BlockPlace>& blocks, uint32_t ordinal) {
  auto after = std::upper_bound(
      blocks.begin(), blocks.end(), ordinal,
      [](uint32_t wanted, const BlockPlace& place) { return wanted < place.first_ordinal; });
  if (after == blocks.begin()) return std::nullopt;
  return *std::prev(after);
}

std::optional<BlockTable::Found> BlockTable::Find(uint32_t ordinal) const {
  if (ordinal >= chunk_count) return std::nullopt;
  auto after = std::upper_bound(
      blocks.begin(), blocks.end(), ordinal,
      [](uint32_t wanted, const BlockPlace& place) { return wanted < place.first_ordinal; });
  Found found;
  // If the ordinal lies before the first listed block, its block was lost. The lost blocks began
  // directly after the segment's header.
  const bool before_first = after == blocks.begin();
  found.place = before_first ? BlockPlace{kSegmentHeaderSize, 0} : *std::prev(after);
  found.end_ordinal = after == blocks.end() ? chunk_count : after->first_ordinal;
  const uint32_t end = after == blocks.end() ? data_end : after->block_offset;
  found.bytes = end > found.place.block_offset ? end - found.place.block_offset : 0;
  const uint64_t chunks = found.end_ordinal - found.place.first_ordinal;
  found.plain_bytes = static_cast<uint32_t>(
      std::min<uint64_t>(plain_bytes * chunks / chunk_count, kMaxBlockPlainBytes));
  return found;
}

void SegmentFooter::Add(const BlockPlace& place, const std::vector<ChunkRecord>& records,
                        uint64_t sequence, uint64_t end_offset) {
  chunks.resize(place.first_ordinal);  // zero entries for chunks lost to damage
  for (const ChunkRecord& record : records) {
    chunks.push_back({record.name.Prefix64(), record.tag});
    trailer.plain_bytes += record.length;
  }
  if (blocks.empty()) trailer.first_sequence = sequence;
  blocks.push_back(place);
  trailer.last_sequence = sequence;
  trailer.chunk_count = static_cast<uint32_t>(chunks.size());
  trailer.block_count = static_cast<uint32_t>(blocks.size());
  trailer.data_end = static_cast<uint32_t>(end_offset);
}

void SegmentFooter::AddBases(const std::vector<DeltaBase>& deltas) {
  for (const DeltaBase& delta : deltas) bases.push_back(delta.base);
}

std::optional<BlockPlace> SegmentFooter::FindBlock(uint32_t ordinal) const {
  if (ordinal >= chunks.size()) return std::nullopt;
  return FindBlockPlace(blocks, ordinal);
}

std::string EncodeSegmentFooter(SegmentFooter& footer, const SegmentIdentity& identity) {
  SegmentTrailer& trailer = footer.trailer;
  std::sort(footer.bases.begin(), footer.bases.end());
  footer.bases.erase(std::unique(footer.bases.begin(), footer.bases.end()), footer.bases.end());
  Encoder out;
  for (const FooterChunk& chunk : footer.chunks) out.BigU64(chunk.name_prefix).U64(chunk.tag);
  for (const BlockPlace& block : footer.blocks)
    out.U32(block.block_offset).U32(block.first_ordinal);
  EncodeBases(footer.bases, identity, out);
  trailer.base_count = static_cast<uint32_t>(footer.bases.size());
  trailer.chunk_count = static_cast<uint32_t>(footer.chunks.size());
  trailer.block_count = static_cast<uint32_t>(footer.blocks.size());
  trailer.tables_checksum = Checksum(out.view(), identity.ChecksumSeed());
  Encoder end;
  end.Raw(kTrailerMagic)
      .U16(footer.bases.empty() ? kFooterVersion : kFooterVersionWithBases)
      .U8(static_cast<uint8_t>(trailer.kind))
      .U8(0)  // flags
      .U32(trailer.chunk_count)
      .U32(trailer.block_count)
      .U32(trailer.data_end)
      .U64(trailer.first_sequence)
      .U64(trailer.last_sequence)
      .U64(trailer.plain_bytes)
      .U64(trailer.tables_checksum);
  end.U64(Checksum(end.view(), identity.ChecksumSeed()));
  out.Raw(end.view());
  return out.Take();
}

bool LooksLikeTrailer(ByteView bytes) {
  return bytes.size() == kSegmentTrailerSize &&
         AsText(bytes.first(kTrailerMagic.size())) == kTrailerMagic;
}

Result<SegmentTrailer> DecodeSegmentTrailer(ByteView bytes, const SegmentIdentity& identity,
                                            uint64_t file_size) {
  if (!LooksLikeTrailer(bytes)) return Corrupt("segment doesn't end in a footer");
  Decoder stored(bytes.subspan(kChecksumOffset));
  if (stored.U64() != Checksum(bytes.first(kChecksumOffset), identity.ChecksumSeed())) {
    return Corrupt("footer's trailer has a wrong checksum");
  }
  Decoder in(bytes);
  in.Skip(kTrailerMagic.size());
  uint16_t version = in.U16();
  uint8_t kind = in.U8();
  uint8_t flags = in.U8();
  const bool with_bases = version == kFooterVersionWithBases;
  if ((version != kFooterVersion && !with_bases) ||
      kind > static_cast<uint8_t>(SegmentKind::kRecipeNodes) || flags != 0) {
    return Status(StatusCode::kNeedsNewer,
                  fmt::format("footer has version {}, kind {} and flags {}, which this "
                              "siltfs doesn't know",
                              version, kind, flags));
  }
  SegmentTrailer trailer;
  trailer.kind = static_cast<SegmentKind>(kind);
  trailer.chunk_count = in.U32();
  trailer.block_count = in.U32();
  trailer.data_end = in.U32();
  trailer.first_sequence = in.U64();
  trailer.last_sequence = in.U64();
  trailer.plain_bytes = in.U64();
  trailer.tables_checksum = in.U64();
  if (with_bases) {
    trailer.base_count = BaseCount(trailer, file_size);
    if (trailer.base_count == 0) return Corrupt("footer of version 2 has no base table");
  }
  SILTFS_RETURN_IF_ERROR(CheckSizes(trailer, file_size));
  return trailer;
}

std::vector<FooterChunk> DecodeFooterChunks(ByteView bytes) {
  assert(bytes.size() % kFooterChunkSize == 0);
  std::vector<FooterChunk> chunks(bytes.size() / kFooterChunkSize);
  Decoder in(bytes);
  for (FooterChunk& chunk : chunks) {
    chunk.name_prefix = in.BigU64();
    chunk.tag = in.U64();
  }
  return chunks;
}

std::vector<BlockPlace> DecodeFooterBlocks(ByteView bytes) {
  assert(bytes.size() % kFooterBlockSize == 0);
  std::vector<BlockPlace> blocks(bytes.size() / kFooterBlockSize);
  Decoder in(bytes);
  for (BlockPlace& block : blocks) {
    block.block_offset = in.U32();
    block.first_ordinal = in.U32();
  }
  return blocks;
}

Result<std::vector<BaseRef>> DecodeBaseTable(const SegmentTrailer& trailer, ByteView bytes,
                                             const SegmentIdentity& identity) {
  if (bytes.size() != trailer.base_table_bytes())
    return Corrupt(fmt::format("footer's base table is cut off after {} bytes", bytes.size()));
  std::vector<BaseRef> bases(trailer.base_count);
  if (bases.empty()) return bases;
  const ByteView table = bytes.first(bytes.size() - kBaseTableChecksumSize);
  Decoder stored(bytes.subspan(table.size()));
  if (stored.U64() != Checksum(table, identity.ChecksumSeed()))
    return Corrupt("footer's base table has a wrong checksum");
  Decoder in(table);
  for (BaseRef& base : bases) {
    base = DecodeBaseRef(in);
    if (!IsBaseLength(base.length))
      return Corrupt(fmt::format("footer's base table has a base of {} bytes", base.length));
  }
  auto out_of_order = [](const BaseRef& a, const BaseRef& b) { return a >= b; };
  if (std::adjacent_find(bases.begin(), bases.end(), out_of_order) != bases.end())
    return Corrupt("footer's base table is out of order");
  return bases;
}

Result<SegmentFooter> DecodeSegmentFooter(const SegmentTrailer& trailer, ByteView tables,
                                          const SegmentIdentity& identity) {
  if (tables.size() != trailer.trailer_offset() - trailer.data_end) {
    return Corrupt(fmt::format("footer's tables are cut off after {} bytes", tables.size()));
  }
  if (Checksum(tables, identity.ChecksumSeed()) != trailer.tables_checksum) {
    return Corrupt("footer's tables have a wrong checksum");
  }
  size_t chunk_bytes = size_t{trailer.chunk_count} * kFooterChunkSize;
  const size_t block_bytes = size_t{trailer.block_count} * kFooterBlockSize;
  SegmentFooter footer{trailer, DecodeFooterChunks(tables.first(chunk_bytes)),
                       DecodeFooterBlocks(tables.subspan(chunk_bytes, block_bytes))};
  SILTFS_RETURN_IF_ERROR(CheckBlocks(trailer, footer.blocks));
  SILTFS_ASSIGN_OR_RETURN(
      footer.bases, DecodeBaseTable(trailer, tables.subspan(chunk_bytes + block_bytes), identity));
  return footer;
}

}  // namespace siltfs
