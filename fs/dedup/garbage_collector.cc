#include "fs/dedup/garbage_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "fs/dedup/reference_restorer.h"
#include "fs/dedup/sealed_record.h"
#include "fs/meta/schema.h"
#include "store/env/process.h"
#include "store/segment/segment_files.h"

namespace siltfs {
namespace {

// A segment with fewer dead chunks, in percent, is not worth copying. The limit is higher in the
// background, which need not hurry, than for a caller of Collect.
constexpr uint64_t kLeastDeadPercent = 5;
constexpr uint64_t kLeastDeadPercentInBackground = 8;
constexpr uint64_t kLeastDeadPercentWhenFull = 1;  // the disk has no room for new data
// The victims handled together have at most this many chunks; but at least one segment is handled.
constexpr uint64_t kMostChunksAtOnce = 512u << 10;
// If the disk has less room than copying should leave to metadata and the index, copying leaves
// half of it, but at least this much: for the index's entries and metadata's next table.
constexpr uint64_t kLeastRoomForOthers = 4u << 20;
// At most this many entries are moved with one commit.
constexpr size_t kMovesPerCommit = 32u << 10;
// The index is rewritten when it has more entries than this for each chunk, plus kEntriesToSpare.
// So a rewrite drops more than half of the entries, and costs about as much as entering them did.
constexpr uint64_t kEntriesPerChunk = 2;
constexpr uint64_t kEntriesToSpare = 8192;
// The background collects when the released bytes reach the size of kSegmentsReleased segments, and
// one part in kShareReleased of the stored bytes.
constexpr uint64_t kSegmentsReleased = 4;
constexpr uint64_t kShareReleased = 20;
// The threshold is divided by this while the store is idle or full.
constexpr uint64_t kLessWhenIdle = 16;
// During the mark, the background rests this many times as long as it works.
constexpr int kRestPerWork = 3;
constexpr std::chrono::milliseconds kLongestRest{50};
// While the store is in use, all rests are kLongerInUse times longer; but there are no rests if
// less than one part in kNearlyFull of the disk is free.
constexpr int kLongerInUse = 4;
constexpr uint64_t kNearlyFull = 16;
// The pause after a failure.
constexpr std::chrono::minutes kAfterFailure{1};

Status Interrupted(const std::string& store) {
  return Status(StatusCode::kInterrupted, "garbage collection was interrupted").At(store);
}

bool IsData(const SegmentRecord& record) {
  return record.kind == static_cast<uint8_t>(SegmentKind::kData);
}

}  // namespace

GarbageCollector::GarbageCollector(const Dependencies& dependencies, Options options)
    : deps_(dependencies),
      options_(std::move(options)),
      note_check_({deps_.index, deps_.log, deps_.segments, deps_.reader, deps_.pipeline, deps_.uses,
                   deps_.damage, deps_.secondary},
                  {[this](SegmentId id) { return Gone(id); },
                   [this](uint64_t bytes) { return Pace(bytes); }, options_.commit,
                   options_.snapshot, [this] { return FlushIndex(); }}),
      released_(options_.known.released_bytes) {
  MutexLock lock(mutex_);
  dead_ = options_.known;
}

GarbageCollector::~GarbageCollector() { Stop(); }

void GarbageCollector::Stop() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wakes_.NotifyAll();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
  MutexLock run(run_mutex_);  // waits for callers of Collect, too
}

Status GarbageCollector::CheckRunning() {
  MutexLock lock(mutex_);
  const bool unwanted = stopping_ || (background_ && callers_ > 0);
  return unwanted ? Interrupted(options_.store) : Status::Ok();
}

Status GarbageCollector::Pace(uint64_t bytes) {
  if (background_ && options_.bytes_per_second > 0)
    Rest(std::chrono::nanoseconds(1'000'000'000 * bytes / options_.bytes_per_second));
  SILTFS_RETURN_IF_ERROR(deps_.log.failure());
  return CheckRunning();
}

MarkPace GarbageCollector::PaceOfMark() {
  return [this, last = deps_.env.MonotonicNanoseconds()]() mutable {
    SILTFS_RETURN_IF_ERROR(CheckRunning());
    if (!background_) return Status::Ok();
    const std::chrono::nanoseconds worked(deps_.env.MonotonicNanoseconds() - last);
    Rest(std::min<std::chrono::nanoseconds>(worked * kRestPerWork, kLongestRest));
    last = deps_.env.MonotonicNanoseconds();
    return Status::Ok();
  };
}

void GarbageCollector::Rest(std::chrono::nanoseconds pause) {
  // Users of the store come first, unless the disk is nearly full.
  if (!deps_.recompressor.IsQuiet()) {
    if (IsNearlyFull()) return;
    pause *= kLongerInUse;
  }
  MutexLock lock(mutex_);
  if (!stopping_ && callers_ == 0) wakes_.WaitFor(mutex_, pause);
}

bool GarbageCollector::IsNearlyFull() const {
  const auto space = deps_.env.GetDiskSpace(options_.store);
  return space.ok() && space->available_bytes < space->total_bytes / kNearlyFull;
}

bool GarbageCollector::IsFull() const { return options_.is_full && options_.is_full(); }

bool GarbageCollector::Gone(SegmentId id) const {
  return deps_.victims.Contains(id) || deps_.gone.Contains(id);
}

GarbageCollector::Totals GarbageCollector::totals() const {
  MutexLock lock(mutex_);
  return totals_;
}

GarbageRecord GarbageCollector::known() const {
  MutexLock lock(mutex_);
  GarbageRecord record = dead_;
  record.released_bytes = released_ - collected_;
  return record;
}

void GarbageCollector::CountCallers(int difference) {
  MutexLock lock(mutex_);
  callers_ += difference;
  wakes_.NotifyAll();
}

Result<GarbageOutcome> GarbageCollector::Estimate() {
  CountCallers(1);
  GarbageOutcome outcome;
  Status done;
  {
    MutexLock run(run_mutex_);
    const auto counted = Count(outcome);
    done = counted.status();
    if (counted.ok()) {
      for (const Candidate& candidate : WorthCollecting(*counted)) {
        ++outcome.segments_removed;
        outcome.bytes_removed += candidate.record.length;
        outcome.bytes_copied += candidate.record.length - candidate.dead_bytes();
        outcome.dead_bytes -= candidate.dead_bytes();
      }
    }
  }
  CountCallers(-1);
  SILTFS_RETURN_IF_ERROR(done);
  return outcome;
}

Result<GarbageOutcome> GarbageCollector::Collect() {
  CountCallers(1);
  GarbageOutcome outcome;
  Status done;
  {
    MutexLock run(run_mutex_);
    done = CollectAll(outcome);
  }
  CountCallers(-1);
  SILTFS_RETURN_IF_ERROR(done);
  return outcome;
}

Status GarbageCollector::CollectAll(GarbageOutcome& outcome) {
  SILTFS_RETURN_IF_ERROR(CheckRunning());
  const uint64_t released = released_;
  SILTFS_ASSIGN_OR_RETURN(const Candidates all, Count(outcome));
  SILTFS_RETURN_IF_ERROR(RestoreReferences());
  Candidates worth = WorthCollecting(all);
  while (!worth.empty()) {
    Candidates some = FirstOf(worth);
    const uint64_t removed = outcome.segments_removed;
    const Status collected = CollectSome(some, outcome);
    if (collected.ok()) {
      worth.erase(worth.begin(), worth.begin() + static_cast<ptrdiff_t>(some.size()));
    } else if (collected.Is(StatusCode::kNoSpace) && outcome.segments_removed > removed) {
      // The segments that were removed have made room for others.
      std::erase_if(worth, [this](const Candidate& candidate) {
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
  MutexLock lock(mutex_);
  collected_ = released;
  return Status::Ok();
}

Status GarbageCollector::DropStaleEntries() {
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(*options_.snapshot()));
  uint64_t chunks = 0;
  for (const auto& [id, record] : records) chunks += record.chunks;
  if (deps_.index.stats().entries <= kEntriesPerChunk * chunks + kEntriesToSpare)
    return Status::Ok();
  const Status dropped = deps_.index.DropGone([this] { return Pace(0); });
  // The entries are stale, not wrong: another collection may drop them.
  if (dropped.ok() || dropped.Is(StatusCode::kNoSpace) || dropped.Is(StatusCode::kInterrupted))
    return Status::Ok();
  return deps_.log.Fail(dropped);
}

Status GarbageCollector::RestoreReferences() {
  if (not_indexed_.empty() || not_indexed_ == lost_) return Status::Ok();
  const std::shared_ptr<const KvSnapshot> metadata = options_.snapshot();
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(*metadata));
  std::vector<SegmentId> ids;
  for (const auto& [id, record] : records) ids.push_back(id);
  ReferenceRestorer restorer(
      {deps_.index, deps_.segments, deps_.pipeline, deps_.nodes, deps_.secondary},
      {[this](SegmentId id) { return Gone(id); },
       [this](SegmentId id, uint32_t ordinal) { return deps_.damage.Contains(id, ordinal); },
       PaceOfMark()});
  SILTFS_ASSIGN_OR_RETURN(const uint64_t restored, restorer.Restore(*metadata, not_indexed_, ids));
  lost_ = std::move(not_indexed_);
  if (restored == 0) return Status::Ok();
  lost_.clear();  // some were restored: try all others again next time
  if (options_.report) {
    options_.report(fmt::format(
        "the index did not know {} chunks that are in use; their entries were restored", restored));
  }
  return Status::Ok();
}

GarbageCollector::Candidates GarbageCollector::FirstOf(const Candidates& worth) {
  Candidates some;
  uint64_t chunks = 0;
  for (const Candidate& candidate : worth) {
    chunks += candidate.record.chunks;
    if (!some.empty() && chunks > kMostChunksAtOnce) break;
    some.push_back(candidate);
  }
  return some;
}

Result<GarbageCollector::Candidates> GarbageCollector::Count(GarbageOutcome& outcome) {
  SILTFS_RETURN_IF_ERROR(options_.commit());
  const std::shared_ptr<const KvSnapshot> metadata = options_.snapshot();
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(*metadata));
  MarkOptions mark_options;
  mark_options.spill_directory = options_.spill_directory;
  mark_options.pace = PaceOfMark();
  mark_options.gone = [this](SegmentId id) { return Gone(id); };
  SILTFS_ASSIGN_OR_RETURN(LiveCounts counts,
                          CountLive(deps_.env, *metadata, deps_.nodes, deps_.index, mark_options));
  not_indexed_ = std::move(counts.not_indexed);
  Candidates candidates;
  GarbageRecord counted;
  for (const auto& [id, record] : records) {
    if (!record.sealed || record.chunks == 0 || deps_.log.WriterOf(id) != nullptr) continue;
    const auto live = counts.live_chunks.find(id);
    Candidate candidate{id, record, 0};
    if (live != counts.live_chunks.end())
      candidate.live = std::min<uint64_t>(live->second, record.chunks);
    counted.dead_bytes += candidate.dead_bytes();
    if (IsData(record)) {
      counted.dead_chunks += candidate.dead();
      counted.dead_plain_bytes += record.plain_bytes * candidate.dead() / record.chunks;
    }
    outcome.live_chunks += candidate.live;
    outcome.dead_chunks += candidate.dead();
    candidates.push_back(candidate);
  }
  outcome.segments = candidates.size();
  outcome.dead_bytes = counted.dead_bytes;
  MutexLock lock(mutex_);
  dead_ = counted;
  return candidates;
}

// Returns the segments worth collecting: first those that need no copying, then the others by
// benefit over cost, (1 - u) * age / (1 + u). Here u is the live share of the segment, and age is
// the number of blocks written since. Source: Rosenblum and Ousterhout, The Design and
// Implementation of a Log-Structured File System, section 3.5.
GarbageCollector::Candidates GarbageCollector::WorthCollecting(const Candidates& all) const {
  uint64_t least = background_ ? kLeastDeadPercentInBackground : kLeastDeadPercent;
  if (IsFull()) least = kLeastDeadPercentWhenFull;
  uint64_t newest = 0;
  for (const Candidate& candidate : all) newest = std::max(newest, candidate.record.last_sequence);
  Candidates worth;
  for (const Candidate& candidate : all) {
    if (candidate.dead() * 100 >= candidate.record.chunks * least && candidate.dead() > 0)
      worth.push_back(candidate);
  }
  const auto benefit = [newest](const Candidate& candidate) {
    const double alive =
        static_cast<double>(candidate.live) / static_cast<double>(candidate.record.chunks);
    const auto age = static_cast<double>(newest - candidate.record.last_sequence + 1);
    return (1 - alive) * age / (1 + alive);
  };
  std::sort(worth.begin(), worth.end(), [&](const Candidate& a, const Candidate& b) {
    if ((a.live == 0) != (b.live == 0)) return a.live == 0;
    return benefit(a) > benefit(b);
  });
  return worth;
}

Status GarbageCollector::CollectSome(const Candidates& some, GarbageOutcome& outcome) {
  SILTFS_RETURN_IF_ERROR(CheckRunning());
  std::vector<SegmentId> ids;
  for (const Candidate& candidate : some) ids.push_back(candidate.id);
  // Note the segments before they become victims: from then on their chunks may be stored again.
  const Status noted = deps_.secondary.NoteVictims(ids);
  if (!noted.ok()) return noted.Is(StatusCode::kNoSpace) ? noted : deps_.log.Fail(noted);
  // Add the victims before SetAside: the recompressor skips victims, even if they are added to it
  // later.
  for (const SegmentId id : ids) deps_.victims.Add(id);
  Status collected;
  const auto not_recompressed = deps_.recompressor.SetAside(ids);
  if (not_recompressed.ok()) {
    deps_.pipeline.ForgetAppended();
    deps_.uses.WaitForOthers();
    collected = CollectVictims(some, outcome);
    for (const auto& [id, record] : *not_recompressed) {
      if (!deps_.segments.IsRemoved(id)) deps_.recompressor.Add(id, record);
    }
  } else {
    collected = not_recompressed.status();
  }
  for (const SegmentId id : ids) deps_.victims.Remove(id);  // the removed ones are in `gone`
  return collected;
}

Status GarbageCollector::CollectVictims(const Candidates& some, GarbageOutcome& outcome) {
  SILTFS_RETURN_IF_ERROR(options_.commit());
  // Recompression may have replaced a segment, and its record, since it was counted.
  std::shared_ptr<const KvSnapshot> metadata = options_.snapshot();
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(*metadata));
  const std::map<SegmentId, SegmentRecord> record_of(records.begin(), records.end());
  SegmentMark mark;
  std::vector<Victim> victims;
  for (Candidate candidate : some) {
    const auto record = record_of.find(candidate.id);
    if (record == record_of.end()) continue;
    candidate.record = record->second;
    auto footer = ReadFooter(candidate);
    if (!footer.ok()) {
      LeaveAlone(candidate, footer.status(), outcome);
      continue;
    }
    mark.Add(candidate.id, footer->chunks);
    footer->chunks = {};
    victims.push_back({candidate, std::move(footer).value()});
  }
  std::vector<SegmentId> ids;
  for (const Victim& segment : victims) ids.push_back(segment.candidate.id);
  LostChunks lost(deps_.damage, ids);
  SILTFS_RETURN_IF_ERROR(mark.Mark(*metadata, deps_.nodes, PaceOfMark(),
                                   [&lost](const ChunkName& name) { lost.Visit(name); }));
  metadata.reset();

  Relocator::Options relocation;
  relocation.compression = options_.compression;
  relocation.block_plain_bytes = options_.block_plain_bytes;
  relocation.gone = [this](SegmentId id) { return Gone(id); };
  relocation.leave_copy = [this](SegmentId id) { return deps_.secondary.Note(id); };
  relocation.is_damaged = [this](SegmentId id, uint32_t ordinal) {
    return deps_.damage.Contains(id, ordinal);
  };
  relocation.pace = [this](uint64_t bytes) { return Pace(bytes); };
  relocation.run = [this](const std::function<void()>& work) { Run(work); };
  Relocator relocator(deps_.index, deps_.segments, deps_.reader, deps_.pipeline, deps_.codec,
                      relocation);
  // Relocate the segments in the order in which they were written: this is also the order of the
  // files in them.
  std::sort(victims.begin(), victims.end(),
            [](const Victim& a, const Victim& b) { return a.candidate.id < b.candidate.id; });
  // Remove wholly dead segments first: they may be the only removable ones, and their removal makes
  // room for copies.
  Candidates done;
  for (const Victim& segment : victims) {
    if (mark.LiveCount(segment.candidate.id) == 0) done.push_back(segment.candidate);
  }
  SILTFS_RETURN_IF_ERROR(Remove(std::exchange(done, {}), outcome));
  Status no_room;  // of a segment that does not fit; a smaller one after it may fit
  for (const Victim& segment : victims) {
    if (mark.LiveCount(segment.candidate.id) == 0) continue;
    const Status copied = CopyLive(segment, mark, lost, relocator, done, outcome);
    if (copied.ok()) continue;
    if (!copied.Is(StatusCode::kNoSpace)) return copied;
    if (relocator.is_full()) return copied;  // earlier copies may have been lost with it
    no_room = copied;
    no_room.IgnoreError("returned when the others are done");
  }
  SILTFS_RETURN_IF_ERROR(relocator.Flush());
  SILTFS_RETURN_IF_ERROR(MoveEntries(relocator));
  outcome.bytes_copied += relocator.bytes_copied();
  SILTFS_RETURN_IF_ERROR(Remove(done, outcome));
  return no_room;
}

Result<SegmentFooter> GarbageCollector::ReadFooter(const Candidate& candidate) {
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

Status GarbageCollector::CopyLive(const Victim& victim, const SegmentMark& mark,
                                  const LostChunks& lost, Relocator& relocator, Candidates& copied,
                                  GarbageOutcome& outcome) {
  const Candidate& candidate = victim.candidate;
  const uint64_t live = mark.LiveCount(candidate.id);
  SILTFS_RETURN_IF_ERROR(Pace(0));
  SILTFS_RETURN_IF_ERROR(CheckSpace(candidate.record.length * live / candidate.record.chunks));
  const auto is_live = [&](uint32_t ordinal) { return mark.IsLive(candidate.id, ordinal); };
  const auto is_bad = [&](const Location& place) {
    return place.segment == candidate.id || Gone(place.segment) ||
           deps_.damage.Contains(place.segment, place.ordinal);
  };
  const auto lies_elsewhere = [&](uint32_t first, uint32_t end) {
    return lost.LieElsewhere(candidate.id, first, end, is_live, deps_.index, deps_.reader, is_bad);
  };
  const Status done = relocator.CopyLive(
      {candidate.id, candidate.record.recompressed, victim.footer, is_live, lies_elsewhere});
  if (done.Is(StatusCode::kCorruption) || done.Is(StatusCode::kIoError)) {
    LeaveAlone(candidate, done, outcome);
    return Status::Ok();
  }
  SILTFS_RETURN_IF_ERROR(done);
  copied.push_back(candidate);
  return relocator.moves() < kMovesPerCommit ? Status::Ok() : MoveEntries(relocator);
}

Status GarbageCollector::MoveEntries(Relocator& relocator) {
  if (!relocator.needs_commit()) return Status::Ok();
  const bool moves = relocator.moves() > 0;
  SILTFS_RETURN_IF_ERROR(options_.commit());
  SILTFS_RETURN_IF_ERROR(relocator.MoveEntries());
  if (!moves) return Status::Ok();
  // Some of the chunks may have been written again meanwhile, and their entries lead to these new
  // copies. The new copies must be durable before the index entries are. From now on, a further
  // write of such a chunk is a duplicate.
  deps_.uses.WaitForOthers();
  SILTFS_RETURN_IF_ERROR(options_.commit());
  // If FlushIndex fails, no data is lost: the old segments stay, and only the copying was wasted.
  return FlushIndex();
}

Status GarbageCollector::FlushIndex() {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t sequence, deps_.pipeline.EndSequence());
  const Status flushed = deps_.index.Flush();
  if (flushed.Is(StatusCode::kNoSpace)) return flushed;
  if (!flushed.ok()) return deps_.log.Fail(flushed);
  if (deps_.index.durable_sequence() >= sequence) return Status::Ok();
  return Status(StatusCode::kInterrupted, "the index does not become durable").At(options_.store);
}

Status GarbageCollector::Remove(const Candidates& some, GarbageOutcome& outcome) {
  if (some.empty()) return Status::Ok();
  std::vector<Mutation> noted;
  for (const Candidate& candidate : some) {
    noted.push_back({SegmentKey(candidate.id), std::nullopt});
    noted.push_back({RemovedSegmentKey(candidate.id), std::string()});
    noted.push_back({SecondaryKey(candidate.id), std::nullopt});
  }
  const Status written = options_.write_through(noted);
  if (written.Is(StatusCode::kNoSpace)) return written;
  if (!written.ok()) return deps_.log.Fail(written);
  // Wait for threads that were led to these segments before; later threads are led elsewhere.
  for (const Candidate& candidate : some) deps_.windows.EraseSegment(candidate.id);
  deps_.uses.WaitForOthers();
  std::vector<Mutation> forgotten;
  for (const Candidate& candidate : some) {
    deps_.segments.Remove(candidate.id);
    deps_.windows.EraseSegment(candidate.id);
    deps_.damage.Forget(candidate.id);
    deps_.secondary.Removed(candidate.id);
    CountRemoved(candidate);
    ++outcome.segments_removed;
    outcome.bytes_removed += candidate.record.length;
    outcome.dead_bytes -= std::min(outcome.dead_bytes, candidate.dead_bytes());
    const Status removed = RemoveSegment(deps_.env, options_.store, candidate.id);
    if (removed.ok()) {
      forgotten.push_back({RemovedSegmentKey(candidate.id), std::nullopt});
    } else if (options_.report) {
      options_.report(fmt::format("segment {} is removed at the next mount: {}", candidate.id,
                                  removed.ToString()));
    }
  }
  const Status forgot = options_.write_through(forgotten);
  if (forgot.ok() || forgot.Is(StatusCode::kNoSpace)) return Status::Ok();  // or by the next mount
  return deps_.log.Fail(forgot);
}

void GarbageCollector::CountRemoved(const Candidate& candidate) {
  const SegmentRecord& record = candidate.record;
  MutexLock lock(mutex_);
  dead_.dead_bytes -= std::min(dead_.dead_bytes, candidate.dead_bytes());
  totals_.removed_bytes += record.length;
  if (!IsData(record)) return;
  dead_.dead_chunks -= std::min(dead_.dead_chunks, candidate.dead());
  dead_.dead_plain_bytes -=
      std::min(dead_.dead_plain_bytes, record.plain_bytes * candidate.dead() / record.chunks);
  if (!record.recompressed) totals_.removed_not_recompressed_bytes += record.length;
  totals_.removed_chunks += record.chunks;
  totals_.removed_plain_bytes += record.plain_bytes;
}

Status GarbageCollector::CheckSpace(uint64_t bytes) {
  SILTFS_ASSIGN_OR_RETURN(const DiskSpace space, deps_.env.GetDiskSpace(options_.store));
  const uint64_t reserve = options_.reserve_bytes ? options_.reserve_bytes() : 0;
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

void GarbageCollector::LeaveAlone(const Candidate& candidate, const Status& why,
                                  GarbageOutcome& outcome) {
  if (options_.report) {
    options_.report(
        fmt::format("the dead chunks of segment {} stay: {}", candidate.id, why.ToString()));
  }
  why.IgnoreError("reported");
  ++outcome.segments_left;
}

void GarbageCollector::Run(const std::function<void()>& work) const {
  if (!background_) return work();
  // Run `work` on a thread that gets processor time only when no other thread wants it.
  try {
    std::thread([&work] {
      RunWhenIdle();
      work();
    }).join();
  } catch (const std::system_error&) {  // the machine has no thread to spare
    work();
  }
}

void GarbageCollector::StartInBackground() {
  MutexLock lock(mutex_);
  if (stopping_ || thread_.joinable()) return;
  thread_ = std::thread([this] { Work(); });
}

void GarbageCollector::Work() {
  uint64_t stored = 0;
  int64_t not_before = INT64_MIN;
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (!stopping_) wakes_.WaitFor(mutex_, options_.poll);
      if (stopping_) return;
      if (callers_ > 0 || deps_.env.MonotonicNanoseconds() < not_before) continue;
    }
    const uint64_t enough =
        std::max(kSegmentsReleased * options_.segment_bytes, stored / kShareReleased);
    const bool soon = deps_.recompressor.IsQuiet() || IsFull();
    if (known().released_bytes < (soon ? enough / kLessWhenIdle : enough)) continue;
    GarbageOutcome outcome;
    Status done;
    {
      MutexLock run(run_mutex_);
      background_ = true;
      done = CollectAll(outcome);
      background_ = false;
    }
    if (done.ok()) {
      stored = outcome.segments * options_.segment_bytes;
    } else {
      not_before =
          deps_.env.MonotonicNanoseconds() + std::chrono::nanoseconds(kAfterFailure).count();
      if (!done.Is(StatusCode::kInterrupted) && options_.report)
        options_.report(fmt::format("dead chunks were not collected: {}", done.ToString()));
    }
  }
}

}  // namespace siltfs
