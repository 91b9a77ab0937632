#include "fs/open/store_records.h"

#include <fmt/format.h>

#include <utility>

#include "fs/meta/metadata_store.h"
#include "fs/open/store_layout.h"
#include "fs/records/schema.h"
#include "fs/segments/segment_tables.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

Result<uint64_t> ReadNumber(const KvStore& kv, std::string_view key) {
  SILTFS_ASSIGN_OR_RETURN(auto value, kv.Get(key));
  if (!value) return uint64_t{0};
  Decoder in(AsBytes(*value));
  const uint64_t number = in.U64();
  if (!in.Done()) return Status(StatusCode::kCorruption, "metadata holds a malformed number");
  return number;
}

}  // namespace

Result<StoreRecords> ReadStoreRecords(const KvStore& kv) {
  StoreRecords records;
  SILTFS_ASSIGN_OR_RETURN(records.last_commit, ReadNumber(kv, kCommitNumberKey));
  SILTFS_ASSIGN_OR_RETURN(records.collisions, ReadNumber(kv, kCollisionsKey));
  SILTFS_ASSIGN_OR_RETURN(const auto garbage, kv.Get(kGarbageKey));
  if (garbage) {
    SILTFS_ASSIGN_OR_RETURN(records.garbage, GarbageRecord::Decode(*garbage));
  }
  SILTFS_ASSIGN_OR_RETURN(auto ids, kv.Get(kIdRangesKey));
  if (!ids) return Status(StatusCode::kCorruption, "metadata has lost its id ranges");
  SILTFS_ASSIGN_OR_RETURN(records.ids, IdRanges::Decode(*ids));
  const auto snapshot = kv.Snapshot();
  SILTFS_ASSIGN_OR_RETURN(records.floors, ReadEpochFloors(*snapshot));
  SILTFS_ASSIGN_OR_RETURN(records.former, ReadFormerSegments(*snapshot));
  SILTFS_ASSIGN_OR_RETURN(records.segments, ReadSegmentRecords(*snapshot));
  SILTFS_ASSIGN_OR_RETURN(records.replacements, ReadReplacements(*snapshot));
  SILTFS_ASSIGN_OR_RETURN(records.removed, ReadRemovedSegments(*snapshot));
  SILTFS_ASSIGN_OR_RETURN(const auto notes, kv.Get(kNotesKey));
  records.notes_kept = notes.has_value();
  SILTFS_ASSIGN_OR_RETURN(records.secondary, ReadSecondary(*snapshot));
  SILTFS_ASSIGN_OR_RETURN(records.victims, ReadVictims(*snapshot));
  SILTFS_ASSIGN_OR_RETURN(records.damage, ReadDamage(*snapshot));
  SILTFS_ASSIGN_OR_RETURN(const auto scrub, kv.Get(kScrubKey));
  if (scrub) {
    SILTFS_ASSIGN_OR_RETURN(records.scrub, ScrubRecord::Decode(*scrub));
  }
  return records;
}

Status CheckCommit(const SuperblockState& state, uint64_t last_commit, const std::string& store) {
  if (state.highest_commit <= last_commit) return Status::Ok();
  return Status(StatusCode::kCorruption,
                fmt::format("metadata ends at commit {}, but the superblock knows of commit {}: "
                            "metadata was lost",
                            last_commit, state.highest_commit))
      .At(MetadataPath(store));
}

}  // namespace siltfs
