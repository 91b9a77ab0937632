#include "fs/dedup/relocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace siltfs {
namespace {

// How many entries are moved at once, while nothing else is appended.
constexpr size_t kMovesAtOnce = 256;

// An entry may name any ordinal.
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

Result<std::vector<uint32_t>> Relocator::ToCopy(const Source& source, const BlockHead& head) {
  std::vector<uint32_t> live;  // by their place in the block
  std::vector<ChunkName> names;
  for (uint32_t i = 0; i < head.records.size(); ++i) {
    if (!source.is_live(head.first_ordinal + i)) continue;
    live.push_back(i);
    names.push_back(head.records[i].name);
  }
  std::vector<std::optional<Location>> places(names.size());
  SILTFS_RETURN_IF_ERROR(index_.Get(names, places));
  const auto lies_elsewhere = [&](size_t k) {
    if (!places[k]) return false;
    // Of two copies in this segment the one is copied to which the index leads.
    const bool same_segment = places[k]->segment == source.segment;
    if (same_segment && !IsOtherLiveCopy(source, head.first_ordinal + live[k], places[k]->ordinal))
      return false;
    if (!same_segment && options_.gone(places[k]->segment)) return false;
    if (options_.is_damaged(places[k]->segment, places[k]->ordinal)) return false;
    const auto record = reader_.RecordAt(*places[k]);
    if (!record.ok()) {
      record.status().IgnoreError("what cannot be read there is copied");
      return false;
    }
    const ChunkRecord& here = head.records[live[k]];
    return *record && (*record)->name == here.name && (*record)->tag == here.tag;
  };
  std::vector<uint32_t> wanted;
  for (size_t k = 0; k < live.size(); ++k) {
    if (lies_elsewhere(k)) {
      found_elsewhere_ = true;
    } else {
      wanted.push_back(live[k]);
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
    return Status(StatusCode::kCorruption, "the block is not the one that the footer has here")
        .At(reader.path(), place.block_offset);
  }
  SILTFS_ASSIGN_OR_RETURN(const std::vector<uint32_t> wanted, ToCopy(source, head));
  if (wanted.empty()) return Status::Ok();
  for (const uint32_t i : wanted) {
    if (!options_.is_damaged(source.segment, head.first_ordinal + i)) continue;
    return Status(StatusCode::kCorruption, "something that is in use is damaged")
        .At(reader.path(), place.block_offset);
  }
  SILTFS_RETURN_IF_ERROR(options_.pace(head.plain_bytes));
  const SegmentKind kind = source.footer.trailer.kind;
  const size_t waiting = open_[static_cast<size_t>(kind)].content.plain.size();
  const bool dense = source.settled && head.plain_bytes >= options_.block_plain_bytes / 2;
  if (dense && wanted.size() == head.records.size() &&
      (waiting == 0 || waiting >= options_.block_plain_bytes / 2)) {
    SILTFS_RETURN_IF_ERROR(FlushBlock(kind));
    SILTFS_ASSIGN_OR_RETURN(const EncodedBlock block, reader.ReadEncodedBlock(place.block_offset));
    return CopyVerbatim(kind, source, head, block);
  }
  std::optional<Result<DecodedBlockPtr>> block;
  options_.run([&] { block.emplace(reader.ReadBlock(place.block_offset, head.total_bytes())); });
  if (!block->ok()) return std::move(*block).status();
  for (const uint32_t i : wanted) {
    SILTFS_RETURN_IF_ERROR(Add(kind, head.records[i], (**block)->chunk(i),
                               {source.segment, head.first_ordinal + i, place.block_offset}));
  }
  return Status::Ok();
}

Status Relocator::CopyVerbatim(SegmentKind kind, const Source& source, const BlockHead& head,
                               const EncodedBlock& block) {
  std::vector<Location> from;
  for (uint32_t i = 0; i < head.records.size(); ++i)
    from.push_back({source.segment, head.first_ordinal + i, 0});
  return Append(kind, block, from);
}

Status Relocator::Add(SegmentKind kind, const ChunkRecord& record, ByteView bytes,
                      const Location& from) {
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
                         const std::vector<Location>& from) {
  SILTFS_RETURN_IF_ERROR(full_);
  auto moved = pipeline_.AppendMoved(kind, block);
  if (moved.status().Is(StatusCode::kNoSpace)) {
    full_ = moved.status();
    full_.IgnoreError("it is this call's outcome, too");
  }
  SILTFS_ASSIGN_OR_RETURN(const AppendedBlock appended, std::move(moved));
  uint32_t ordinal = appended.place.first_ordinal;
  for (size_t i = 0; i < from.size(); ++i) {
    moves_.push_back({block.records[i].name,
                      from[i],
                      {appended.segment, ordinal++, appended.place.block_offset}});
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
