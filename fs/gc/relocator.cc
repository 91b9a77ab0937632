#include "fs/gc/relocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace siltfs {
namespace {

// How many index entries are moved in one step. No other thread can append a block during a step.
constexpr size_t kMovesAtOnce = 256;

// Whether the ordinal `there` is another live chunk of the segment. `there` comes from an index
// entry, so the segment may have no such ordinal.
bool IsOtherLiveCopy(const Relocator::Source& source, uint32_t here, uint32_t there) {
  return there != here && there < source.footer.trailer.chunk_count && source.is_live(there);
}

}  // namespace

Relocator::Relocator(ChunkIndex& index, SegmentCache& segments, ChunkReader& reader,
                     BlockPipeline& pipeline, const BlockCodec& codec, Options options)
    : index_(index),
      segments_(segments),
      reader_(reader),
      pipeline_(pipeline),
      codec_(codec),
      options_(std::move(options)) {}

Status Relocator::CopyLive(const Source& source) {
  SILTFS_ASSIGN_OR_RETURN(const OpenSegmentPtr opened, segments_.Open(source.segment));
  const std::vector<BlockPlace>& blocks = source.footer.blocks;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint32_t end =
        i + 1 < blocks.size() ? blocks[i + 1].first_ordinal : source.footer.trailer.chunk_count;
    uint32_t ordinal = blocks[i].first_ordinal;
    while (ordinal < end && !source.is_live(ordinal)) ++ordinal;
    if (ordinal < end) SILTFS_RETURN_IF_ERROR(CopyBlock(source, blocks[i], end, *opened->reader));
  }
  return Status::Ok();
}

bool Relocator::IsThere(const Location& place, const ChunkRecord& record, bool must_stay_whole) {
  if (options_.is_damaged(place.segment, place.ordinal)) return false;
  if (must_stay_whole && !reader_.bases().StaysWholeAt(place, record)) return false;
  // The chunk of this segment is removed, so a delta there must be readable.
  const auto there = reader_.ReadableAt(place);
  if (!there.ok()) {
    there.status().IgnoreError("the other copy is unreadable, so copy this one");
    return false;
  }
  return *there && (*there)->name == record.name && (*there)->tag == record.tag;
}

Result<std::vector<Relocator::Wanted>> Relocator::ToCopy(const Source& source,
                                                         const BlockHead& head) {
  std::vector<uint32_t> live;  // by index in the block
  std::vector<ChunkName> names;
  for (uint32_t i = 0; i < head.records.size(); ++i) {
    if (!source.is_live(head.first_ordinal + i)) continue;
    live.push_back(i);
    names.push_back(head.records[i].name);
  }
  std::vector<std::optional<Location>> places(names.size());
  SILTFS_RETURN_IF_ERROR(index_.Get(names, places));
  std::vector<Wanted> wanted;
  for (size_t k = 0; k < live.size(); ++k) {
    const std::optional<Location>& place = places[k];
    const bool same_segment = place && place->segment == source.segment;
    // If this segment has two live copies of a chunk, copy only the one that the index leads to.
    const bool leads_elsewhere =
        place &&
        (same_segment ? IsOtherLiveCopy(source, head.first_ordinal + live[k], place->ordinal)
                      : !options_.gone(place->segment));
    // The copy of a base must be whole, and must not become a delta later. A copy of this segment
    // is copied, and so becomes whole.
    const bool must_stay_whole = leads_elsewhere && !same_segment && source.is_base &&
                                 source.is_base(head.first_ordinal + live[k]);
    if (!leads_elsewhere) {
      wanted.push_back({live[k], std::nullopt});
    } else if (IsThere(*place, head.records[live[k]], must_stay_whole)) {
      found_elsewhere_ = true;
    } else {
      if (!same_segment) SILTFS_RETURN_IF_ERROR(options_.leave_copy(place->segment));
      wanted.push_back({live[k], place});
    }
  }
  return wanted;
}

Status Relocator::CopyBlock(const Source& source, const BlockPlace& place, uint32_t end_ordinal,
                            const SegmentReader& reader) {
  auto read = reader.ReadBlockHead(place.block_offset);
  if (read.status().Is(StatusCode::kCorruption) && source.lies_elsewhere &&
      source.lies_elsewhere(place.first_ordinal, end_ordinal)) {
    found_elsewhere_ = true;
    return Status::Ok();
  }
  SILTFS_ASSIGN_OR_RETURN(const BlockHead head, std::move(read));
  if (head.first_ordinal != place.first_ordinal || head.end_ordinal() != end_ordinal) {
    return Status(StatusCode::kCorruption, "the block does not match the footer")
        .At(reader.path(), place.block_offset);
  }
  SILTFS_ASSIGN_OR_RETURN(const std::vector<Wanted> wanted, ToCopy(source, head));
  if (wanted.empty()) return Status::Ok();
  std::vector<Origin> from;
  for (const Wanted& chunk : wanted) {
    const uint32_t ordinal = head.first_ordinal + chunk.number;
    if (options_.is_damaged(source.segment, ordinal)) {
      return Status(StatusCode::kCorruption, "a chunk that is in use is damaged")
          .At(reader.path(), place.block_offset);
    }
    from.push_back({{source.segment, ordinal, place.block_offset}, chunk.misled});
  }
  SILTFS_RETURN_IF_ERROR(options_.pace(head.plain_bytes));
  const SegmentKind kind = source.footer.trailer.kind;
  const size_t waiting = open_[static_cast<size_t>(kind)].content.plain.size();
  const bool dense = source.recompressed && head.plain_bytes >= options_.block_plain_bytes / 2;
  const bool whole = head.codec != BlockCodecId::kZstdDelta;
  if (dense && whole && wanted.size() == head.records.size() &&
      (waiting == 0 || waiting >= options_.block_plain_bytes / 2)) {
    SILTFS_RETURN_IF_ERROR(FlushBlock(kind));
    SILTFS_ASSIGN_OR_RETURN(const EncodedBlock block, reader.ReadEncodedBlock(place.block_offset));
    return Append(kind, block, from);
  }
  std::optional<Result<DecodedBlockPtr>> block;
  BasesOfSegment bases(reader_.bases(), source.segment);
  options_.run(
      [&] { block.emplace(reader.ReadBlock(place.block_offset, head.total_bytes(), &bases)); });
  if (!block->ok()) return std::move(*block).status();
  for (size_t k = 0; k < wanted.size(); ++k) {
    const uint32_t i = wanted[k].number;
    if (const Status* missing = (**block)->missing(i)) {
      const bool device = missing->Is(StatusCode::kIoError);
      return Status(device ? StatusCode::kIoError : StatusCode::kCorruption,
                    std::string(missing->cause()))
          .At(reader.path(), place.block_offset);
    }
    SILTFS_RETURN_IF_ERROR(Add(kind, head.records[i], (**block)->chunk(i), from[k]));
  }
  return Status::Ok();
}

Status Relocator::Add(SegmentKind kind, const ChunkRecord& record, ByteView bytes,
                      const Origin& from) {
  OpenBlock* open = &open_[static_cast<size_t>(kind)];
  const size_t size = open->content.plain.size();
  if (size >= options_.block_plain_bytes || size + bytes.size() > kMaxBlockPlainBytes ||
      open->content.records.size() == kMaxBlockChunks) {
    SILTFS_RETURN_IF_ERROR(FlushBlock(kind));
  }
  open->content.records.push_back(record);
  open->content.plain.insert(open->content.plain.end(), bytes.begin(), bytes.end());
  open->from.push_back(from);
  return Status::Ok();
}

Status Relocator::FlushBlock(SegmentKind kind) {
  OpenBlock& open = open_[static_cast<size_t>(kind)];
  if (open.content.records.empty()) return Status::Ok();
  OpenBlock full = std::exchange(open, {});
  Compression compression = options_.compression;
  if (kind == SegmentKind::kRecipeNodes) compression.codec = BlockCodecId::kNone;
  std::optional<Result<EncodedBlock>> encoded;
  options_.run([&] { encoded.emplace(codec_.Encode(std::move(full.content), compression)); });
  if (!encoded->ok()) return std::move(*encoded).status();
  return Append(kind, **encoded, full.from);
}

Status Relocator::Append(SegmentKind kind, const EncodedBlock& block,
                         const std::vector<Origin>& from) {
  SILTFS_RETURN_IF_ERROR(full_);
  auto moved = pipeline_.AppendMoved(kind, block);
  if (moved.status().Is(StatusCode::kNoSpace)) {
    full_ = moved.status();
    full_.IgnoreError("this call returns it, too");
  }
  SILTFS_ASSIGN_OR_RETURN(const AppendedBlock appended, std::move(moved));
  uint32_t ordinal = appended.place.first_ordinal;
  for (size_t i = 0; i < from.size(); ++i) {
    moves_.push_back({block.records[i].name,
                      from[i].place,
                      {appended.segment, ordinal++, appended.place.block_offset},
                      from[i].misled});
  }
  bytes_copied_ += block.total_bytes();
  return Status::Ok();
}

Status Relocator::Flush() {
  SILTFS_RETURN_IF_ERROR(full_);
  SILTFS_RETURN_IF_ERROR(FlushBlock(SegmentKind::kData));
  return FlushBlock(SegmentKind::kRecipeNodes);
}

Status Relocator::MoveEntries() {
  SILTFS_RETURN_IF_ERROR(full_);
  const std::span<const BlockPipeline::Move> all(moves_);
  for (size_t begin = 0; begin < all.size(); begin += kMovesAtOnce) {
    const auto some = all.subspan(begin, std::min(kMovesAtOnce, all.size() - begin));
    SILTFS_RETURN_IF_ERROR(pipeline_.MoveEntries(some, options_.gone));
  }
  moves_.clear();
  found_elsewhere_ = false;
  return Status::Ok();
}

}  // namespace siltfs
