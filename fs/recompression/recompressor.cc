#include "fs/recompression/recompressor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "fs/records/schema.h"
#include "fs/segments/sealed_record.h"

namespace siltfs {
namespace {

// The longest pause before the background thread checks again whether the store is quiet.
constexpr std::chrono::seconds kPoll{1};
constexpr std::chrono::milliseconds kShortest{1};
// The background thread's pauses: after a full disk, and after a pass that left segments, for
// example because their index entries are not durable yet.
constexpr std::chrono::minutes kAfterNoSpace{10};
constexpr std::chrono::seconds kAfterSomeLeft{30};

}  // namespace

Recompressor::Recompressor(const Dependencies& dependencies, Options options)
    : deps_(dependencies),
      options_(std::move(options)),
      job_(deps_.env, {.store = options_.store,
                       .interrupted = "recompression was interrupted",
                       .wait = options_.wait}) {}

Recompressor::~Recompressor() { Stop(); }

void Recompressor::Add(SegmentId segment, const SegmentRecord& record) {
  const bool data = record.kind == static_cast<uint8_t>(SegmentKind::kData);
  if (!enabled() || !data || !record.sealed || record.recompressed) return;
  {
    MutexLock lock(mutex_);
    candidates_[segment] = record;
  }
  job_.Wake();
}

bool Recompressor::HasCandidates() {
  MutexLock lock(mutex_);
  return !candidates_.empty();
}

size_t Recompressor::CountCandidates() {
  MutexLock lock(mutex_);
  return candidates_.size();
}

Result<SegmentRecords> Recompressor::SetAside(std::span<const SegmentId> segments) {
  const BackgroundJob::Caller caller(job_, BackgroundJob::Priority::kUrgent);
  const BackgroundJob::Run run(job_, BackgroundJob::Runner::kCaller);
  SILTFS_RETURN_IF_ERROR(PayOwed());
  return TakeCandidates(segments);
}

SegmentRecords Recompressor::TakeCandidates(std::span<const SegmentId> segments) {
  SegmentRecords taken;
  MutexLock lock(mutex_);
  for (const SegmentId segment : segments) {
    const auto candidate = candidates_.find(segment);
    if (candidate == candidates_.end()) continue;
    taken.emplace_back(*candidate);
    candidates_.erase(candidate);
  }
  return taken;
}

Recompressor::Candidate Recompressor::NextAfter(SegmentId id) {
  MutexLock lock(mutex_);
  const auto next = candidates_.upper_bound(id);
  if (next == candidates_.end()) return {};
  return {next->first, next->second};
}

void Recompressor::Drop(SegmentId id) {
  MutexLock lock(mutex_);
  candidates_.erase(id);
}

Result<RecompressionOutcome> Recompressor::Recompress() {
  SILTFS_RETURN_IF_ERROR(deps_.log.failure());
  RecompressionOutcome outcome;
  const Prepare prepare = [this](SegmentId id) {
    return PrepareSegment(id, [this](uint64_t) { return job_.CheckRunning(); });
  };
  const BackgroundJob::Caller caller(job_);
  const MeteredWork metered(progress_);
  progress_.Begin("segments", CountCandidates());
  SILTFS_RETURN_IF_ERROR(Pass(BackgroundJob::Runner::kCaller, prepare, outcome));
  return outcome;
}

SegmentId Recompressor::LastCandidate() {
  MutexLock lock(mutex_);
  return candidates_.empty() ? kNoSegment : candidates_.rbegin()->first;
}

Status Recompressor::Pass(BackgroundJob::Runner runner, const Prepare& prepare,
                          RecompressionOutcome& outcome) {
  // The pass ends at the candidate that is the last one at this moment. A later end could be out of
  // reach, because a constant writer adds candidates as fast as the pass recompresses them.
  const SegmentId end = LastCandidate();
  for (SegmentId last = kNoSegment;;) {
    job_.MakeWay();
    const BackgroundJob::Run run(job_, runner);
    SILTFS_RETURN_IF_ERROR(job_.CheckRunning());
    SILTFS_RETURN_IF_ERROR(deps_.log.failure());
    SILTFS_RETURN_IF_ERROR(PayOwed());
    const Candidate candidate = NextAfter(last);
    if (candidate.id == kNoSegment || candidate.id > end) return Status::Ok();
    last = candidate.id;
    SILTFS_RETURN_IF_ERROR(RecompressOne(candidate, prepare, outcome));
    if (runner == BackgroundJob::Runner::kCaller) progress_.Add();
  }
}

Result<PreparedRewrite> Recompressor::PrepareSegment(SegmentId id, const Pace& pace) {
  // The codec keeps zstd contexts, which are large at a high level. They are freed with the codec
  // when this function returns.
  const BlockCodec codec;
  RewriteOptions options;
  options.compression = options_.compression;
  options.block_plain_bytes = options_.block_plain_bytes;
  options.pace = pace;
  options.bases = options_.base_source;
  options.chooser = options_.chooser;
  return PrepareRewrite(deps_.env, options_.store, deps_.segments.store(), {options_.uuid, id},
                        codec, options);
}

bool Recompressor::IndexHas(const SegmentRecord& record) {
  if (record.last_sequence <= deps_.index.durable_sequence()) return true;
  deps_.index.Flush().IgnoreError("durable_sequence() shows whether it has the blocks");
  return record.last_sequence <= deps_.index.durable_sequence();
}

Status Recompressor::CheckSpace() {
  SILTFS_ASSIGN_OR_RETURN(const DiskSpace space, deps_.env.GetDiskSpace(options_.store));
  if (space.available_bytes >= options_.needed_bytes) return Status::Ok();
  return Status(StatusCode::kNoSpace,
                fmt::format("only {} MiB are left on the disk; recompression needs {} MiB",
                            space.available_bytes >> 20, options_.needed_bytes >> 20))
      .At(options_.store);
}

void Recompressor::LeaveAlone(const Candidate& candidate, const Status& why,
                              RecompressionOutcome& outcome) {
  if (options_.report) {
    options_.report(
        fmt::format("segment {} is not recompressed: {}", candidate.id, why.ToString()));
  }
  Drop(candidate.id);
  ++outcome.left;
}

Status Recompressor::RecompressOne(const Candidate& candidate, const Prepare& prepare,
                                   RecompressionOutcome& outcome) {
  const bool victim = options_.is_victim && options_.is_victim(candidate.id);
  if (victim || !IndexHas(candidate.record)) {
    ++outcome.left;
    return Status::Ok();
  }
  if (options_.is_damaged &&
      options_.is_damaged(candidate.id)) {  // the damage was reported already
    Drop(candidate.id);
    ++outcome.left;
    return Status::Ok();
  }
  SILTFS_RETURN_IF_ERROR(CheckSpace());
  auto prepared = prepare(candidate.id);
  if (!prepared.ok()) {
    const Status& failure = prepared.status();
    if (failure.Is(StatusCode::kInterrupted) || failure.Is(StatusCode::kNoSpace)) return failure;
    LeaveAlone(candidate, failure, outcome);
    return Status::Ok();
  }
  if (!(SealedRecord(prepared->before) == candidate.record)) {
    const Status discarded = DiscardRewrite(deps_.env, options_.store, candidate.id);
    discarded.IgnoreError("the file is not needed");
    LeaveAlone(candidate,
               Status(StatusCode::kCorruption,
                      "the footer does not match the segment's record in metadata"),
               outcome);
    return Status::Ok();
  }
  SegmentRecord after = candidate.record;
  if (prepared->worthwhile) {
    after = SealedRecord(prepared->after);
    after.recompressed = true;
    SILTFS_RETURN_IF_ERROR(Replace(candidate, after));
    ++outcome.segments;
    outcome.deltas += prepared->deltas;
    outcome.delta_saved_bytes += prepared->delta_saved_bytes;
    deltas_ += prepared->deltas;
    delta_saved_bytes_ += prepared->delta_saved_bytes;
  } else {
    after.recompressed = true;
    SILTFS_RETURN_IF_ERROR(
        Judge(deps_.metadata.WriteThrough({{SegmentKey(candidate.id), after.Encode()}})));
    deps_.segments.SetRecompressed(candidate.id);
    deps_.account.CountRecompressed(candidate.record.length, candidate.record.length);
    Drop(candidate.id);
    ++outcome.kept;
  }
  outcome.bytes_before += candidate.record.length;
  outcome.bytes_after += after.length;
  return Status::Ok();
}

Status Recompressor::Replace(const Candidate& candidate, const SegmentRecord& after) {
  const Status ready = deps_.segments.store().PrepareReplace(candidate.id);
  if (!ready.ok()) {
    DiscardRewrite(deps_.env, options_.store, candidate.id).IgnoreError("the file is not needed");
    return Judge(ready);
  }
  const Status intended =
      deps_.metadata.WriteThrough({{ReplacementKey(candidate.id), after.Encode()}});
  if (!intended.ok()) {
    // After a failure other than kNoSpace it is unknown whether the intent is durable. This does no
    // harm: the old file is in place, so recovery keeps the old record.
    DiscardRewrite(deps_.env, options_.store, candidate.id).IgnoreError("the file is not needed");
    return Judge(intended);
  }
  // From now on garbage collection marks the bases of the new file.
  if (after.deltas) deps_.bases.Add(candidate.id);
  const Status installed = deps_.segments.Replace(candidate.id, [&] {
    return deps_.segments.store().Replace(
        candidate.id, BuiltReplacement(deps_.env, options_.store, candidate.id));
  });
  // After a failed installation it is unknown which file is durably in place. So metadata stays as
  // it is, and the next mount finds out by reading the file.
  if (!installed.ok()) return deps_.log.Fail(installed);
  deps_.account.CountRecompressed(candidate.record.length, after.length);
  Drop(candidate.id);
  owed_.push_back({SegmentKey(candidate.id), after.Encode()});
  owed_.push_back({ReplacementKey(candidate.id), std::nullopt});
  return PayOwed();
}

Status Recompressor::PayOwed() {
  if (owed_.empty()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Judge(deps_.metadata.WriteThrough(owed_)));
  owed_.clear();
  return Status::Ok();
}

void Recompressor::TakeOwed(std::vector<Mutation>& mutations) {
  const BackgroundJob::Run run(job_, BackgroundJob::Runner::kCaller);
  mutations.insert(mutations.end(), owed_.begin(), owed_.end());
}

Status Recompressor::Judge(Status failure) {
  if (failure.ok() || failure.Is(StatusCode::kNoSpace)) return failure;
  return deps_.log.Fail(failure);
}

Status Recompressor::PaceInBackground(uint64_t plain_bytes) {
  int64_t rested = deps_.env.MonotonicNanoseconds();
  if (options_.bytes_per_second > 0)
    rested += static_cast<int64_t>(1'000'000'000 * plain_bytes / options_.bytes_per_second);
  return job_.RestUntil(
      rested, [this] { return deps_.activity.IsQuiet(); }, kPoll);
}

void Recompressor::StartInBackground() {
  if (!enabled()) return;
  BackgroundJob::Loop loop;
  loop.has_work = [this] { return HasCandidates(); };
  loop.poll = std::min<std::chrono::nanoseconds>(kPoll, deps_.activity.quiet() + kShortest);
  loop.work = [this] { return PassInBackground(); };
  job_.Start(std::move(loop));
}

std::chrono::nanoseconds Recompressor::PassInBackground() {
  if (!deps_.activity.IsQuiet()) return std::chrono::nanoseconds(0);
  // The new file is made on a thread that gets processor time only when no other thread wants it.
  // All other steps stay on the background thread. They are short, and they take locks for which
  // other threads may wait.
  const Prepare prepare = [this](SegmentId id) {
    std::optional<Result<PreparedRewrite>> prepared;
    BackgroundJob::RunOnIdleThread([&] {
      prepared.emplace(
          PrepareSegment(id, [this](uint64_t bytes) { return PaceInBackground(bytes); }));
    });
    return *std::move(prepared);
  };
  RecompressionOutcome outcome;
  const Status passed = Pass(BackgroundJob::Runner::kBackground, prepare, outcome);
  passed.IgnoreError("damage is reported, a failed log reports itself, the rest is retried");
  if (passed.Is(StatusCode::kNoSpace)) return kAfterNoSpace;
  if (!passed.ok() || outcome.left > 0) return kAfterSomeLeft;
  return std::chrono::nanoseconds(0);
}

}  // namespace siltfs
