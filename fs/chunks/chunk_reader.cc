#include "fs/chunks/chunk_reader.h"

#include <fmt/format.h>

#include <utility>

namespace siltfs {
namespace {

ChunkReader::Found Owned(Buffer bytes) {
  const auto owner = std::make_shared<const Buffer>(std::move(bytes));
  return {owner, ByteView(*owner)};
}

}  // namespace

ChunkReader::ChunkReader(SegmentCache& segments, ChunkIndex& index, FooterCache& windows,
                         DamageList& damage, Options options)
    : segments_(segments),
      windows_(windows),
      damage_(damage),
      store_(std::move(options.store)),
      is_right_(std::move(options.is_right)),
      blocks_(segments, damage, options.block_cache_bytes, std::move(options.on_damage)),
      places_(segments, index, windows, damage, options.guide, std::move(options.unindexed)),
      bases_(segments, blocks_, places_, damage, is_right_) {}

std::optional<ChunkReader::Found> ChunkReader::Follow(const ChunkName& name, uint32_t length,
                                                      ReadCursor& read_cursor) {
  if (!read_cursor.block) return std::nullopt;
  if (read_cursor.next == read_cursor.block->chunk_count()) {
    // The next block begins where this one ends.
    const BlockHead& head = read_cursor.block->head();
    const uint32_t offset = read_cursor.block_offset + head.total_bytes();
    if (read_cursor.file == SegmentFile::kUnknown) return std::nullopt;
    auto next = blocks_.FindCached({head.segment, read_cursor.file, offset});
    if (!next) return std::nullopt;
    read_cursor = {std::move(next), offset, read_cursor.file, 0};
  }
  const ChunkRecord& record = read_cursor.block->records()[read_cursor.next];
  if (record.name != name || record.length != length) return std::nullopt;
  const BlockHead& head = read_cursor.block->head();
  if (damage_.Contains(head.segment, head.first_ordinal + static_cast<uint32_t>(read_cursor.next)))
    return std::nullopt;  // Get examines the chunk more closely
  if (read_cursor.block->missing(read_cursor.next) != nullptr) {
    auto inflated = segments_.codec().Inflate(*read_cursor.block, read_cursor.next, bases_);
    if (!inflated.ok()) {
      inflated.status().IgnoreError("Get finds the reason");
      return std::nullopt;
    }
    ++read_cursor.next;
    return Owned(std::move(inflated).value());
  }
  const ByteView bytes = read_cursor.block->chunk(read_cursor.next++);
  return Found{read_cursor.block, bytes};
}

std::optional<ChunkReader::Found> ChunkReader::FindAt(const Location& location,
                                                      const ChunkName& name, uint32_t length,
                                                      ReadCursor& read_cursor) {
  if (auto found = Follow(name, length, read_cursor)) return found;
  if (location.segment == kNoSegment) return std::nullopt;
  auto found = ReadAt(location, true, name, length, Effort::kReadOnce, read_cursor);
  found.status().IgnoreError("Get searches elsewhere, and reports the failure");
  return found.ok() ? *std::move(found) : std::nullopt;
}

Result<ChunkReader::Found> ChunkReader::Get(const ChunkName& name, uint32_t length,
                                            ReadCursor& read_cursor) {
  if (auto found = Follow(name, length, read_cursor)) return *std::move(found);
  std::optional<Found> found;
  ChunkPlaces::Damage damage;
  const auto attempt = [&](const Location& location, bool offset_known) -> Result<bool> {
    SILTFS_ASSIGN_OR_RETURN(
        found, ReadAt(location, offset_known, name, length, Effort::kSearchBase, read_cursor));
    return found.has_value();
  };
  const auto companions = [this](const std::optional<Location>& led_to) {
    return LostTogether(led_to);
  };
  if (places_.Visit(name, ChunkPlaces::Effort::kSearchAll, companions, attempt, damage))
    return *std::move(found);
  if (!damage.first().ok()) return damage.first();
  return Status(StatusCode::kCorruption, fmt::format("chunk {} is in no segment", name.ToHex()))
      .At(store_);
}

Result<std::optional<ChunkRecord>> ChunkReader::RecordAt(const Location& location) {
  return RecordAt(location, /*inflate=*/false);
}

Result<std::optional<ChunkRecord>> ChunkReader::ReadableAt(const Location& location) {
  return RecordAt(location, /*inflate=*/true);
}

Result<std::optional<ChunkRecord>> ChunkReader::RecordAt(const Location& location, bool inflate) {
  Status hint_failure;
  SILTFS_ASSIGN_OR_RETURN(const BlockReader::Block at,
                          blocks_.BlockAt(location, true, hint_failure));
  hint_failure.IgnoreError("the segment has no such ordinal");
  if (!at.block) return std::optional<ChunkRecord>();
  const size_t i = location.ordinal - at.block->head().first_ordinal;
  if (inflate && at.block->missing(i) != nullptr)
    SILTFS_RETURN_IF_ERROR(Inflate(location, at, Effort::kSearchBase).status());
  return std::optional(at.block->records()[i]);
}

Result<std::optional<ChunkReader::Found>> ChunkReader::ReadAt(const Location& location,
                                                              bool offset_known,
                                                              const ChunkName& name,
                                                              uint32_t length, Effort effort,
                                                              ReadCursor& read_cursor) {
  Status hint_failure;
  SILTFS_ASSIGN_OR_RETURN(const BlockReader::Block at,
                          blocks_.BlockAt(location, offset_known, hint_failure));
  const DecodedBlockPtr& block = at.block;
  if (!block && !hint_failure.ok()) return hint_failure;
  if (!block) return std::optional<Found>();
  const size_t i = location.ordinal - block->head().first_ordinal;
  const ChunkRecord& record = block->records()[i];
  if (record.name != name || record.length != length) return std::optional<Found>();
  Found found{block, block->chunk(i)};
  if (block->missing(i) != nullptr) {
    SILTFS_ASSIGN_OR_RETURN(found, Inflate(location, at, effort));
  }
  const bool listed = damage_.Contains(location.segment, location.ordinal);
  if (listed && is_right_ && !is_right_(record, found.bytes)) {
    return Status(StatusCode::kCorruption,
                  fmt::format("the bytes of chunk {} do not match its name or tag", name.ToHex()))
        .At(segments_.store().NameOf(location.segment), at.offset);
  }
  read_cursor = {block, at.offset, at.file, i + 1};
  return std::optional(std::move(found));
}

Result<ChunkReader::Found> ChunkReader::Inflate(const Location& location,
                                                const BlockReader::Block& at, Effort effort) {
  const size_t i = location.ordinal - at.block->head().first_ordinal;
  const BlockCodec& codec = segments_.codec();
  auto inflated = codec.Inflate(*at.block, i, bases_);
  if (!inflated.ok() && effort == Effort::kSearchBase) {
    inflated.status().IgnoreError("the base is searched in all segments");
    BasesOfSegment searched(bases_, location.segment);
    inflated = codec.Inflate(*at.block, i, searched);
    // Other failures, such as a device error, may be temporary, and do not count as damage.
    if (inflated.status().Is(StatusCode::kCorruption) ||
        inflated.status().Is(StatusCode::kNotFound)) {
      blocks_.NoteDelta(location, at.block->records()[i]);
      return Status(StatusCode::kCorruption, std::string(inflated.status().cause()))
          .At(segments_.store().NameOf(location.segment), at.offset);
    }
  }
  if (!inflated.ok()) return std::move(inflated).status();
  return Owned(std::move(inflated).value());
}

void ChunkReader::PrefetchBases(const DecodedBlock& block, uint32_t first, uint32_t last) {
  const uint32_t begin = block.head().first_ordinal;
  for (const DeltaBase& delta : block.bases()) {
    if (begin + delta.position < first) continue;
    if (begin + delta.position > last) return;
    bases_.ReadBase(delta.base).status().IgnoreError("the read that needs the base reports it");
  }
}

void ChunkReader::Prefetch(const Place& place, uint32_t last) {
  const SegmentFile file = segments_.FileOf(place.segment);
  if (file == SegmentFile::kUnknown) return;
  if (file == place.file) {
    if (const auto block = blocks_.FindCached({place.segment, place.file, place.block_offset}))
      return PrefetchBases(*block, place.ordinal, last);
  }
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
  blocks_.Prefetch(segment, offset, bytes);
  const auto block = blocks_.FindCached({place.segment, segment.file, offset});
  if (block) PrefetchBases(*block, place.ordinal, last);
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
  const auto hit = places_.FindInWindows(name);
  if (!hit) return std::nullopt;
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
    places_.LookUp(asked, locations);
    for (size_t k = 0; k < count; ++k) {
      const size_t i = unknown[k];
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

// One search covers all these chunks.
std::vector<uint64_t> ChunkReader::LostTogether(const std::optional<Location>& location) const {
  std::vector<uint64_t> prefixes;
  if (!location) return prefixes;
  for (const DamagedChunk& chunk : damage_.ChunksAround(location->segment, location->ordinal)) {
    if (chunk.known()) prefixes.push_back(chunk.name_prefix);
  }
  return prefixes;
}

}  // namespace siltfs
