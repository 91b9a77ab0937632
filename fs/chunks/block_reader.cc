#include "fs/chunks/block_reader.h"

#include <optional>
#include <utility>

#include "fs/segments/damaged_block.h"

namespace siltfs {
namespace {

// True if a failure means that the chunk is not at the place, and not that the device failed.
bool MeansNotHere(const Status& status) {
  return status.Is(StatusCode::kNotFound) || status.Is(StatusCode::kInvalidArgument);
}

// A larger size in the block table is not the size of a block: the table is wrong, or there is
// damage between two blocks.
constexpr size_t kMaxExpectedBytes = 1u << 20;

}  // namespace

size_t ExpectedBytes(const BlockTable::Found& found) {
  const bool likely = found.bytes > 0 && found.bytes <= kMaxExpectedBytes;
  return likely ? found.bytes : kUsualBlockBytes;
}

BlockReader::BlockReader(SegmentCache& segments, DamageList& damage, size_t cache_bytes,
                         std::function<void()> on_damage)
    : segments_(segments),
      damage_(damage),
      on_damage_(std::move(on_damage)),
      blocks_(cache_bytes) {}

Result<BlockReader::Block> BlockReader::BlockAt(const Location& location, bool offset_known,
                                                Status& hint_failure) {
  auto found = FindBlockAt(location, offset_known, hint_failure);
  // A device error may be temporary, and does not count as damage.
  if (!found.ok() && found.status().Is(StatusCode::kCorruption)) NoteDamage(location);
  return found;
}

void BlockReader::Note(const DamagedBlock& damaged) {
  if (damage_.Add(damaged) && on_damage_) on_damage_();
}

void BlockReader::NoteDamage(const Location& location) {
  if (damage_.Contains(location.segment, location.ordinal)) return;
  const auto opened = segments_.Open(location.segment);
  if (!opened.ok()) return opened.status().IgnoreError("the segment is gone, or the device fails");
  Note(IdentifyDamage(segments_, **opened, location.ordinal));
}

void BlockReader::NoteDelta(const Location& location, const ChunkRecord& record) {
  Note({location.segment, location.ordinal, {DamagedChunkOf(record)}});
}

Result<BlockReader::Block> BlockReader::FindBlockAt(const Location& location, bool offset_known,
                                                    Status& hint_failure) {
  if (offset_known && segments_.FileOf(location.segment) == SegmentFile::kOriginal) {
    // Try the cache of decoded blocks first, because this needs no open file.
    const BlockCache::Place place{location.segment, SegmentFile::kOriginal, location.block_offset};
    auto block = blocks_.Find(place);
    if (block && block->head().Covers(location.ordinal))
      return Block{std::move(block), location.block_offset, SegmentFile::kOriginal};
  }
  auto opened = segments_.Open(location.segment);
  if (!opened.ok()) {
    if (MeansNotHere(opened.status())) return Block();
    return std::move(opened).status();
  }
  const OpenSegment& segment = **opened;
  // Set if no block can be read at the offset. Either the block is damaged, or the hint is wrong
  // and no block begins at the offset.
  Status damage;
  // The index has the offsets of blocks in the original file of the segment. In a recompressed file
  // they are wrong.
  if (offset_known && segment.file == SegmentFile::kOriginal) {
    auto block = ReadBlock(segment, location.block_offset, kUsualBlockBytes);
    if (block.ok()) {
      if ((*block)->head().Covers(location.ordinal))
        return Block{*block, location.block_offset, segment.file};
    } else {
      damage = std::move(block).status();
      damage.IgnoreError("irrelevant if there is no block at this offset");
    }
  }
  // Find the block by its ordinals in the block table, which needs no hint.
  auto place = segments_.FindBlock(segment, location.ordinal);
  if (!place.ok() && !offset_known && MeansNotHere(place.status())) {
    // An unsealed segment has no block table, only blocks.
    place = segments_.FindBlockByScan(segment, location.ordinal);
  }
  if (!place.ok()) {
    if (!damage.ok()) return damage;
    if (MeansNotHere(place.status())) return Block();
    return std::move(place).status();
  }
  if (!*place) {
    hint_failure = std::move(damage);
    return Block();
  }
  const uint32_t offset = (*place)->place.block_offset;
  if (!damage.ok() && offset == location.block_offset) return damage;
  auto block = ReadBlock(segment, offset, ExpectedBytes(**place));
  if (block.ok() && (*block)->head().Covers(location.ordinal))
    return Block{std::move(block).value(), offset, segment.file};
  if (!block.ok() && !block.status().Is(StatusCode::kCorruption)) return std::move(block).status();
  // The block table may be damaged, so scan the blocks.
  auto scanned = segments_.FindBlockByScan(segment, location.ordinal);
  if (!scanned.ok()) {
    scanned.status().IgnoreError("the failure at the table's place says more");
  } else if (*scanned && (*scanned)->place.block_offset != offset) {
    const uint32_t found = (*scanned)->place.block_offset;
    block = ReadBlock(segment, found, ExpectedBytes(**scanned));
    if (block.ok() && (*block)->head().Covers(location.ordinal))
      return Block{std::move(block).value(), found, segment.file};
  }
  if (!block.ok()) return std::move(block).status();
  if (!damage.ok()) return damage;
  return Status(StatusCode::kCorruption, "the chunk was damaged when its segment was sealed")
      .At(segment.reader->path(), offset);
}

Result<DecodedBlockPtr> BlockReader::ReadBlock(const OpenSegment& segment, uint32_t offset,
                                               size_t expected_bytes) {
  const auto decode = [&] { return segment.reader->ReadBlock(offset, expected_bytes); };
  if (segment.file == SegmentFile::kUnknown) return decode();
  return blocks_.Get({segment.id, segment.file, offset}, decode);
}

void BlockReader::Prefetch(const OpenSegment& segment, uint32_t offset, size_t expected_bytes) {
  if (segment.file == SegmentFile::kUnknown) return;
  blocks_.Prefetch({segment.id, segment.file, offset},
                   [&] { return segment.reader->ReadBlock(offset, expected_bytes); });
}

}  // namespace siltfs
