#include "fs/check/chunk_finder.h"

#include <algorithm>
#include <string>
#include <utility>

namespace siltfs {
namespace {

constexpr size_t kOpenFiles = 64;
constexpr size_t kHeadBytes = 8u << 20;
constexpr size_t kTableBytes = 4u << 20;

}  // namespace

ChunkFinder::ChunkFinder(CheckContext& context)
    : context_(context), readers_(kOpenFiles), heads_(kHeadBytes), tables_(kTableBytes) {}

Result<std::shared_ptr<SegmentReader>> ChunkFinder::Open(SegmentId segment) {
  if (auto reader = readers_.Get(segment)) return reader;
  SILTFS_ASSIGN_OR_RETURN(auto opened, SegmentReader::Open(*context_.segment_store,
                                                           context_.Identity(segment), codec_));
  std::shared_ptr<SegmentReader> reader = std::move(opened);
  readers_.Put(segment, reader, 1);
  return reader;
}

Result<ChunkFinder::HeadPtr> ChunkFinder::ReadHead(SegmentId segment, uint32_t offset) {
  const uint64_t key = uint64_t{segment} << 32 | offset;
  if (auto head = heads_.Get(key)) return head;
  SILTFS_ASSIGN_OR_RETURN(auto reader, Open(segment));
  SILTFS_ASSIGN_OR_RETURN(BlockHead read, reader->ReadBlockHead(offset));
  const size_t cost = sizeof(Block) + read.records.size() * sizeof(ChunkRecord);
  auto head = std::make_shared<const Block>(Block{offset, std::move(read)});
  heads_.Put(key, head, cost);
  return head;
}

Result<ChunkFinder::TablePtr> ChunkFinder::TableOf(SegmentId segment) {
  if (auto table = tables_.Get(segment)) return NotEmpty(segment, std::move(table));
  SILTFS_ASSIGN_OR_RETURN(auto reader, Open(segment));
  auto read = reader->ReadBlockTable();
  if (read.ok()) {
    auto table = std::make_shared<const Table>(Table{std::move(read).value()});
    tables_.Put(segment, table, table->blocks.memory_bytes());
    return table;
  }
  const SegmentRecord* record = context_.RecordOf(segment);
  const bool unsealed =
      read.status().Is(StatusCode::kInvalidArgument) && (record == nullptr || !record->sealed);
  if (unsealed || read.status().Is(StatusCode::kIoError)) return std::move(read).status();
  read.status().IgnoreError("SegmentWalk reports it");
  return ScannedTableOf(segment);
}

Result<ChunkFinder::TablePtr> ChunkFinder::ScannedTableOf(SegmentId segment) {
  if (auto table = tables_.Get(segment); table && table->scanned)
    return NotEmpty(segment, std::move(table));
  SILTFS_ASSIGN_OR_RETURN(auto reader, Open(segment));
  auto scanned = reader->ScanBlockTable();
  // If the scan finds no whole block, cache this result, too, because a scan reads the whole file.
  const bool hopeless = scanned.status().Is(StatusCode::kCorruption);
  if (!scanned.ok() && !hopeless) return std::move(scanned).status();
  auto table = std::make_shared<const Table>(
      Table{hopeless ? BlockTable() : std::move(scanned).value(), true});
  tables_.Put(segment, table, table->blocks.memory_bytes());
  return NotEmpty(segment, std::move(table));
}

Result<ChunkFinder::TablePtr> ChunkFinder::NotEmpty(SegmentId segment, TablePtr table) const {
  if (!table->blocks.blocks.empty()) return table;
  return Status(StatusCode::kCorruption, "no block of the segment is whole")
      .At(context_.segment_store->NameOf(segment));
}

Result<ChunkFinder::HeadPtr> ChunkFinder::HeadOf(const Location& location) {
  auto hinted = ReadHead(location.segment, location.block_offset);
  if (hinted.ok() && (*hinted)->head.Covers(location.ordinal)) return hinted;
  if (!hinted.ok() && hinted.status().Is(StatusCode::kNotFound)) return HeadPtr();  // no segment
  // The hint is wrong or its block is damaged. Find the block with the footer, or with a scan
  // of the blocks if the footer is damaged.
  Status failure;
  const auto nothing = [&]() -> Result<HeadPtr> {
    if (!failure.ok()) return failure;
    if (hinted.ok()) return HeadPtr();
    return std::move(hinted).status();
  };
  for (const auto table_of : {&ChunkFinder::TableOf, &ChunkFinder::ScannedTableOf}) {
    const auto table = (this->*table_of)(location.segment);
    if (!table.ok()) {
      if (table.status().Is(StatusCode::kInvalidArgument)) return nothing();
      return table.status();
    }
    const auto found = (*table)->blocks.Find(location.ordinal);
    if (!found) continue;
    auto head = ReadHead(location.segment, found->place.block_offset);
    if (head.ok() && (*head)->head.Covers(location.ordinal)) return head;
    if (head.ok()) continue;
    failure = std::move(head).status();
    failure.IgnoreError("the table may be damaged");
  }
  return nothing();
}

Result<std::optional<ChunkRecord>> ChunkFinder::RecordAt(const Location& location) {
  SILTFS_ASSIGN_OR_RETURN(const HeadPtr head, HeadOf(location));
  if (!head) return std::optional<ChunkRecord>();
  return std::optional(head->head.records[location.ordinal - head->head.first_ordinal]);
}

Result<std::optional<ChunkRecord>> ChunkFinder::WholeAt(const Location& location) {
  SILTFS_ASSIGN_OR_RETURN(const HeadPtr head, HeadOf(location));
  if (!head) return std::optional<ChunkRecord>();
  const uint32_t position = location.ordinal - head->head.first_ordinal;
  if (head->head.codec == BlockCodecId::kZstdDelta) {
    SILTFS_ASSIGN_OR_RETURN(auto reader, Open(location.segment));
    SILTFS_ASSIGN_OR_RETURN(const auto deltas, reader->ReadDeltaBases(head->offset));
    const bool is_delta = std::any_of(deltas.begin(), deltas.end(), [&](const DeltaBase& delta) {
      return delta.position == position;
    });
    if (is_delta) return std::optional<ChunkRecord>();
  }
  return std::optional(head->head.records[position]);
}

Result<ChunkFinder::Block> ChunkFinder::BlockOf(const Location& location) {
  SILTFS_ASSIGN_OR_RETURN(const HeadPtr head, HeadOf(location));
  if (head) return *head;
  return Status(StatusCode::kNotFound, "there is no such chunk in the segment")
      .At(context_.store());
}

Result<std::shared_ptr<const Bytes>> ChunkFinder::ReadAt(const Location& location,
                                                         BaseSource* bases) {
  SILTFS_ASSIGN_OR_RETURN(const Block at, BlockOf(location));
  SILTFS_ASSIGN_OR_RETURN(auto reader, Open(location.segment));
  SILTFS_ASSIGN_OR_RETURN(const DecodedBlockPtr block,
                          reader->ReadBlock(at.offset, kUsualBlockBytes, bases));
  const uint32_t position = location.ordinal - at.head.first_ordinal;
  if (const Status* missing = block->missing(position)) {
    if (missing->Is(StatusCode::kIoError)) return *missing;
    return Status(StatusCode::kCorruption, std::string(missing->cause()))
        .At(reader->path(), at.offset);
  }
  const ByteView bytes = block->chunk(position);
  return std::make_shared<const Bytes>(bytes.begin(), bytes.end());
}

}  // namespace siltfs
