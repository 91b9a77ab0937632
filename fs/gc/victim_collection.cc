#include "fs/gc/victim_collection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fs/records/schema.h"
#include "fs/segments/sealed_record.h"
#include "fs/segments/segment_tables.h"

namespace siltfs {
namespace {

// Copying leaves CollectorOptions::room_for_others to metadata and the index, but at most half of
// the available space (free space and reserve). If half of the space is less than this constant,
// the constant is the limit instead of the half. This leaves room for the index's entries and for
// the next table of metadata.
constexpr uint64_t kLeastRoomForOthers = 4u << 20;
// When this many chunks, or more, have been copied, their index entries are moved (MoveEntries).
constexpr size_t kMovesPerCommit = 32u << 10;

}  // namespace

Status VictimCollection::Collect(const CollectionCandidates& some) {
  std::shared_ptr<const KvSnapshot> metadata;
  {
    const MutexLock lock(deps_.mark_begin);
    deps_.uses.WaitForOthers();
    SILTFS_RETURN_IF_ERROR(deps_.metadata.CommitNow());
    metadata = deps_.metadata.CommittedSnapshot();
  }
  // Recompression may have replaced a segment and its record after the segment was counted.
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(*metadata));
  const std::map<SegmentId, SegmentRecord> record_of(records.begin(), records.end());
  SegmentMark mark;
  std::vector<Victim> victims;
  for (CollectionCandidate candidate : some) {
    const auto record = record_of.find(candidate.id);
    if (record == record_of.end()) continue;
    candidate.record = record->second;
    auto footer = ReadFooter(candidate);
    if (!footer.ok()) {
      LeaveAlone(candidate, footer.status());
      continue;
    }
    mark.Add(candidate.id, footer->chunks);
    footer->chunks = {};
    footer->bases = {};
    victims.push_back({candidate, std::move(footer).value()});
  }
  std::vector<SegmentId> ids;
  for (const Victim& segment : victims) ids.push_back(segment.candidate.id);
  LostChunks lost(deps_.damage, ids);
  bases_seen_ = deps_.bases.Now();
  SILTFS_RETURN_IF_ERROR(mark.Mark(
      *metadata, deps_.nodes, pace_.PaceOfMark(),
      [&lost](const ChunkName& name) { lost.Visit(name); }, [&] { return MarkBases(mark, lost); }));
  metadata.reset();

  Relocator::Options relocation;
  relocation.compression = options_.compression;
  relocation.block_plain_bytes = options_.block_plain_bytes;
  relocation.gone = [this](SegmentId id) { return deps_.Gone(id); };
  relocation.leave_copy = [this](SegmentId id) { return deps_.secondary.Note(id); };
  relocation.is_damaged = [this](SegmentId id, uint32_t ordinal) {
    return deps_.damage.Contains(id, ordinal);
  };
  relocation.pace = [this](uint64_t bytes) { return pace_.Pace(bytes); };
  relocation.run = [this](const std::function<void()>& work) { pace_.Run(work); };
  Relocator relocator(deps_.index, deps_.segments, deps_.reader, deps_.pipeline, deps_.codec,
                      relocation);
  // Relocate the segments in the order in which they were written. This keeps the chunks of files
  // in order.
  std::sort(victims.begin(), victims.end(),
            [](const Victim& a, const Victim& b) { return a.candidate.id < b.candidate.id; });
  // Remove wholly dead segments first: they may be the only removable ones, and their removal makes
  // room for copies.
  CollectionCandidates done;
  for (const Victim& segment : victims) {
    if (mark.LiveCount(segment.candidate.id) == 0) done.push_back(segment.candidate);
  }
  const uint64_t done_at_once = done.size();
  SILTFS_RETURN_IF_ERROR(Remove(mark, std::exchange(done, {})));
  Status no_room;  // for the last segment that does not fit; later segments may fit
  pace_.progress().Add(done_at_once);
  for (const Victim& segment : victims) {
    if (mark.LiveCount(segment.candidate.id) == 0) continue;
    pace_.progress().Add();
    const Status copied = CopyLive(segment, mark, lost, relocator, done);
    if (copied.ok()) continue;
    if (!copied.Is(StatusCode::kNoSpace)) return copied;
    if (relocator.is_full()) return copied;  // chunks of earlier victims may lack copies
    no_room = copied;
    no_room.IgnoreError("returned when the others are done");
  }
  SILTFS_RETURN_IF_ERROR(relocator.Flush());
  SILTFS_RETURN_IF_ERROR(MoveEntries(relocator));
  outcome_.bytes_copied += relocator.bytes_copied();
  SILTFS_RETURN_IF_ERROR(Remove(mark, done));
  return no_room;
}

Status VictimCollection::MarkBases(SegmentMark& mark, LostChunks& lost) {
  const auto mark_bases_of = [&](SegmentId segment) -> Status {
    SILTFS_RETURN_IF_ERROR(pace_.Pace(0));
    return ForEachBase(deps_.segments, segment, [&](const BaseRef& base) {
      mark.SetBase(base.name);
      lost.Visit(base.name);
      return Status::Ok();
    });
  };
  std::vector<SegmentId> marked;  // the victims with deltas
  for (const SegmentId segment : deps_.bases.All()) {
    if (mark.LiveCount(segment) != UINT32_MAX) {
      marked.push_back(segment);
    } else {
      SILTFS_RETURN_IF_ERROR(mark_bases_of(segment));
    }
  }
  // A victim without live chunks is removed at once, and needs no base. The bases of one victim may
  // be the first live chunks of another one.
  for (bool more = true; more;) {
    const auto live = std::find_if(marked.begin(), marked.end(), [&mark](SegmentId segment) {
      return mark.LiveCount(segment) > 0;
    });
    more = live != marked.end();
    if (!more) break;
    SILTFS_RETURN_IF_ERROR(mark_bases_of(*live));
    marked.erase(live);
  }
  return Status::Ok();
}

Result<CollectionCandidates> VictimCollection::WithoutNewBases(const SegmentMark& mark,
                                                               const CollectionCandidates& some) {
  std::set<SegmentId> needed;
  for (const SegmentId segment : deps_.bases.AddedSince(bases_seen_)) {
    SILTFS_RETURN_IF_ERROR(ForEachBase(deps_.segments, segment, [&](const BaseRef& base) {
      mark.ForEachDead(base.name, [&needed](SegmentId victim) { needed.insert(victim); });
      return Status::Ok();
    }));
  }
  CollectionCandidates others;
  for (const CollectionCandidate& candidate : some) {
    if (!needed.contains(candidate.id)) {
      others.push_back(candidate);
    } else {
      LeaveAlone(candidate, Status(StatusCode::kInterrupted, "a new delta needs one of them"));
    }
  }
  return others;
}

Result<SegmentFooter> VictimCollection::ReadFooter(const CollectionCandidate& candidate) {
  SILTFS_ASSIGN_OR_RETURN(const OpenSegmentPtr opened, deps_.segments.Open(candidate.id));
  SILTFS_ASSIGN_OR_RETURN(SegmentFooter footer, opened->reader->ReadFooter());
  SegmentRecord found = SealedRecord(footer.trailer);
  found.recompressed = candidate.record.recompressed;
  if (!(found == candidate.record)) {
    return Status(StatusCode::kCorruption,
                  "the footer does not match the segment's record in metadata")
        .At(opened->reader->path());
  }
  return footer;
}

Status VictimCollection::CopyLive(const Victim& victim, const SegmentMark& mark,
                                  const LostChunks& lost, Relocator& relocator,
                                  CollectionCandidates& copied) {
  const CollectionCandidate& candidate = victim.candidate;
  const uint64_t live = mark.LiveCount(candidate.id);
  SILTFS_RETURN_IF_ERROR(pace_.Pace(0));
  SILTFS_RETURN_IF_ERROR(CheckSpace(candidate.record.length * live / candidate.record.chunks));
  const auto is_live = [&](uint32_t ordinal) { return mark.IsLive(candidate.id, ordinal); };
  const auto is_base = [&](uint32_t ordinal) { return mark.IsBase(candidate.id, ordinal); };
  const auto is_bad = [&](const Location& place) {
    return place.segment == candidate.id || deps_.Gone(place.segment) ||
           deps_.damage.Contains(place.segment, place.ordinal);
  };
  const auto lies_elsewhere = [&](uint32_t first, uint32_t end) {
    return lost.LieElsewhere({candidate.id, first, end, is_live, is_base}, deps_.index,
                             deps_.reader, is_bad);
  };
  const Status done = relocator.CopyLive({candidate.id, candidate.record.recompressed,
                                          victim.footer, is_live, is_base, lies_elsewhere});
  if (done.Is(StatusCode::kCorruption) || done.Is(StatusCode::kIoError)) {
    LeaveAlone(candidate, done);
    return Status::Ok();
  }
  SILTFS_RETURN_IF_ERROR(done);
  copied.push_back(candidate);
  return relocator.moves() < kMovesPerCommit ? Status::Ok() : MoveEntries(relocator);
}

Status VictimCollection::MoveEntries(Relocator& relocator) {
  if (!relocator.needs_commit()) return Status::Ok();
  const bool moves = relocator.moves() > 0;
  SILTFS_RETURN_IF_ERROR(deps_.metadata.CommitNow());
  SILTFS_RETURN_IF_ERROR(relocator.MoveEntries());
  if (!moves) return Status::Ok();
  // Some of the chunks may have been written again before their entries were moved. Then the
  // entries lead to these new copies, which must be durable before the index entries are. No
  // further copies of this kind appear, because from now on a write of such a chunk is a duplicate.
  deps_.uses.WaitForOthers();
  SILTFS_RETURN_IF_ERROR(deps_.metadata.CommitNow());
  // If FlushIndex fails, no data is lost: the old segments stay, and only the copying was wasted.
  return flush_index_();
}

Status VictimCollection::Remove(const SegmentMark& mark, const CollectionCandidates& all) {
  SILTFS_ASSIGN_OR_RETURN(const CollectionCandidates some, WithoutNewBases(mark, all));
  if (some.empty()) return Status::Ok();
  std::vector<Mutation> noted;
  for (const CollectionCandidate& candidate : some) {
    noted.push_back({SegmentKey(candidate.id), std::nullopt});
    noted.push_back({RemovedSegmentKey(candidate.id), std::string()});
    noted.push_back({SecondaryKey(candidate.id), std::nullopt});
  }
  const Status written = deps_.metadata.WriteThrough(noted);
  if (written.Is(StatusCode::kNoSpace)) return written;
  if (!written.ok()) return deps_.log.Fail(written);
  // Wait for the threads that the index or the footer cache has already led to these segments.
  // Lookups that begin now do not lead to these segments.
  for (const CollectionCandidate& candidate : some) deps_.windows.EraseSegment(candidate.id);
  deps_.uses.WaitForOthers();
  std::vector<Mutation> forgotten;
  for (const CollectionCandidate& candidate : some) {
    deps_.segments.Remove(candidate.id);
    deps_.windows.EraseSegment(candidate.id);
    deps_.damage.Forget(candidate.id);
    deps_.secondary.Removed(candidate.id);
    deps_.bases.Remove(candidate.id);
    deps_.account.CountRemoved(candidate.record, candidate.dead(), candidate.dead_bytes());
    ++outcome_.segments_removed;
    outcome_.bytes_removed += candidate.record.length;
    outcome_.dead_bytes -= std::min(outcome_.dead_bytes, candidate.dead_bytes());
    const Status removed = deps_.segments.store().Remove(candidate.id);
    if (removed.ok()) {
      forgotten.push_back({RemovedSegmentKey(candidate.id), std::nullopt});
    } else if (options_.report) {
      options_.report(fmt::format("segment {} is removed at the next mount: {}", candidate.id,
                                  removed.ToString()));
    }
  }
  const Status forgot = deps_.metadata.WriteThrough(forgotten);
  if (forgot.ok() || forgot.Is(StatusCode::kNoSpace)) return Status::Ok();  // a mount retries this
  return deps_.log.Fail(forgot);
}

Status VictimCollection::CheckSpace(uint64_t bytes) {
  SILTFS_ASSIGN_OR_RETURN(const DiskSpace space, deps_.env.GetDiskSpace(options_.store));
  const uint64_t reserve = deps_.reserve != nullptr ? deps_.reserve->bytes_to_give() : 0;
  const uint64_t all = space.available_bytes + reserve;
  const uint64_t room = std::max(all / 2, kLeastRoomForOthers);
  const uint64_t needed = bytes + std::min(options_.room_for_others, room);
  if (all >= needed) return Status::Ok();
  return Status(StatusCode::kNoSpace,
                fmt::format("only {} MiB are left on the disk and {} MiB in reserve; garbage "
                            "collection needs {} MiB",
                            space.available_bytes >> 20, reserve >> 20, needed >> 20))
      .At(options_.store);
}

void VictimCollection::LeaveAlone(const CollectionCandidate& candidate, const Status& why) {
  if (options_.report) {
    options_.report(
        fmt::format("the dead chunks of segment {} stay: {}", candidate.id, why.ToString()));
  }
  why.IgnoreError("reported");
  ++outcome_.segments_left;
}

}  // namespace siltfs
