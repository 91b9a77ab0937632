#include "fs/gc/garbage_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "fs/gc/reference_restorer.h"
#include "fs/gc/victim_collection.h"
#include "fs/segments/segment_tables.h"

namespace siltfs {
namespace {

// The index is rewritten when it has more than kEntriesPerChunk entries for each stored chunk, plus
// kEntriesToSpare. So a rewrite drops more than half of the entries. It costs about as much as it
// cost to make the dropped entries.
constexpr uint64_t kEntriesPerChunk = 2;
constexpr uint64_t kEntriesToSpare = 8192;
// The background thread collects when the released bytes reach the threshold. The threshold is the
// size of kSegmentsReleased segments, or one part in kShareReleased of the stored bytes if that is
// more.
constexpr uint64_t kSegmentsReleased = 4;
constexpr uint64_t kShareReleased = 20;
// The threshold is divided by this number while the store is quiet, or if the disk is full.
constexpr uint64_t kLessWhenIdle = 16;
// The pause after a failure.
constexpr std::chrono::minutes kAfterFailure{1};

}  // namespace

GarbageCollector::GarbageCollector(const CollectorParts& parts, CollectorOptions options)
    : deps_(parts),
      options_(std::move(options)),
      job_(deps_.env,
           {.store = options_.store, .interrupted = "garbage collection was interrupted"}),
      pace_(deps_.env, deps_.log, deps_.activity, job_,
            {options_.store, options_.bytes_per_second}),
      note_check_({deps_.index, deps_.log, deps_.segments, deps_.reader, deps_.pipeline, deps_.uses,
                   deps_.damage, deps_.secondary, deps_.metadata},
                  {[this](SegmentId id) { return deps_.Gone(id); },
                   [this](uint64_t bytes) { return pace_.Pace(bytes); },
                   [this] { return FlushIndex(); }}) {}

GarbageCollector::~GarbageCollector() { Stop(); }

bool GarbageCollector::IsFull() const {
  return deps_.reserve != nullptr && !deps_.reserve->CheckRoom(0).ok();
}

CollectionReason GarbageCollector::Reason() const {
  if (IsFull()) return CollectionReason::kFullDisk;
  return job_.in_background() ? CollectionReason::kBackground : CollectionReason::kCaller;
}

Result<CollectionCandidates> GarbageCollector::Count(GarbageOutcome& outcome) {
  return CountCandidates(deps_, options_, pace_, outcome, not_indexed_);
}

Result<GarbageOutcome> GarbageCollector::Estimate() {
  SILTFS_RETURN_IF_ERROR(deps_.log.failure());
  const BackgroundJob::Caller caller(job_);
  const BackgroundJob::Run run(job_, BackgroundJob::Runner::kCaller);
  const MeteredWork metered(pace_.progress());
  GarbageOutcome outcome;
  SILTFS_ASSIGN_OR_RETURN(const CollectionCandidates all, Count(outcome));
  for (const CollectionCandidate& candidate : WorthCollecting(all, Reason())) {
    ++outcome.segments_removed;
    outcome.bytes_removed += candidate.record.length;
    outcome.bytes_copied += candidate.record.length - candidate.dead_bytes();
    outcome.dead_bytes -= candidate.dead_bytes();
  }
  return outcome;
}

Result<GarbageOutcome> GarbageCollector::Collect() {
  SILTFS_RETURN_IF_ERROR(deps_.log.failure());
  const BackgroundJob::Caller caller(job_);
  const BackgroundJob::Run run(job_, BackgroundJob::Runner::kCaller);
  GarbageOutcome outcome;
  SILTFS_RETURN_IF_ERROR(CollectAll(outcome));
  return outcome;
}

Status GarbageCollector::CollectAll(GarbageOutcome& outcome) {
  SILTFS_RETURN_IF_ERROR(job_.CheckRunning());
  const MeteredWork metered(pace_.progress());
  const uint64_t released = deps_.account.released();
  SILTFS_ASSIGN_OR_RETURN(const CollectionCandidates all, Count(outcome));
  SILTFS_RETURN_IF_ERROR(RestoreReferences());
  CollectionCandidates worth = WorthCollecting(all, Reason());
  pace_.progress().Begin("segments", worth.size());
  while (!worth.empty()) {
    CollectionCandidates some = FirstOf(worth);
    const uint64_t removed = outcome.segments_removed;
    const Status collected = CollectSome(some, outcome);
    if (collected.ok()) {
      worth.erase(worth.begin(), worth.begin() + static_cast<ptrdiff_t>(some.size()));
    } else if (collected.Is(StatusCode::kNoSpace) && outcome.segments_removed > removed) {
      // The removal of some segments has made room for copies, so try the remaining ones again.
      std::erase_if(worth, [this](const CollectionCandidate& candidate) {
        return deps_.segments.IsRemoved(candidate.id);
      });
    } else {
      return collected;
    }
  }
  const Status checked = note_check_.Run();
  if (!checked.ok() && !checked.Is(StatusCode::kInterrupted)) return checked;
  checked.IgnoreError("the next collection continues");
  SILTFS_RETURN_IF_ERROR(DropStaleEntries());
  deps_.account.SetCollected(released);
  return Status::Ok();
}

Status GarbageCollector::DropStaleEntries() {
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records,
                          ReadSegmentRecords(*deps_.metadata.CommittedSnapshot()));
  uint64_t chunks = 0;
  for (const auto& [id, record] : records) chunks += record.chunks;
  if (deps_.index.stats().entries <= kEntriesPerChunk * chunks + kEntriesToSpare)
    return Status::Ok();
  const Status dropped = deps_.index.DropGone([this] { return pace_.Pace(0); });
  // Stale entries take space but do no harm, so a later collection may drop them.
  if (dropped.ok() || dropped.Is(StatusCode::kNoSpace) || dropped.Is(StatusCode::kInterrupted))
    return Status::Ok();
  return deps_.log.Fail(dropped);
}

Status GarbageCollector::RestoreReferences() {
  if (not_indexed_.empty() || not_indexed_ == lost_) return Status::Ok();
  const std::shared_ptr<const KvSnapshot> metadata = deps_.metadata.CommittedSnapshot();
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(*metadata));
  std::vector<SegmentId> ids;
  for (const auto& [id, record] : records) ids.push_back(id);
  ReferenceRestorer restorer(
      {deps_.index, deps_.segments, deps_.pipeline, deps_.nodes, deps_.secondary},
      {[this](SegmentId id) { return deps_.Gone(id); },
       [this](SegmentId id, uint32_t ordinal) { return deps_.damage.Contains(id, ordinal); },
       pace_.PaceOfMark(), deps_.Bases()});
  SILTFS_ASSIGN_OR_RETURN(const uint64_t restored, restorer.Restore(*metadata, not_indexed_, ids));
  lost_ = std::move(not_indexed_);
  if (restored == 0) return Status::Ok();
  lost_.clear();  // some were restored, so the next collection tries the others again
  if (options_.report) {
    options_.report(fmt::format(
        "the index did not know {} chunks that are in use; their entries were restored", restored));
  }
  return Status::Ok();
}

Status GarbageCollector::CollectSome(const CollectionCandidates& some, GarbageOutcome& outcome) {
  SILTFS_RETURN_IF_ERROR(job_.CheckRunning());
  std::vector<SegmentId> ids;
  for (const CollectionCandidate& candidate : some) ids.push_back(candidate.id);
  // Note the segments before they become victims: from then on their chunks may be stored again.
  const Status noted = deps_.secondary.NoteVictims(ids);
  if (!noted.ok()) return noted.Is(StatusCode::kNoSpace) ? noted : deps_.log.Fail(noted);
  // Add the victims before SetAside. The recompressor skips victims, so it also skips those that
  // are passed to it after SetAside.
  for (const SegmentId id : ids) deps_.victims.Add(id);
  Status collected;
  const auto not_recompressed = deps_.recompressor.SetAside(ids);
  if (not_recompressed.ok()) {
    deps_.pipeline.ForgetAppended();
    VictimCollection victims(
        deps_, options_, pace_, [this] { return FlushIndex(); }, outcome);
    collected = victims.Collect(some);
    for (const auto& [id, record] : *not_recompressed) {
      if (!deps_.segments.IsRemoved(id)) deps_.recompressor.Add(id, record);
    }
  } else {
    collected = not_recompressed.status();
  }
  for (const SegmentId id : ids) deps_.victims.Remove(id);  // removed segments are in `gone`
  return collected;
}

Status GarbageCollector::FlushIndex() {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t sequence, deps_.pipeline.EndSequence());
  const Status flushed = deps_.index.Flush();
  if (flushed.Is(StatusCode::kNoSpace)) return flushed;
  if (!flushed.ok()) return deps_.log.Fail(flushed);
  if (deps_.index.durable_sequence() >= sequence) return Status::Ok();
  return Status(StatusCode::kInterrupted, "the index does not become durable").At(options_.store);
}

void GarbageCollector::StartInBackground() {
  BackgroundJob::Loop loop;
  loop.poll = options_.poll;
  loop.work = [this] { return CollectInBackground(); };
  job_.Start(std::move(loop));
}

std::chrono::nanoseconds GarbageCollector::CollectInBackground() {
  const uint64_t enough =
      std::max(kSegmentsReleased * options_.segment_bytes, stored_ / kShareReleased);
  const bool soon = deps_.activity.IsQuiet() || IsFull();
  if (deps_.account.known().released_bytes < (soon ? enough / kLessWhenIdle : enough))
    return std::chrono::nanoseconds(0);
  GarbageOutcome outcome;
  Status done;
  {
    const BackgroundJob::Run run(job_, BackgroundJob::Runner::kBackground);
    done = CollectAll(outcome);
  }
  if (done.ok()) {
    stored_ = outcome.segments * options_.segment_bytes;
    return std::chrono::nanoseconds(0);
  }
  if (!done.Is(StatusCode::kInterrupted) && options_.report)
    options_.report(fmt::format("dead chunks were not collected: {}", done.ToString()));
  return kAfterFailure;
}

}  // namespace siltfs
