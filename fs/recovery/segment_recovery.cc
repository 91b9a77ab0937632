#include "fs/recovery/segment_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "fs/records/schema.h"
#include "fs/segments/fenced_writer.h"
#include "fs/segments/sealed_record.h"
#include "store/env/files.h"
#include "store/segment/segment_salvage.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

// Fails unless invariant I5 holds: each commit after which a block was written is in metadata.
Status CheckCommitNumber(const SegmentStore& segments, const StoreIdentity& identity, SegmentId id,
                         uint64_t block_commit) {
  if (block_commit <= identity.last_commit) return Status::Ok();
  return Status(StatusCode::kCorruption,
                fmt::format("metadata ends at commit {}, but this segment was written after commit "
                            "{}: metadata was lost",
                            identity.last_commit, block_commit))
      .At(segments.NameOf(id));
}

// The highest commit number in the segment's blocks.
Result<uint64_t> NewestCommitIn(SegmentStore& segments, const StoreIdentity& identity,
                                SegmentId id) {
  SILTFS_ASSIGN_OR_RETURN(const auto file, segments.Open(id));
  uint64_t newest = 0;
  auto scanned =
      ScanBlocks(*file, {identity.uuid, id}, {}, [&newest](const BlockHead& head, uint32_t) {
        newest = std::max(newest, head.last_commit);
        return Status::Ok();
      });
  if (!scanned.ok()) return std::move(scanned).status();
  return newest;
}

// Seals or removes a segment. Returns its record after recovery; empty if the segment held nothing
// and was removed.
Result<std::optional<SegmentRecord>> SealOrRemove(Env& env, SegmentStore& segments,
                                                  const StoreIdentity& identity, SegmentId id,
                                                  const std::optional<SegmentRecord>& record,
                                                  const ReportFinding& report) {
  auto newest = NewestCommitIn(segments, identity, id);
  if (newest.ok()) SILTFS_RETURN_IF_ERROR(CheckCommitNumber(segments, identity, id, *newest));
  // If the commit number cannot be read, the header is damaged or was never written; the salvage
  // finds out which.
  SalvageOptions options;
  options.committed_length = record ? record->length : 0;
  if (record) options.kind = static_cast<SegmentKind>(record->kind);
  options.on_damage = [&](uint64_t begin, uint64_t end, const Status& cause) {
    report(fmt::format("{}: bytes {} to {} are damaged: {}", segments.NameOf(id), begin, end,
                       cause.ToString()));
    return Status::Ok();
  };
  auto salvaged = SalvageSegment(env, identity.store, segments, {identity.uuid, id}, options);
  if (!salvaged.ok()) {
    if (!salvaged.status().Is(StatusCode::kCorruption)) return std::move(salvaged).status();
    report(salvaged.status().ToString());
    return record;
  }
  if (salvaged->outcome == SalvageOutcome::kRemoved) return std::optional<SegmentRecord>();
  SegmentRecord sealed = SealedRecord(salvaged->trailer);
  sealed.recompressed = salvaged->trailer.kind == SegmentKind::kData &&
                        std::binary_search(identity.moved.begin(), identity.moved.end(), id);
  return std::optional<SegmentRecord>(sealed);
}

}  // namespace

Status RecoverSegments(Env& env, SegmentStore& segments, const StoreIdentity& identity,
                       SegmentRecords& records, std::vector<Mutation>& changes,
                       const ReportFinding& report) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing listing, segments.Recover());
  std::map<SegmentId, SegmentRecord> known(records.begin(), records.end());
  for (const auto& [id, record] : known) {
    if (record.chunks > 0 && !std::binary_search(listing.ids.begin(), listing.ids.end(), id)) {
      report(fmt::format("{}: the segment is missing, and {} chunks with it", segments.NameOf(id),
                         record.chunks));
    }
  }
  for (SegmentId id : listing.ids) {
    auto found = known.find(id);
    std::optional<SegmentRecord> before;
    if (found != known.end()) before = found->second;
    if (!before && IsNotLost(segments, id, identity.floors, identity.former)) continue;
    if (before && before->sealed) continue;
    SILTFS_ASSIGN_OR_RETURN(std::optional<SegmentRecord> after,
                            SealOrRemove(env, segments, identity, id, before, report));
    if (after == before) continue;
    if (after) {
      known[id] = *after;
      changes.push_back({SegmentKey(id), after->Encode()});
    } else {
      known.erase(id);
      changes.push_back({SegmentKey(id), std::nullopt});
    }
  }
  records.assign(known.begin(), known.end());
  return Status::Ok();
}

Status PutSealedSegments(SegmentStore& segments, const SegmentRecords& records) {
  Status put = segments.FinishPuts([&records](SegmentId id) {
    const auto at = std::lower_bound(
        records.begin(), records.end(), id,
        [](const auto& numbered, SegmentId wanted) { return numbered.first < wanted; });
    return at != records.end() && at->first == id && at->second.sealed;
  });
  if (!put.Is(StatusCode::kNoSpace)) return put;
  put.IgnoreError("the segments are read from their files until there is room");
  return Status::Ok();
}

Result<SegmentRecord> RecoverSegment(Env& env, SegmentStore& segments,
                                     const StoreIdentity& identity, SegmentId id,
                                     const SegmentRecord& record, const ReportFinding& report) {
  auto after = SealOrRemove(env, segments, identity, id, record, report);
  if (after.ok()) return after->value_or(record);
  if (!after.status().Is(StatusCode::kNotFound)) return std::move(after).status();
  report(after.status().ToString());
  return record;
}

}  // namespace siltfs
