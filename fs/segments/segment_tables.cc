#include "fs/segments/segment_tables.h"

#include <functional>
#include <optional>

#include "fs/records/schema.h"
#include "fs/segments/damage_list.h"

namespace siltfs {
namespace {

Status ForEachSegmentKey(const KvSnapshot& metadata, Table table,
                         const std::function<std::optional<SegmentId>(std::string_view)>& parse,
                         const std::function<Status(SegmentId, std::string_view value)>& visit) {
  const KeyRange range = RangeOf(table);
  const auto iterator = metadata.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    if (iterator->key() == kNotesKey) continue;
    const auto id = parse(iterator->key());
    if (!id) return Status(StatusCode::kCorruption, "metadata holds a malformed segment key");
    SILTFS_RETURN_IF_ERROR(visit(*id, iterator->value()));
  }
  return iterator->status();
}

Result<SegmentRecords> ReadRecords(
    const KvSnapshot& metadata, Table table,
    const std::function<std::optional<SegmentId>(std::string_view)>& parse) {
  SegmentRecords records;
  SILTFS_RETURN_IF_ERROR(ForEachSegmentKey(
      metadata, table, parse, [&records](SegmentId id, std::string_view value) -> Status {
        SILTFS_ASSIGN_OR_RETURN(const SegmentRecord record, SegmentRecord::Decode(value));
        records.emplace_back(id, record);
        return Status::Ok();
      }));
  return records;
}

Result<std::vector<SegmentId>> ReadIds(
    const KvSnapshot& metadata, Table table,
    const std::function<std::optional<SegmentId>(std::string_view)>& parse) {
  std::vector<SegmentId> ids;
  SILTFS_RETURN_IF_ERROR(
      ForEachSegmentKey(metadata, table, parse, [&ids](SegmentId id, std::string_view) {
        ids.push_back(id);
        return Status::Ok();
      }));
  return ids;
}

}  // namespace

Result<SegmentRecords> ReadSegmentRecords(const KvSnapshot& metadata) {
  return ReadRecords(metadata, Table::kSegment, ParseSegmentKey);
}

Result<SegmentRecords> ReadReplacements(const KvSnapshot& metadata) {
  return ReadRecords(metadata, Table::kReplacement, ParseReplacementKey);
}

Result<std::vector<SegmentId>> ReadRemovedSegments(const KvSnapshot& metadata) {
  return ReadIds(metadata, Table::kRemovedSegment, ParseRemovedSegmentKey);
}

Result<std::vector<SegmentId>> ReadSecondary(const KvSnapshot& metadata) {
  return ReadIds(metadata, Table::kSecondary, ParseSecondaryKey);
}

Result<std::vector<SegmentId>> ReadVictims(const KvSnapshot& metadata) {
  std::vector<SegmentId> ids;
  SILTFS_RETURN_IF_ERROR(ForEachSegmentKey(metadata, Table::kSecondary, ParseSecondaryKey,
                                           [&ids](SegmentId id, std::string_view value) {
                                             if (value == kVictimNote) ids.push_back(id);
                                             return Status::Ok();
                                           }));
  return ids;
}

Result<std::vector<DamagedBlock>> ReadDamage(const KvSnapshot& metadata) {
  std::vector<DamagedBlock> blocks;
  size_t count = 0;
  const KeyRange range = RangeOf(Table::kDamage);
  const auto iterator = metadata.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    // siltfs writes no more entries than this. A crafted store may have more, but must not make
    // siltfs use more memory.
    if (blocks.size() >= DamageList::kMostBlocks || count >= DamageList::kMostChunks) break;
    const auto place = ParseDamageKey(iterator->key());
    if (!place) return Status(StatusCode::kCorruption, "metadata holds a malformed damage key");
    SILTFS_ASSIGN_OR_RETURN(auto chunks, DamagedBlock::DecodeChunks(iterator->value()));
    count += chunks.size();
    blocks.push_back({place->first, place->second, std::move(chunks)});
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return blocks;
}

}  // namespace siltfs
