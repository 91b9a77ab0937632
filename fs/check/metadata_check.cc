#include "fs/check/metadata_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "fs/check/inode_check.h"
#include "fs/check/lineage_check.h"
#include "fs/check/version_check.h"
#include "fs/meta/metadata_store.h"
#include "fs/meta/open_kv_store.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/records/epoch_floors.h"
#include "fs/records/garbage_record.h"
#include "fs/records/hidden_range.h"
#include "fs/records/last_scrub_record.h"
#include "fs/records/position_record.h"
#include "fs/records/savings_history.h"
#include "fs/records/schema.h"
#include "fs/records/scrub_history.h"
#include "fs/records/snapshot_record.h"
#include "fs/recovery/segment_replacement.h"
#include "fs/segments/segment_tables.h"
#include "fs/versions/lineage_view.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr std::array kTables = {
    Table::kCommitNumber,    Table::kDirectoryEntry, Table::kCollisions,     Table::kInode,
    Table::kDirectoryCookie, Table::kOverlay,        Table::kIdRanges,       Table::kSegment,
    Table::kCounters,        Table::kOrphan,         Table::kXattr,          Table::kReplacement,
    Table::kRemovedSegment,  Table::kGarbage,        Table::kDamage,         Table::kScrub,
    Table::kSecondary,       Table::kHidden,         Table::kSnapshot,       Table::kVersion,
    Table::kVersionList,     Table::kLineage,        Table::kLastScrub,      Table::kSavingsHistory,
    Table::kScrubHistory,    Table::kQuota,          Table::kBucketPosition, Table::kEpochFloors,
    Table::kFormerSegments};

bool IsSingleKey(Table table) {
  return table == Table::kCommitNumber || table == Table::kCollisions ||
         table == Table::kIdRanges || table == Table::kCounters || table == Table::kGarbage ||
         table == Table::kScrub || table == Table::kLastScrub || table == Table::kSavingsHistory ||
         table == Table::kScrubHistory || table == Table::kBucketPosition ||
         table == Table::kEpochFloors;
}

Finding MetadataFinding(const CheckContext& context, std::string code, std::string message) {
  return {.code = std::move(code),
          .path = MetadataPath(context.store()),
          .message = std::move(message)};
}

Result<std::unique_ptr<KvStore>> OpenReadOnly(const CheckContext& context) {
  return OpenStoreMetadata(context.env, context.superblock, context.store(),
                           KvStoreOptions::Mode::kReadOnly);
}

// Reports damage to the engine's files that did not prevent opening them.
Status CheckEngineFiles(CheckContext& context) {
  SILTFS_ASSIGN_OR_RETURN(const MetadataEngine* const engine,
                          FindMetadataEngine(context.superblock.metadata_engine));
  return engine->find_tolerated_damage(
      context.env, MetadataOptionsOf(context.store(), KvStoreOptions::Mode::kReadOnly),
      [&context](const Status& damage) { context.Report("metadata-ledger", damage); });
}

// Reports changes in the log of metadata if the store is marked as unmounted. An unmount leaves no
// changes in the log, and the first write of a mount marks the store as in use.
void CheckLogs(CheckContext& context) {
  if (!context.superblock.clean || !context.clean()) return;
  const uint64_t changes = context.metadata->LoggedChanges();
  if (changes == 0) return;
  context.Report(MetadataFinding(
      context, "metadata-log",
      fmt::format("the store was unmounted, but {} changes are in its metadata's log", changes)));
}

class RecordReader {
 public:
  RecordReader(CheckContext& context, const KvStore& kv) : context_(context), kv_(kv) {}

  Status Read() {
    SILTFS_ASSIGN_OR_RETURN(const auto commit, kv_.Get(kCommitNumberKey));
    Number("the number of the last commit", commit, context_.last_commit);
    uint64_t collisions = 0;
    SILTFS_ASSIGN_OR_RETURN(const auto met, kv_.Get(kCollisionsKey));
    Number("the number of SHA-1 collisions", met, collisions);
    SILTFS_ASSIGN_OR_RETURN(const auto ids, kv_.Get(kIdRangesKey));
    ReadIds(ids);
    SILTFS_ASSIGN_OR_RETURN(const auto garbage, kv_.Get(kGarbageKey));
    if (garbage && !GarbageRecord::Decode(*garbage).ok()) Bad("the garbage record is malformed");
    SILTFS_RETURN_IF_ERROR(
        ReadOptional<LastScrubRecord>(kLastScrubKey, "the record of the last scrub"));
    SILTFS_RETURN_IF_ERROR(
        ReadOptional<SavingsHistory>(kSavingsHistoryKey, "the history of sizes"));
    SILTFS_RETURN_IF_ERROR(ReadOptional<ScrubHistory>(kScrubHistoryKey, "the history of scrubs"));
    SILTFS_RETURN_IF_ERROR(
        ReadOptional<PositionRecord>(kBucketPositionKey, "the record of the bucket's position"));
    SILTFS_RETURN_IF_ERROR(
        ReadOptional<EpochFloors>(kEpochFloorsKey, "the record of the bucket's epochs"));
    SILTFS_ASSIGN_OR_RETURN(context_.floors, ReadEpochFloors(*kv_.Snapshot()));
    SILTFS_RETURN_IF_ERROR(ReadFormer());
    SILTFS_RETURN_IF_ERROR(ReadHidden());
    SILTFS_RETURN_IF_ERROR(ReadSegments());
    SILTFS_RETURN_IF_ERROR(ReadReplacements());
    SILTFS_RETURN_IF_ERROR(ReadRemoved());
    SILTFS_RETURN_IF_ERROR(ReadSecondaryNotes());
    context_.records_known = usable_;
    return Status::Ok();
  }

 private:
  void Bad(std::string message) {
    context_.Report(MetadataFinding(context_, "metadata-records", std::move(message)));
    usable_ = false;
  }

  void Number(std::string_view what, const std::optional<std::string>& value, uint64_t& number) {
    if (!value) return;
    Decoder in(AsBytes(*value));
    number = in.U64();
    if (!in.Done()) Bad(fmt::format("{} is malformed", what));
  }

  // A record that no other part of the store needs, and that a later version may write otherwise.
  template <typename Record>
  Status ReadOptional(std::string_view key, std::string_view what) {
    SILTFS_ASSIGN_OR_RETURN(const auto value, kv_.Get(key));
    if (value && Record::Decode(*value).status().Is(StatusCode::kCorruption))
      Bad(fmt::format("{} is malformed", what));
    return Status::Ok();
  }

  void ReadIds(const std::optional<std::string>& value) {
    if (!value) return Bad("the id ranges are missing");
    auto ids = IdRanges::Decode(*value);
    if (!ids.ok()) return Bad(std::string(ids.status().cause()));
    context_.ids = *ids;
  }

  Status ReadFormer() {
    uint64_t malformed = 0;
    SILTFS_ASSIGN_OR_RETURN(context_.former, ReadFormerSegments(*kv_.Snapshot(), &malformed));
    if (malformed > 0)
      Bad(fmt::format("{} records of the segments that were removed are malformed", malformed));
    return Status::Ok();
  }

  Status ReadHidden() {
    auto ranges = ReadHiddenRanges(*kv_.Snapshot());
    if (ranges.status().Is(StatusCode::kCorruption)) {
      Bad(std::string(ranges.status().cause()));
      return Status::Ok();
    }
    SILTFS_RETURN_IF_ERROR(ranges.status());
    context_.hidden = *std::move(ranges);
    if (!context_.hidden.empty() && context_.hidden.back().end > context_.ids.inode_limit)
      Bad("the numbers of hidden inodes were never allocated");
    return Status::Ok();
  }

  Status ReadSegments() {
    const KeyRange range = RangeOf(Table::kSegment);
    const auto snapshot = kv_.Snapshot();
    auto iterator = snapshot->NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      const auto id = ParseSegmentKey(iterator->key());
      auto record = SegmentRecord::Decode(iterator->value());
      if (id && record.ok()) {
        context_.segments[*id] = *record;
      } else {
        Bad(id ? fmt::format("the record of segment {} is malformed: {}", *id,
                             record.status().cause())
               : std::string("the key of a segment's record is malformed"));
      }
    }
    return iterator->status();
  }

  // Reads the intents of segment replacements that a crash has interrupted. The segments' files
  // show which replacements were finished.
  Status ReadReplacements() {
    SegmentRecords intents;
    const KeyRange range = RangeOf(Table::kReplacement);
    const auto snapshot = kv_.Snapshot();
    auto iterator = snapshot->NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      const auto id = ParseReplacementKey(iterator->key());
      auto intent = SegmentRecord::Decode(iterator->value());
      if (!id || !intent.ok()) {
        Bad("the record of a segment's replacement is malformed");
        continue;
      }
      intents.emplace_back(*id, *intent);
      if (!context_.segments.contains(*id)) {
        Bad(fmt::format("a replacement of segment {} is recorded, but not the segment", *id));
      } else if (context_.ids.clean) {
        context_.Report(MetadataFinding(
            context_, "segment-replacement",
            fmt::format("the store was unmounted while segment {} was being replaced", *id)));
      }
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
    SegmentRecords records(context_.segments.begin(), context_.segments.end());
    std::vector<Mutation> changes;
    const StoreIdentity identity{context_.store(), context_.superblock.uuid, context_.last_commit};
    ResolveReplacements(*context_.segment_store, identity, intents, records, changes);
    for (const auto& [id, record] : records) context_.segments[id] = record;
    return Status::Ok();
  }

  Status ReadRemoved() {
    const auto snapshot = kv_.Snapshot();
    auto removed = ReadRemovedSegments(*snapshot);
    if (!removed.ok()) {
      if (!removed.status().Is(StatusCode::kCorruption)) return std::move(removed).status();
      Bad(std::string(removed.status().cause()));
      return Status::Ok();
    }
    for (const SegmentId id : *removed) {
      if (context_.segments.contains(id)) {
        Bad(fmt::format("segment {} is recorded both as removed and as present", id));
      } else {
        context_.removed.push_back(id);
      }
    }
    return Status::Ok();
  }

  // A note of a missing segment is harmless: the next mount drops it.
  Status ReadSecondaryNotes() {
    SILTFS_ASSIGN_OR_RETURN(const auto kept, kv_.Get(kNotesKey));
    context_.notes_kept = kept.has_value();
    const auto snapshot = kv_.Snapshot();
    const auto noted = ReadSecondary(*snapshot);
    if (noted.ok()) {
      for (const SegmentId id : *noted) context_.secondary.Add(id);
      SILTFS_ASSIGN_OR_RETURN(const auto victims, ReadVictims(*snapshot));
      for (const SegmentId id : victims) context_.victims.Add(id);
      return Status::Ok();
    }
    if (!noted.status().Is(StatusCode::kCorruption)) return noted.status();
    Bad(std::string(noted.status().cause()));
    return Status::Ok();
  }

  CheckContext& context_;
  const KvStore& kv_;
  bool usable_ = true;
};

// Reports keys that belong to no table. In each table that may have only one key, reports all other
// keys.
Status CheckKeys(CheckContext& context, const KvSnapshot& snapshot) {
  uint64_t unknown = 0;
  std::string first;
  const auto note = [&](std::string_view key) {
    if (unknown++ > 0) return;
    for (const char c : key) first += fmt::format("{:02x}", static_cast<uint8_t>(c));
  };
  auto iterator = snapshot.NewIterator();
  for (iterator->Seek(""); iterator->Valid();) {
    const std::string key(iterator->key());
    const bool known = !key.empty() && std::find(kTables.begin(), kTables.end(),
                                                 static_cast<Table>(key[0])) != kTables.end();
    if (known && !IsSingleKey(static_cast<Table>(key[0]))) {
      iterator->Seek(RangeOf(static_cast<Table>(key[0])).end);
      continue;
    }
    if (!known || key.size() != 1) note(key);
    iterator->Next();
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  if (unknown > 0) {
    context.Report(MetadataFinding(
        context, "metadata-key",
        fmt::format("{} keys belong to no table, the first is {} (hexadecimal)", unknown, first)));
  }
  return Status::Ok();
}

// Whether a crash has interrupted a rollback. The present records are then a mixture of two states,
// until the next mount completes the rollback.
Result<bool> IsRollingBack(const KvSnapshot& metadata) {
  SILTFS_ASSIGN_OR_RETURN(const auto snapshots, ReadIntactSnapshots(metadata));
  return std::any_of(snapshots.begin(), snapshots.end(),
                     [](const NumberedSnapshot& snapshot) { return snapshot.record.restoring; });
}

}  // namespace

Status OpenMetadata(CheckContext& context) {
  auto opened = OpenReadOnly(context);
  if (!opened.ok()) {
    const Status& failure = opened.status();
    if (failure.Is(StatusCode::kNeedsNewer) || !IsDamage(failure)) return failure;
    context.Report("metadata-open", opened.status());
    return Status::Ok();
  }
  context.metadata = std::move(opened).value();
  SILTFS_RETURN_IF_ERROR(CheckEngineFiles(context));
  const Status read = RecordReader(context, *context.metadata).Read();
  if (!read.ok()) {
    if (!IsDamage(read)) return read;
    context.Report("metadata-read", read);
    return Status::Ok();
  }
  if (!context.records_known) return Status::Ok();
  if (context.highest_commit > context.last_commit) {
    context.Report(MetadataFinding(
        context, "metadata-lost",
        fmt::format("metadata ends at commit {}, but the superblock knows of commit {}",
                    context.last_commit, context.highest_commit)));
  }
  const bool clean = context.superblock.clean && context.clean();
  context.Count([clean](CheckReport& report) { report.clean_shutdown = clean; });
  CheckLogs(context);
  return Status::Ok();
}

Status CheckMetadata(CheckContext& context) {
  if (!context.metadata) return Status::Ok();
  if (context.options.data) {
    const Status verified = context.metadata->VerifyChecksums();
    if (!verified.ok()) {
      if (!IsDamage(verified)) return verified;
      context.Report("metadata-checksum", verified);
    }
  }
  const auto snapshot = context.metadata->Snapshot();
  const auto rolling_back = IsRollingBack(*snapshot);
  // The checks below report damage.
  if (!rolling_back.ok() && !IsDamage(rolling_back.status())) return rolling_back.status();
  const auto live = MakeLineageView(snapshot, kLiveLineage);
  for (const auto check : {CheckKeys, CheckInodes, CheckVersions, CheckLineages}) {
    if (check == CheckInodes && rolling_back.ok() && *rolling_back) continue;
    const Status checked = check(context, check == CheckInodes ? *live : *snapshot);
    if (checked.ok()) continue;
    if (!IsDamage(checked)) return checked;
    context.Report("metadata-read", checked);
  }
  return Status::Ok();
}

}  // namespace siltfs
