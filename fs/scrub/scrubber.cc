#include "fs/scrub/scrubber.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "fs/records/last_scrub_record.h"
#include "fs/records/schema.h"
#include "fs/records/scrub_history.h"
#include "fs/scrub/segment_scrub.h"
#include "fs/segments/segment_tables.h"

namespace siltfs {
namespace {

// A gentle scrub rests after each block. While the store is in use, a rest is this many times as
// long.
constexpr int kLongerInUse = 4;

}  // namespace

Scrubber::Scrubber(const Dependencies& dependencies, Options options)
    : deps_(dependencies),
      options_(std::move(options)),
      job_(deps_.env, {.store = options_.store, .interrupted = "the scrub was interrupted"}) {
  const BackgroundJob::Run run(job_, BackgroundJob::Runner::kCaller);
  if (options_.reached) statistics_ = *options_.reached;
}

Scrubber::~Scrubber() { Stop(); }

Status Scrubber::Pace(ScrubPace pace, uint64_t bytes) {
  if (pace == ScrubPace::kGentle && options_.bytes_per_second > 0) {
    std::chrono::nanoseconds rest(1'000'000'000 * bytes / options_.bytes_per_second);
    if (!deps_.activity.IsQuiet()) rest *= kLongerInUse;
    job_.Rest(rest);
  }
  SILTFS_RETURN_IF_ERROR(deps_.log.failure());
  return CheckRunning();
}

Result<ScrubOutcome> Scrubber::Scrub(ScrubPace pace) {
  SILTFS_RETURN_IF_ERROR(deps_.log.failure());
  const BackgroundJob::Run run(job_, BackgroundJob::Runner::kCaller);
  reported_ = 0;
  ScrubOutcome outcome;
  outcome.resumed = statistics_.reached != kNoSegment;
  const Status done = ScrubAll(pace);
  outcome.statistics = statistics_;
  if (done.Is(StatusCode::kInterrupted)) return outcome;
  SILTFS_RETURN_IF_ERROR(done);
  outcome.complete = true;
  const LastScrubRecord last{.ended_ns = deps_.env.NowNanoseconds(),
                             .damaged_blocks = statistics_.damaged_blocks,
                             .damaged_chunks = statistics_.damaged_chunks,
                             .damaged_footers = statistics_.damaged_footers};
  std::vector<Mutation> records = {{std::string(kScrubKey), {}},
                                   {std::string(kLastScrubKey), last.Encode()}};
  if (auto history = WithScrub({last, statistics_.chunks, statistics_.bytes}))
    records.push_back({std::string(kScrubHistoryKey), history->Encode()});
  statistics_ = {};
  SILTFS_RETURN_IF_ERROR(WriteRecords(std::move(records)));
  return outcome;
}

// A history that cannot be read must not prevent a scrub. A malformed one begins again.
std::optional<ScrubHistory> Scrubber::WithScrub(const PastScrub& scrub) const {
  const auto value = deps_.metadata.CommittedSnapshot()->Get(kScrubHistoryKey);
  if (!value.ok()) {
    value.status().IgnoreError("fsck reports unreadable metadata");
    return std::nullopt;
  }
  ScrubHistory history;
  if (*value) {
    auto decoded = ScrubHistory::Decode(**value);
    if (decoded.ok()) history = *std::move(decoded);
    if (decoded.status().Is(StatusCode::kNeedsNewer)) return std::nullopt;
  }
  history.Add(scrub);
  return history;
}

Status Scrubber::ScrubAll(ScrubPace pace) {
  SILTFS_RETURN_IF_ERROR(CheckRunning());
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records,
                          ReadSegmentRecords(*deps_.metadata.CommittedSnapshot()));
  const MeteredWork metered(progress_);
  progress_.Begin("segments", records.size());
  for (const auto& [id, record] : records) {
    progress_.Add();
    if (id <= statistics_.reached || record.chunks == 0) continue;
    SILTFS_RETURN_IF_ERROR(ScrubSegment(id, record, pace));
    statistics_.reached = id;
    SILTFS_RETURN_IF_ERROR(WriteRecords({{std::string(kScrubKey), statistics_.Encode()}}));
  }
  return Status::Ok();
}

// A segment may be recompressed or removed while it is verified. Then the findings are about a file
// that no longer exists, and are dropped. After a recompression the new file is verified.
Status Scrubber::ScrubSegment(SegmentId id, const SegmentRecord& record, ScrubPace pace) {
  for (;;) {
    SILTFS_RETURN_IF_ERROR(CheckRunning());
    // After a failed replacement it is unknown which file is in place. The recompressor has then
    // failed the log, so the scrub ends here instead of repeating the verification forever.
    SILTFS_RETURN_IF_ERROR(deps_.log.failure());
    const auto opened = deps_.segments.Open(id);
    if (deps_.segments.IsRemoved(id)) {
      if (!opened.ok()) opened.status().IgnoreError("it was removed");
      return Status::Ok();
    }
    if (!opened.ok()) {
      if (!opened.status().Is(StatusCode::kNotFound)) return opened.status();
      NoteLost(id, record, opened.status());
      return Status::Ok();
    }
    const OpenSegment& segment = **opened;
    const uint64_t unanswered = deps_.segments.store().UnansweredReads();
    const auto findings = Verify(segment, record, pace);
    if (Status answered = CheckAnswered(deps_.segments.store(), unanswered); !answered.ok()) {
      if (!findings.ok()) findings.status().IgnoreError("the segment was not read");
      return answered;
    }
    if (deps_.segments.IsRemoved(id)) {
      if (!findings.ok()) findings.status().IgnoreError("it was removed");
      return Status::Ok();
    }
    const bool replaced =
        segment.file == SegmentFile::kUnknown || deps_.segments.FileOf(id) != segment.file;
    if (!findings.ok() && (!replaced || findings.status().Is(StatusCode::kInterrupted)))
      return findings.status();
    if (replaced) continue;
    Note(id, *findings);
    const auto size = segment.reader->file().Size();
    const uint64_t verified = size.ok() ? *size : record.length;
    statistics_.bytes += verified;
    verified_bytes_ += verified;
    return Status::Ok();
  }
}

Result<SegmentFindings> Scrubber::Verify(const OpenSegment& segment, const SegmentRecord& record,
                                         ScrubPace pace) {
  SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(options_.uuid.bytes));
  SegmentScrub scrub(deps_.segments, deps_.bases,
                     ChunkVerifier(std::move(namer), options_.tag_secret),
                     [this, pace](uint64_t bytes) { return Pace(pace, bytes); });
  if (pace == ScrubPace::kFull) return scrub.Verify(segment, record);
  std::optional<Result<SegmentFindings>> findings;
  BackgroundJob::RunOnIdleThread([&] { findings.emplace(scrub.Verify(segment, record)); });
  return *std::move(findings);
}

void Scrubber::NoteLost(SegmentId id, const SegmentRecord& record, const Status& why) {
  Report(fmt::format("segment {} cannot be opened, {} chunks are lost with it: {}", id,
                     record.chunks, why.ToString()));
  ++statistics_.segments;
  ++statistics_.damaged_blocks;
  statistics_.damaged_chunks += record.chunks;
}

void Scrubber::Note(SegmentId id, const SegmentFindings& findings) {
  ++statistics_.segments;
  statistics_.blocks += findings.blocks;
  statistics_.chunks += findings.chunks;
  statistics_.damaged_blocks += findings.damaged.size();
  statistics_.damaged_chunks += findings.damaged_chunks();
  if (findings.footer_damaged) ++statistics_.damaged_footers;
  // From now on no new chunk may be a duplicate of a newly listed chunk. The pipeline could still
  // find a listed chunk by its name, so it must forget the names of the chunks that it has
  // appended.
  if (deps_.damage.Replace(id, findings.damaged, findings.end_ordinal))
    deps_.pipeline.ForgetAppended();
  for (const Notice& notice : findings.notices) Report(notice);
}

Status Scrubber::WriteRecords(std::vector<Mutation> records) {
  for (Mutation& change : deps_.damage.Changes()) records.push_back(std::move(change));
  const Status written = deps_.metadata.WriteThrough(records);
  if (written.ok() || written.Is(StatusCode::kNoSpace)) return Status::Ok();
  return deps_.log.Fail(written);
}

void Scrubber::Report(const Notice& notice) {
  if (!options_.report || reported_ > kMostReported) return;
  const bool last = ++reported_ > kMostReported;
  options_.report(last ? Notice("there is more damage; this scrub only counts it from here on")
                       : notice);
}

}  // namespace siltfs
