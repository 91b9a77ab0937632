#include "fs/chunks/base_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "store/segment/segment_reader.h"

namespace siltfs {
namespace {

// A search of all segments covers at most this many bases. SegmentSearch remembers about twice as
// many results.
constexpr size_t kMostCompanions = 8192;

bool IsDelta(const DecodedBlock& block, uint32_t position) {
  const auto& deltas = block.bases();
  const auto at = std::lower_bound(
      deltas.begin(), deltas.end(), position,
      [](const DeltaBase& delta, uint32_t wanted) { return delta.position < wanted; });
  return at != deltas.end() && at->position == position;
}

std::vector<uint64_t> NoCompanions(const std::optional<Location>&) { return {}; }

}  // namespace

BaseReader::BaseReader(SegmentCache& segments, BlockReader& blocks, ChunkPlaces& places,
                       const DamageList& damage, IsRightChunk is_right)
    : segments_(segments),
      blocks_(blocks),
      places_(places),
      damage_(damage),
      is_right_(std::move(is_right)) {}

Result<BaseBytes> BaseReader::ReadBase(const BaseRef& base) {
  return Read(base, ChunkPlaces::Effort::kLookUp, NoCompanions);
}

Result<BaseBytes> BaseReader::FindBase(const BaseRef& base, SegmentId dependent) {
  const auto companions = [&](const std::optional<Location>&) { return BasesOf(dependent); };
  return Read(base, ChunkPlaces::Effort::kSearchAll, companions);
}

Result<BaseBytes> BaseReader::Read(const BaseRef& base, ChunkPlaces::Effort effort,
                                   const ChunkPlaces::Companions& companions) {
  BaseBytes bytes;
  ChunkPlaces::Damage damage;
  const auto attempt = [&](const Location& location, bool offset_known) -> Result<bool> {
    return ReadAt(location, offset_known, base, bytes);
  };
  if (places_.Visit(base.name, effort, companions, attempt, damage)) return bytes;
  if (!damage.first().ok()) return damage.first();
  return Status(StatusCode::kNotFound,
                fmt::format("the base {} is in no segment", base.ToString()));
}

Result<bool> BaseReader::ReadAt(const Location& location, bool offset_known, const BaseRef& base,
                                BaseBytes& bytes) {
  Status hint_failure;
  SILTFS_ASSIGN_OR_RETURN(BlockReader::Block at,
                          blocks_.BlockAt(location, offset_known, hint_failure));
  if (!at.block && !hint_failure.ok()) return hint_failure;
  if (!at.block) return false;
  const uint32_t position = location.ordinal - at.block->head().first_ordinal;
  const ChunkRecord& record = at.block->records()[position];
  if (record.name != base.name || record.tag != base.tag || record.length != base.length)
    return false;
  // Not false: the place is right, so a search need not be repeated.
  if (IsDelta(*at.block, position)) {
    return Status(StatusCode::kNotFound,
                  fmt::format("the base {} is stored as a delta", base.ToString()))
        .At(segments_.store().NameOf(location.segment), at.offset);
  }
  const ByteView chunk = at.block->chunk(position);
  const bool listed = damage_.Contains(location.segment, location.ordinal);
  if (listed && is_right_ && !is_right_(record, chunk)) {
    return Status(StatusCode::kCorruption,
                  fmt::format("the bytes of the base {} do not match its name or tag",
                              base.ToString()))
        .At(segments_.store().NameOf(location.segment), at.offset);
  }
  bytes = {std::move(at.block), chunk};
  return true;
}

bool BaseReader::StaysWholeAt(const Location& location, const ChunkRecord& record) {
  if (segments_.FileOf(location.segment) != SegmentFile::kRecompressed) return false;
  BaseBytes bytes;
  const auto there =
      ReadAt(location, /*offset_known=*/true, {record.name, record.tag, record.length}, bytes);
  there.status().IgnoreError("an unreadable copy does not count");
  return there.ok() && *there;
}

std::vector<uint64_t> BaseReader::BasesOf(SegmentId dependent) {
  std::vector<uint64_t> prefixes;
  const auto opened = segments_.Open(dependent);
  const auto table = opened.ok() ? (*opened)->reader->ReadBaseTable()
                                 : Result<std::vector<BaseRef>>(opened.status());
  if (!table.ok()) {
    table.status().IgnoreError("each base is then searched alone");
    return prefixes;
  }
  for (const BaseRef& base : *table) {
    if (prefixes.size() < kMostCompanions) prefixes.push_back(base.name.Prefix64());
  }
  return prefixes;
}

}  // namespace siltfs
