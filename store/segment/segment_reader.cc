#include "store/segment/segment_reader.h"

#include <algorithm>
#include <utility>

#include "store/env/files.h"
#include "store/segment/block_io.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

Status NotSealed(const ReadableFile& file) {
  return Status(StatusCode::kInvalidArgument, "segment is not sealed, it has no footer")
      .At(file.path());
}

Result<Bytes> ReadBytes(const ReadableFile& file, uint64_t offset, size_t size) {
  Bytes bytes(size);
  SILTFS_RETURN_IF_ERROR(ReadExactly(file, offset, bytes));
  return bytes;
}

}  // namespace

Result<std::unique_ptr<SegmentReader>> SegmentReader::Open(SegmentStore& segments,
                                                           const SegmentIdentity& identity,
                                                           const BlockCodec& codec) {
  SILTFS_ASSIGN_OR_RETURN(auto file, segments.Open(identity.id));
  return std::unique_ptr<SegmentReader>(new SegmentReader(std::move(file), identity, codec));
}

Result<std::unique_ptr<SegmentReader>> SegmentReader::Open(Env& env, const std::string& store,
                                                           const SegmentIdentity& identity,
                                                           const BlockCodec& codec) {
  return OpenAt(env, SegmentPath(store, identity.id), identity, codec);
}

Result<std::unique_ptr<SegmentReader>> SegmentReader::OpenAt(Env& env, const std::string& path,
                                                             const SegmentIdentity& identity,
                                                             const BlockCodec& codec) {
  SILTFS_ASSIGN_OR_RETURN(auto file, env.OpenFile(path, {.mode = OpenMode::kRead}));
  return std::unique_ptr<SegmentReader>(new SegmentReader(std::move(file), identity, codec));
}

SegmentReader::SegmentReader(std::unique_ptr<const ReadableFile> file,
                             const SegmentIdentity& identity, const BlockCodec& codec)
    : file_(std::move(file)), identity_(identity), codec_(codec) {}

Result<SegmentHeader> SegmentReader::ReadHeader() const {
  SILTFS_ASSIGN_OR_RETURN(Bytes bytes, ReadBytes(*file_, 0, kSegmentHeaderSize));
  auto header = DecodeSegmentHeader(bytes);
  if (!header.ok()) return std::move(header).status().At(path(), 0);
  SILTFS_RETURN_IF_ERROR(CheckIdentity(header->identity, identity_).At(path(), 0));
  return header;
}

Result<std::optional<SegmentTrailer>> SegmentReader::FindTrailer() const {
  {
    MutexLock lock(mutex_);
    if (trailer_) return trailer_;
  }
  SILTFS_ASSIGN_OR_RETURN(uint64_t size, file_->Size());
  if (size < kSegmentHeaderSize + kSegmentTrailerSize) return std::optional<SegmentTrailer>();
  const uint64_t offset = size - kSegmentTrailerSize;
  SILTFS_ASSIGN_OR_RETURN(Bytes bytes, ReadBytes(*file_, offset, kSegmentTrailerSize));
  if (!LooksLikeTrailer(bytes)) return std::optional<SegmentTrailer>();
  auto trailer = DecodeSegmentTrailer(bytes, identity_, size);
  if (!trailer.ok()) return std::move(trailer).status().At(path(), offset);
  MutexLock lock(mutex_);
  trailer_ = *trailer;
  return trailer_;
}

Result<bool> SegmentReader::IsSealed() const {
  SILTFS_ASSIGN_OR_RETURN(auto trailer, FindTrailer());
  return trailer.has_value();
}

Result<SegmentTrailer> SegmentReader::ReadTrailer() const {
  SILTFS_ASSIGN_OR_RETURN(auto trailer, FindTrailer());
  if (!trailer) return NotSealed(*file_);
  return *trailer;
}

Result<SegmentFooter> SegmentReader::ReadFooter() const {
  SILTFS_ASSIGN_OR_RETURN(SegmentTrailer trailer, ReadTrailer());
  SILTFS_ASSIGN_OR_RETURN(Bytes tables, ReadBytes(*file_, trailer.data_end,
                                                  trailer.trailer_offset() - trailer.data_end));
  auto footer = DecodeSegmentFooter(trailer, tables, identity_);
  if (!footer.ok()) return std::move(footer).status().At(path(), trailer.data_end);
  return footer;
}

Result<std::vector<FooterChunk>> SegmentReader::ReadFooterWindow(uint32_t first_ordinal,
                                                                 uint32_t count) const {
  SILTFS_ASSIGN_OR_RETURN(SegmentTrailer trailer, ReadTrailer());
  if (first_ordinal >= trailer.chunk_count) return std::vector<FooterChunk>();
  count = std::min(count, trailer.chunk_count - first_ordinal);
  SILTFS_ASSIGN_OR_RETURN(
      Bytes bytes,
      ReadBytes(*file_, trailer.chunk_table_offset() + uint64_t{first_ordinal} * kFooterChunkSize,
                size_t{count} * kFooterChunkSize));
  return DecodeFooterChunks(bytes);
}

Result<std::optional<BlockPlace>> SegmentReader::FindBlock(uint32_t ordinal) const {
  SILTFS_ASSIGN_OR_RETURN(BlockTable table, ReadBlockTable());
  const auto found = table.Find(ordinal);
  return found ? std::optional(found->place) : std::nullopt;
}

Result<BlockTable> SegmentReader::ReadBlockTable() const {
  SILTFS_ASSIGN_OR_RETURN(SegmentTrailer trailer, ReadTrailer());
  SILTFS_ASSIGN_OR_RETURN(Bytes bytes, ReadBytes(*file_, trailer.block_table_offset(),
                                                 size_t{trailer.block_count} * kFooterBlockSize));
  return BlockTable{DecodeFooterBlocks(bytes), trailer.chunk_count, trailer.data_end,
                    trailer.plain_bytes};
}

Result<BlockTable> SegmentReader::ScanBlockTable() const {
  BlockTable table;
  ScanOptions options;
  SILTFS_ASSIGN_OR_RETURN(options.committed_length, file_->Size());
  options.on_damage = [](uint64_t, uint64_t, const Status&) { return Status::Ok(); };
  SILTFS_ASSIGN_OR_RETURN(
      const ScanResult scanned,
      ScanBlocks(*file_, identity_, options, [&table](const BlockHead& head, uint32_t offset) {
        table.blocks.push_back({offset, head.first_ordinal});
        table.data_end = offset + head.total_bytes();
        return Status::Ok();
      }));
  if (table.blocks.empty())
    return Status(StatusCode::kCorruption, "no block of the segment is whole").At(path());
  table.chunk_count = scanned.end_ordinal;
  table.plain_bytes = scanned.plain_bytes;
  return table;
}

Result<std::vector<BaseRef>> SegmentReader::ScanBases() const {
  SILTFS_ASSIGN_OR_RETURN(const SegmentTrailer trailer, ReadTrailer());
  ScanOptions options;  // damage ends the scan
  options.committed_length = options.end = trailer.data_end;
  std::vector<BaseRef> bases;
  uint32_t next = 0;
  SILTFS_RETURN_IF_ERROR(
      ScanBlocks(*file_, identity_, options, [&](const BlockHead& head, uint32_t offset) -> Status {
        if (head.first_ordinal != next)
          return Status(StatusCode::kCorruption, "blocks are missing").At(path(), offset);
        next = head.end_ordinal();
        if (head.codec != BlockCodecId::kZstdDelta) return Status::Ok();
        SILTFS_ASSIGN_OR_RETURN(const std::vector<DeltaBase> deltas, ReadDeltaBases(offset));
        for (const DeltaBase& delta : deltas) bases.push_back(delta.base);
        return Status::Ok();
      }).status());
  if (next == trailer.chunk_count) return bases;
  return Status(StatusCode::kCorruption, "blocks are missing").At(path(), trailer.data_end);
}

Result<std::vector<BaseRef>> SegmentReader::ReadBaseTable() const {
  SILTFS_ASSIGN_OR_RETURN(const SegmentTrailer trailer, ReadTrailer());
  if (trailer.base_count == 0) return std::vector<BaseRef>();
  SILTFS_ASSIGN_OR_RETURN(const Bytes bytes, ReadBytes(*file_, trailer.base_table_offset(),
                                                       trailer.base_table_bytes()));
  auto bases = DecodeBaseTable(trailer, bytes, identity_);
  if (!bases.ok()) return std::move(bases).status().At(path(), trailer.base_table_offset());
  return bases;
}

Result<DecodedBlockPtr> SegmentReader::ReadBlock(uint32_t offset, size_t expected_bytes,
                                                 BaseSource* bases) const {
  SILTFS_ASSIGN_OR_RETURN(StoredBlock stored,
                          ReadStoredBlockAt(*file_, identity_, codec_, offset, expected_bytes));
  const ByteView payload = stored.payload();
  auto block = codec_.Decode(std::move(stored.head), payload, bases);
  if (!block.ok()) return std::move(block).status().At(path(), offset);
  return block;
}

Result<std::vector<DeltaBase>> SegmentReader::ReadDeltaBases(uint32_t offset) const {
  SILTFS_ASSIGN_OR_RETURN(const BlockHead head, ReadBlockHead(offset));
  return ReadDeltaBasesAt(*file_, head, offset);
}

Result<BlockHead> SegmentReader::ReadBlockHead(uint32_t offset) const {
  return ReadBlockHeadAt(*file_, identity_, offset);
}

Result<EncodedBlock> SegmentReader::ReadEncodedBlock(uint32_t offset) const {
  SILTFS_ASSIGN_OR_RETURN(StoredBlock stored, ReadStoredBlockAt(*file_, identity_, codec_, offset));
  EncodedBlock block;
  block.codec = stored.head.codec;
  block.plain_bytes = stored.head.plain_bytes;
  block.payload_checksum = stored.head.payload_checksum;
  ByteView payload = stored.payload();
  block.payload.assign(payload.begin(), payload.end());
  block.records = std::move(stored.head.records);
  return block;
}

}  // namespace siltfs
