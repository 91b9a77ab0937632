#include "fs/repair/record_rebuild.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "fs/meta/id_allocator.h"
#include "fs/meta/metadata_store.h"
#include "fs/open/store_index.h"
#include "fs/records/damage_record.h"
#include "fs/records/directory_entry.h"
#include "fs/records/garbage_record.h"
#include "fs/records/last_scrub_record.h"
#include "fs/records/lineage.h"
#include "fs/records/savings_history.h"
#include "fs/records/schema.h"
#include "fs/records/scrub_history.h"
#include "fs/records/scrub_record.h"
#include "fs/segments/sealed_record.h"
#include "fs/versions/record_form.h"
#include "fs/versions/version_key.h"
#include "index/open_index.h"
#include "store/base/coding.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

// More commits than any store makes between two mounts. Each mount writes the number of the last
// commit to the superblock. So the commit numbers in the store's blocks exceed the superblock's
// number by less than this.
constexpr uint64_t kCommitsBeyond = uint64_t{1} << 40;

std::optional<uint64_t> NumberIn(std::string_view value) {
  Decoder in(AsBytes(value));
  const uint64_t number = in.U64();
  return in.Done() ? std::optional(number) : std::nullopt;
}

// Makes the record of an unsealed segment from its blocks; nullopt if they cannot be read.
std::optional<SegmentRecord> OpenRecord(const SegmentReader& reader, const SegmentHeader& header) {
  const auto size = reader.file().Size();
  if (!size.ok()) return std::nullopt;
  ScanOptions options;
  options.committed_length = *size;
  options.on_damage = [](uint64_t, uint64_t, const Status&) { return Status::Ok(); };
  const auto scan = ScanBlocks(reader.file(), reader.identity(), options,
                               [](const BlockHead&, uint32_t) { return Status::Ok(); });
  if (!scan.ok()) return std::nullopt;
  SegmentRecord record;
  record.kind = static_cast<uint8_t>(header.kind);
  record.length = scan->valid_end;
  record.chunks = scan->end_ordinal;
  record.plain_bytes = scan->plain_bytes;
  record.first_sequence = scan->first_sequence;
  record.last_sequence = scan->last_sequence;
  return record;
}

}  // namespace

bool RecordRebuild::Keep(std::string_view key, std::string_view value) {
  if (key.empty()) return false;
  switch (static_cast<Table>(key[0])) {
    case Table::kCommitNumber:
    case Table::kIdRanges:
    case Table::kCollisions:
    case Table::kCounters:
    case Table::kGarbage:
    case Table::kScrub:
    case Table::kLastScrub:
    case Table::kSavingsHistory:
    case Table::kScrubHistory:
      return key.size() != 1 || KeepSingle(key, value);
    case Table::kReplacement:
    case Table::kRemovedSegment:
    case Table::kBucketPosition:  // the next mount puts the new state into the bucket
    case Table::kEpochFloors:     // segments above a floor get records, too
      return false;
    // Salvage may find an older state, in which a clone that was finished since is still hidden.
    // The next mount would remove it.
    case Table::kHidden:
      return false;
    case Table::kSegment: {
      const auto id = ParseSegmentKey(key);
      const auto record = SegmentRecord::Decode(value);
      if (id && record.ok()) segments_[*id] = *record;
      return false;
    }
    case Table::kFormerSegments:
      former_.Add(key, value);
      return false;
    case Table::kSecondary:
      return false;  // without kNotesKey the next mount makes all notes again
    case Table::kDamage:
      return ParseDamageKey(key) && DamagedBlock::DecodeChunks(value).ok();
    case Table::kSnapshot:
      return KeepSnapshot(key, value);
    case Table::kVersion:
      return KeepVersion(key, value);
    case Table::kLineage:
      return ParseInodeKey(Table::kLineage, key) && LineageRecord::Decode(value).ok();
    case Table::kVersionList:
      return ParseVersionListKey(key) && value.empty();
    default:
      NoteInodes(key, value);
      return true;
  }
}

bool RecordRebuild::KeepSnapshot(std::string_view key, std::string_view value) {
  if (key == kNextSnapshotKey) return NumberIn(value).value_or(0) != 0;
  // A malformed record is kept, because the repair gives the snapshot another one.
  return ParseSnapshotKey(key).value_or(0) != 0;
}

bool RecordRebuild::KeepVersion(std::string_view key, std::string_view value) {
  const auto version = ParseVersionKey(key);
  const auto record = DecodeVersion(value);
  if (!version || !record || !IsRecordKey(version->key)) return false;
  NoteInodes(version->key, record->value_or(std::string_view()));
  return true;
}

bool RecordRebuild::KeepSingle(std::string_view key, std::string_view value) {
  switch (static_cast<Table>(key[0])) {
    case Table::kCommitNumber:
      last_commit_ = NumberIn(value).value_or(0);
      return false;
    case Table::kIdRanges: {
      const auto ids = IdRanges::Decode(value);
      if (ids.ok()) ids_ = *ids;
      return false;
    }
    case Table::kCounters:
      counters_ = value.size() == kCounterCount * sizeof(int64_t);
      return counters_;
    case Table::kGarbage:
      return GarbageRecord::Decode(value).ok();
    case Table::kScrub:
      return ScrubRecord::Decode(value).ok();
    case Table::kLastScrub:
      return LastScrubRecord::Decode(value).ok();
    case Table::kSavingsHistory:
      return SavingsHistory::Decode(value).ok();
    case Table::kScrubHistory:
      return ScrubHistory::Decode(value).ok();
    default:
      return NumberIn(value).has_value();
  }
}

void RecordRebuild::NoteInodes(std::string_view key, std::string_view value) {
  Decoder in(AsBytes(key.substr(1)));
  const uint64_t inode = in.BigU64();
  if (in.ok() && LineageOf(inode) != kLiveLineage) return;
  if (in.ok()) NoteInode(inode);
  if (key[0] == static_cast<char>(Table::kDirectoryEntry)) {
    const auto entry = NameEntry::Decode(value);
    if (entry.ok()) NoteInode(entry->inode);
  }
  if (key[0] == static_cast<char>(Table::kDirectoryCookie)) {
    const auto entry = CookieEntry::Decode(value);
    if (entry.ok()) NoteInode(entry->inode);
  }
}

Status RecordRebuild::SurveySegments(SegmentStore& segments, const StoreUuid& uuid) {
  const auto listing = segments.List();
  if (!listing.ok()) {
    // A missing directory is no error: later repairs create it.
    return listing.status().Is(StatusCode::kNotFound) ? Status::Ok() : listing.status();
  }
  for (const SegmentId id : listing->ids) {
    if (id >= IdAllocator::first_unused_segment() - IdAllocator::kSegmentRange) continue;
    segment_limit_ = std::max<uint64_t>(segment_limit_, uint64_t{id} + 1);
    SurveySegment(segments, {uuid, id});
  }
  return Status::Ok();
}

void RecordRebuild::SurveySegment(SegmentStore& segments, const SegmentIdentity& identity) {
  const BlockCodec codec;
  const auto reader = SegmentReader::Open(segments, identity, codec);
  if (!reader.ok()) return reader.status().IgnoreError("found again by the check");
  const auto footer = (*reader)->ReadFooter();
  const auto known = segments_.find(identity.id);
  if (footer.ok()) {
    SegmentRecord record = SealedRecord(footer->trailer);
    // In a store with deltas, any chunk may be the base of a delta, and must stay whole.
    const bool must_stay_whole = deltas_ && footer->trailer.kind == SegmentKind::kData;
    record.recompressed =
        must_stay_whole || (known != segments_.end() && known->second.recompressed &&
                            known->second.length == record.length);
    segments_[identity.id] = record;
    highest_sequence_ = std::max(highest_sequence_, record.last_sequence);
    return;
  }
  footer.status().IgnoreError("unsealed, or the check reports it");
  const auto header = (*reader)->ReadHeader();
  if (!header.ok()) return header.status().IgnoreError("the check reports the header");
  const auto scanned = OpenRecord(**reader, *header);
  if (!scanned) return;
  highest_sequence_ = std::max(highest_sequence_, scanned->last_sequence);
  if (known == segments_.end()) segments_[identity.id] = *scanned;
}

// Raises the highest sequence to the index's durable sequence. A mount replays only blocks above
// that sequence, so new blocks must be above it.
void RecordRebuild::SurveyIndex(Env& env, const std::string& store, const Superblock& superblock) {
  IndexOptions options = IndexOptionsOf(superblock, store);
  options.read_only = true;
  options.memory_limit = kNoMemoryLimit;
  const auto index = OpenIndex(env, options);
  if (!index.ok()) return index.status().IgnoreError("then the index is rebuilt");
  highest_sequence_ = std::max(highest_sequence_, (*index)->durable_sequence());
}

// Returns ranges that end well above all numbers seen in use, because lost records may have used
// higher numbers.
IdRanges RecordRebuild::Ids() const {
  IdRanges ids = ids_;
  ids.epoch = std::max(ids.epoch, highest_sequence_ >> IdAllocator::kSequenceBits);
  ids.inode_limit = std::max(ids.inode_limit, inode_limit_) + IdAllocator::kInodeRange;
  const uint64_t segments = std::max<uint64_t>(ids.segment_limit, segment_limit_);
  ids.segment_limit = static_cast<SegmentId>(
      std::min<uint64_t>(segments + IdAllocator::kSegmentRange,
                         IdAllocator::first_unused_segment() - IdAllocator::kSegmentRange));
  ids.clean = false;
  return ids;
}

Result<std::vector<Mutation>> RecordRebuild::Finish(Env& env, const std::string& store,
                                                    SegmentStore& segments,
                                                    const SuperblockState& state) {
  deltas_ = state.superblock.deltas();
  SILTFS_RETURN_IF_ERROR(SurveySegments(segments, state.superblock.uuid));
  for (const auto& [id, record] : segments_) {
    highest_sequence_ = std::max(highest_sequence_, record.last_sequence);
    segment_limit_ = std::max<uint64_t>(segment_limit_, uint64_t{id} + 1);
  }
  SurveyIndex(env, store, state.superblock);
  const uint64_t commit = std::max(last_commit_, state.highest_commit) + kCommitsBeyond;
  std::vector<Mutation> records;
  records.push_back({std::string(kCommitNumberKey), Encoder().U64(commit).Take()});
  records.push_back({std::string(kIdRangesKey), Ids().Encode()});
  if (!counters_) {
    records.push_back(
        {std::string(kCountersKey), Encoder().Zeros(kCounterCount * sizeof(int64_t)).Take()});
  }
  for (const auto& [id, record] : segments_) records.push_back({SegmentKey(id), record.Encode()});
  // If the ranges are lost, which makes the limit 0, ids may be used again.
  std::vector<Mutation> former = former_.RecordsBelow(ids_.segment_limit);
  std::ranges::move(former, std::back_inserter(records));
  return records;
}

}  // namespace siltfs
