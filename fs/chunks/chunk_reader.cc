#include "fs/chunks/chunk_reader.h"

#include <fmt/format.h>

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

size_t ExpectedBytes(const BlockTable::Found& found) {
  const bool likely = found.bytes > 0 && found.bytes <= kMaxExpectedBytes;
  return likely ? found.bytes : kUsualBlockBytes;
}

}  // namespace

class ChunkReader::Damage {
 public:
  void Note(Status status) {
    status.IgnoreError("irrelevant if the chunk is found elsewhere");
    if (!first_.ok()) return;
    first_ = std::move(status);
    first_.IgnoreError("as before");
  }
  const Status& first() const { return first_; }

 private:
  Status first_;
};

ChunkReader::ChunkReader(SegmentCache& segments, ChunkIndex& index, FooterCache& windows,
                         DamageList& damage, Options options)
    : segments_(segments),
      index_(index),
      windows_(windows),
      damage_(damage),
      store_(std::move(options.store)),
      search_(segments, options.guide),
      on_damage_(std::move(options.on_damage)),
      is_right_(std::move(options.is_right)),
      blocks_(options.block_cache_bytes) {
  for (const IndexEntry& entry : options.unindexed) unindexed_[entry.name] = entry.location;
}

std::optional<ChunkReader::Found> ChunkReader::Follow(const ChunkName& name, uint32_t length,
                                                      ReadCursor& read_cursor) {
  if (!read_cursor.block) return std::nullopt;
  if (read_cursor.next == read_cursor.block->chunk_count()) {
    // The next block begins where this one ends.
    const BlockHead& head = read_cursor.block->head();
    const uint32_t offset = read_cursor.block_offset + head.total_bytes();
    if (read_cursor.file == SegmentFile::kUnknown) return std::nullopt;
    auto next = blocks_.Find({head.segment, read_cursor.file, offset});
    if (!next) return std::nullopt;
    read_cursor = {std::move(next), offset, read_cursor.file, 0};
  }
  const ChunkRecord& record = read_cursor.block->records()[read_cursor.next];
  if (record.name != name || record.length != length) return std::nullopt;
  const BlockHead& head = read_cursor.block->head();
  if (damage_.Contains(head.segment, head.first_ordinal + static_cast<uint32_t>(read_cursor.next)))
    return std::nullopt;  // Get examines the chunk more closely
  const ByteView bytes = read_cursor.block->chunk(read_cursor.next++);
  return Found{read_cursor.block, bytes};
}

std::optional<ChunkReader::Found> ChunkReader::FindAt(const Location& location,
                                                      const ChunkName& name, uint32_t length,
                                                      ReadCursor& read_cursor) {
  if (auto found = Follow(name, length, read_cursor)) return found;
  if (location.segment == kNoSegment) return std::nullopt;
  auto found = ReadAt(location, true, name, length, read_cursor);
  found.status().IgnoreError("Get searches elsewhere, and reports the failure");
  return found.ok() ? *std::move(found) : std::nullopt;
}

Result<ChunkReader::Found> ChunkReader::Get(const ChunkName& name, uint32_t length,
                                            ReadCursor& read_cursor) {
  if (auto found = Follow(name, length, read_cursor)) return *std::move(found);
  Damage damage;
  auto attempt = [&](const Location& location, bool offset_known) -> std::optional<Found> {
    auto found = ReadAt(location, offset_known, name, length, read_cursor);
    if (found.ok()) return std::move(found).value();
    damage.Note(std::move(found).status());
    return std::nullopt;
  };
  // Skip a damaged place in the footer cache: once a chunk is healed, the index leads to the
  // undamaged copy.
  const auto hit = windows_.Find(name);
  if (hit && !damage_.Contains(hit->segment, hit->ordinal)) {
    if (auto found = attempt({hit->segment, hit->ordinal, 0}, false)) return *found;
  }
  if (auto extra = unindexed_.find(name); extra != unindexed_.end()) {
    if (auto found = attempt(extra->second, true)) return *found;
  }
  auto location = index_.Get(name);
  if (!location.ok()) {
    location.status().IgnoreError("the segments are searched");
  } else if (*location) {
    if (auto found = attempt(**location, true)) {
      LoadWindow((*location)->segment, (*location)->ordinal);
      return *found;
    }
  }
  const std::optional<Location> led_to = location.ok() ? *location : std::nullopt;
  if (auto found = SearchSegments(name, length, led_to, damage, read_cursor)) return *found;
  if (!damage.first().ok()) return damage.first();
  return Status(StatusCode::kCorruption, fmt::format("chunk {} is in no segment", name.ToHex()))
      .At(store_);
}

Result<std::optional<ChunkRecord>> ChunkReader::RecordAt(const Location& location) {
  Status hint_failure;
  SILTFS_ASSIGN_OR_RETURN(const Block at, BlockAt(location, true, hint_failure));
  hint_failure.IgnoreError("the segment has no such ordinal");
  if (!at.block) return std::optional<ChunkRecord>();
  return std::optional(at.block->records()[location.ordinal - at.block->head().first_ordinal]);
}

Result<ChunkReader::Block> ChunkReader::BlockAt(const Location& location, bool offset_known,
                                                Status& hint_failure) {
  auto found = FindBlockAt(location, offset_known, hint_failure);
  // A device error may be temporary, and does not count as damage.
  if (!found.ok() && found.status().Is(StatusCode::kCorruption)) NoteDamage(location);
  return found;
}

void ChunkReader::NoteDamage(const Location& location) {
  if (damage_.Contains(location.segment, location.ordinal)) return;
  const auto opened = segments_.Open(location.segment);
  if (!opened.ok()) return opened.status().IgnoreError("the segment is gone, or the device fails");
  if (damage_.Add(IdentifyDamage(segments_, **opened, location.ordinal)) && on_damage_)
    on_damage_();
}

Result<ChunkReader::Block> ChunkReader::FindBlockAt(const Location& location, bool offset_known,
                                                    Status& hint_failure) {
  if (offset_known && segments_.FileOf(location.segment) == SegmentFile::kOriginal) {
    // Try the cache of decoded blocks first, because this needs no open file.
    auto block = blocks_.Find({location.segment, SegmentFile::kOriginal, location.block_offset});
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
    auto block = ReadBlock(segment, location.block_offset);
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

Result<std::optional<ChunkReader::Found>> ChunkReader::ReadAt(const Location& location,
                                                              bool offset_known,
                                                              const ChunkName& name,
                                                              uint32_t length,
                                                              ReadCursor& read_cursor) {
  Status hint_failure;
  SILTFS_ASSIGN_OR_RETURN(Block at, BlockAt(location, offset_known, hint_failure));
  DecodedBlockPtr& block = at.block;
  if (!block && !hint_failure.ok()) return hint_failure;
  if (!block) return std::optional<Found>();
  const size_t i = location.ordinal - block->head().first_ordinal;
  const ChunkRecord& record = block->records()[i];
  if (record.name != name || record.length != length) return std::optional<Found>();
  const ByteView bytes = block->chunk(i);
  const bool listed = damage_.Contains(location.segment, location.ordinal);
  if (listed && is_right_ && !is_right_(record, bytes)) {
    return Status(StatusCode::kCorruption,
                  fmt::format("the bytes of chunk {} do not match its name or tag", name.ToHex()))
        .At(segments_.store().NameOf(location.segment), at.offset);
  }
  read_cursor = {block, at.offset, at.file, i + 1};
  return std::optional(Found{std::move(block), bytes});
}

Result<DecodedBlockPtr> ChunkReader::ReadBlock(const OpenSegment& segment, uint32_t offset,
                                               size_t expected_bytes) {
  if (segment.file == SegmentFile::kUnknown)
    return segment.reader->ReadBlock(offset, expected_bytes);
  return blocks_.Get({segment.id, segment.file, offset},
                     [&] { return segment.reader->ReadBlock(offset, expected_bytes); });
}

void ChunkReader::Prefetch(const Place& place) {
  const SegmentFile file = segments_.FileOf(place.segment);
  if (file == SegmentFile::kUnknown) return;
  if (file == place.file && blocks_.Find({place.segment, place.file, place.block_offset})) return;
  auto opened = segments_.Open(place.segment);
  if (!opened.ok()) return opened.status().IgnoreError("the read that needs the block reports it");
  const OpenSegment& segment = **opened;
  if (segment.file == SegmentFile::kUnknown) return;
  uint32_t offset = place.block_offset;
  size_t bytes = place.block_bytes;
  if (segment.file != place.file) {
    // The file was replaced after the place was found, so the chunk lies elsewhere in the new file.
    const auto found = segments_.FindBlock(segment, place.ordinal);
    if (!found.ok()) return found.status().IgnoreError("as above");
    if (!*found) return;
    offset = (*found)->place.block_offset;
    bytes = ExpectedBytes(**found);
  }
  blocks_.Prefetch({segment.id, segment.file, offset},
                   [&] { return segment.reader->ReadBlock(offset, bytes); });
}

std::optional<ChunkReader::Place> ChunkReader::PlaceOf(SegmentId segment, uint32_t ordinal,
                                                       const Place& last) {
  if (segment == last.segment && ordinal >= last.ordinal && ordinal < last.end_ordinal) {
    Place place = last;
    place.ordinal = ordinal;
    return place;
  }
  auto opened = segments_.Open(segment);
  if (!opened.ok()) {
    opened.status().IgnoreError("the place stays unknown");
    return std::nullopt;
  }
  auto found = segments_.FindBlock(**opened, ordinal);
  if (!found.ok()) {
    found.status().IgnoreError("the place stays unknown");
    return std::nullopt;
  }
  if (!*found) return std::nullopt;
  return Place{segment,
               ordinal,
               (*opened)->file,
               (*found)->place.block_offset,
               (*found)->end_ordinal,
               (*found)->plain_bytes,
               ExpectedBytes(**found)};
}

std::optional<ChunkReader::Place> ChunkReader::LocateInWindows(const ChunkName& name,
                                                               const Place& last) {
  if (last.segment != kNoSegment) {
    const uint32_t next = last.ordinal + 1;
    auto chunk = windows_.At(last.segment, next);
    if (!chunk && FooterCache::WindowStart(next) == next) {
      LoadWindow(last.segment, next);
      chunk = windows_.At(last.segment, next);
    }
    if (chunk && chunk->name_prefix == name.Prefix64()) return PlaceOf(last.segment, next, last);
  }
  const auto hit = windows_.Find(name);
  if (!hit || damage_.Contains(hit->segment, hit->ordinal)) return std::nullopt;
  return PlaceOf(hit->segment, hit->ordinal, last);
}

void ChunkReader::Locate(std::span<const ChunkName> names, Place& last,
                         std::span<std::optional<Place>> places) {
  std::vector<size_t> unknown;
  for (size_t i = 0; i < names.size(); ++i) unknown.push_back(i);
  const auto before = [&](size_t i) { return i > 0 && places[i - 1] ? *places[i - 1] : last; };
  const auto drop_known = [&] {
    std::erase_if(unknown, [&](size_t i) {
      places[i] = LocateInWindows(names[i], before(i));
      return places[i].has_value();
    });
  };
  const auto ask_index = [&](size_t count) {
    std::vector<ChunkName> asked;
    for (size_t k = 0; k < count; ++k) asked.push_back(names[unknown[k]]);
    std::vector<std::optional<Location>> locations(count);
    index_.Get(asked, locations).IgnoreError("these places stay unknown");
    for (size_t k = 0; k < count; ++k) {
      const size_t i = unknown[k];
      const auto extra = unindexed_.find(names[i]);
      if (extra != unindexed_.end()) locations[k] = extra->second;
      if (!locations[k]) continue;
      LoadWindow(locations[k]->segment, locations[k]->ordinal);
      places[i] = PlaceOf(locations[k]->segment, locations[k]->ordinal, before(i));
    }
    unknown.erase(unknown.begin(), unknown.begin() + static_cast<ptrdiff_t>(count));
  };
  drop_known();
  if (!unknown.empty()) {
    // The look-up of the first name loads footer entries, which mostly include the entries of the
    // next names.
    ask_index(1);
    drop_known();
    ask_index(unknown.size());
  }
  for (const auto& place : places) {
    if (place) last = *place;
  }
}

void ChunkReader::LoadWindow(SegmentId segment, uint32_t ordinal) {
  const uint32_t start = FooterCache::WindowStart(ordinal);
  auto window = segments_.Window(segment, start, FooterCache::kWindowChunks);
  if (window.ok()) windows_.Insert(segment, start, std::move(window).value());
}

// Returns the name prefixes of all chunks lost together with the chunk at `location`, so that one
// search covers them all.
std::vector<uint64_t> ChunkReader::LostTogether(const std::optional<Location>& location) const {
  std::vector<uint64_t> prefixes;
  if (!location) return prefixes;
  for (const DamagedChunk& chunk : damage_.ChunksAround(location->segment, location->ordinal)) {
    if (chunk.known()) prefixes.push_back(chunk.name_prefix);
  }
  return prefixes;
}

std::optional<ChunkReader::Found> ChunkReader::SearchSegments(
    const ChunkName& name, uint32_t length, const std::optional<Location>& location, Damage& damage,
    ReadCursor& read_cursor) {
  const std::vector<uint64_t> together = LostTogether(location);
  for (const auto extent : {SegmentSearch::Extent::kGuided, SegmentSearch::Extent::kAll}) {
    // The search may return remembered places that are stale. Then repeat the search once.
    for (int attempt = 0; attempt < 2; ++attempt) {
      const auto found = search_.Find(name.Prefix64(), together, extent);
      if (!found.ok()) {
        damage.Note(found.status());
        return std::nullopt;
      }
      bool stale = false;
      for (const Location& place : (*found)->places) {
        auto chunk = ReadAt(place, false, name, length, read_cursor);
        if (chunk.ok() && *chunk) {
          // The next chunks of the file probably lie there as well.
          LoadWindow(place.segment, place.ordinal);
          return std::move(chunk).value();
        }
        stale |= chunk.ok();
        if (!chunk.ok()) damage.Note(std::move(chunk).status());
      }
      if (!stale) {
        if ((*found)->all) return std::nullopt;
        break;
      }
      search_.Forget(name.Prefix64());
    }
  }
  return std::nullopt;
}

}  // namespace siltfs
