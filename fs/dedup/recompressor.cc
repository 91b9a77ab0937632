#include "fs/dedup/recompressor.h"

#include <fmt/format.h>

#include <optional>
#include <system_error>
#include <utility>

#include "fs/dedup/sealed_record.h"
#include "fs/meta/schema.h"
#include "store/env/process.h"

namespace siltfs {
namespace {

// How often the thread looks for work.
constexpr std::chrono::seconds kPoll{1};
constexpr std::chrono::milliseconds kShortest{1};
// The pauses after a full disk, and after segments that could not be recompressed yet because the
// index lags behind.
constexpr std::chrono::minutes kAfterNoSpace{10};
constexpr std::chrono::seconds kAfterSomeLeft{30};

Status Interrupted(const std::string& store) {
  return Status(StatusCode::kInterrupted, "recompression was interrupted").At(store);
}

}  // namespace

Recompressor::Recompressor(Env& env, ChunkIndex& index, SegmentLog& log, SegmentCache& segments,
                           Options options)
    : env_(env),
      index_(index),
      log_(log),
      segments_(segments),
      options_(std::move(options)),
      last_use_(env.MonotonicNanoseconds()) {}

Recompressor::~Recompressor() { Stop(); }

void Recompressor::Stop() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wakes_.NotifyAll();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
  // Waits for running callers of Recompress; later callers find that they may not begin.
  MutexLock run(run_mutex_);
}

Status Recompressor::CheckRunning() {
  MutexLock lock(mutex_);
  return stopping_ ? Interrupted(options_.store) : Status::Ok();
}

void Recompressor::Add(SegmentId segment, const SegmentRecord& record) {
  const bool data = record.kind == static_cast<uint8_t>(SegmentKind::kData);
  if (!enabled() || !data || !record.sealed || record.recompressed) return;
  MutexLock lock(mutex_);
  candidates_[segment] = record;
  wakes_.NotifyAll();
}

Result<SegmentRecords> Recompressor::SetAside(std::span<const SegmentId> segments) {
  CountSettingAside(1);
  SegmentRecords not_recompressed;
  Status paid;
  {
    MutexLock run(run_mutex_);
    paid = PayOwed();
    if (paid.ok()) not_recompressed = TakeCandidates(segments);
  }
  CountSettingAside(-1);
  SILTFS_RETURN_IF_ERROR(paid);
  return not_recompressed;
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
  RecompressionOutcome outcome;
  const Prepare prepare = [this](SegmentId id) {
    return PrepareSegment(id, [this](uint64_t) { return CheckRunning(); });
  };
  CountCallers(1);
  const Status passed = Pass(prepare, outcome);
  CountCallers(-1);
  SILTFS_RETURN_IF_ERROR(passed);
  return outcome;
}

void Recompressor::CountCallers(int difference) {
  MutexLock lock(mutex_);
  callers_ += difference;
  wakes_.NotifyAll();
}

void Recompressor::CountSettingAside(int difference) {
  MutexLock lock(mutex_);
  setting_aside_ += difference;
  wakes_.NotifyAll();
}

SegmentId Recompressor::LastCandidate() {
  MutexLock lock(mutex_);
  return candidates_.empty() ? kNoSegment : candidates_.rbegin()->first;
}

// A mutex alone is unfair: the thread that has just released it usually gets it again.
void Recompressor::MakeWay() {
  MutexLock lock(mutex_);
  while (setting_aside_ > 0) wakes_.Wait(mutex_);
}

Status Recompressor::Pass(const Prepare& prepare, RecompressionOutcome& outcome) {
  // The pass ends at the last candidate of now: a constant writer adds candidates as fast as they
  // are recompressed.
  const SegmentId end = LastCandidate();
  for (SegmentId last = kNoSegment;;) {
    MakeWay();
    MutexLock run(run_mutex_);
    SILTFS_RETURN_IF_ERROR(CheckRunning());
    SILTFS_RETURN_IF_ERROR(log_.failure());
    SILTFS_RETURN_IF_ERROR(PayOwed());
    const Candidate candidate = NextAfter(last);
    if (candidate.id == kNoSegment || candidate.id > end) return Status::Ok();
    last = candidate.id;
    SILTFS_RETURN_IF_ERROR(RecompressOne(candidate, prepare, outcome));
  }
}

Result<PreparedRewrite> Recompressor::PrepareSegment(SegmentId id, const Pace& pace) {
  // zstd contexts of a high level are large; they are freed with the codec.
  const BlockCodec codec;
  RewriteOptions options;
  options.compression = options_.compression;
  options.block_plain_bytes = options_.block_plain_bytes;
  options.pace = pace;
  return PrepareRewrite(env_, options_.store, {options_.uuid, id}, codec, options);
}

bool Recompressor::IndexHas(const SegmentRecord& record) {
  if (record.last_sequence <= index_.durable_sequence()) return true;
  index_.Flush().IgnoreError("durable_sequence() shows whether it has the blocks");
  return record.last_sequence <= index_.durable_sequence();
}

Status Recompressor::CheckSpace() {
  SILTFS_ASSIGN_OR_RETURN(const DiskSpace space, env_.GetDiskSpace(options_.store));
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
    const Status discarded = DiscardRewrite(env_, options_.store, candidate.id);
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
  } else {
    after.recompressed = true;
    SILTFS_RETURN_IF_ERROR(
        Judge(options_.write_through({{SegmentKey(candidate.id), after.Encode()}})));
    segments_.SetRecompressed(candidate.id);
    recompressed_bytes_ += candidate.record.length;
    Drop(candidate.id);
    ++outcome.kept;
  }
  outcome.bytes_before += candidate.record.length;
  outcome.bytes_after += after.length;
  return Status::Ok();
}

Status Recompressor::Replace(const Candidate& candidate, const SegmentRecord& after) {
  const Status intended = options_.write_through({{ReplacementKey(candidate.id), after.Encode()}});
  if (!intended.ok()) {
    // After a failure other than kNoSpace it is unknown whether the intent is durable. The old file
    // is in place, and recovery decides by the file in place.
    DiscardRewrite(env_, options_.store, candidate.id).IgnoreError("the file is not needed");
    return Judge(intended);
  }
  const Status installed = segments_.Replace(
      candidate.id, [&] { return InstallRewrite(env_, options_.store, candidate.id); });
  // It is unknown which file is durably in place, and must not be guessed. The next mount finds
  // out.
  if (!installed.ok()) return log_.Fail(installed);
  saved_bytes_ += candidate.record.length - after.length;
  recompressed_bytes_ += candidate.record.length;
  Drop(candidate.id);
  owed_.push_back({SegmentKey(candidate.id), after.Encode()});
  owed_.push_back({ReplacementKey(candidate.id), std::nullopt});
  return PayOwed();
}

Status Recompressor::PayOwed() {
  if (owed_.empty()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Judge(options_.write_through(owed_)));
  owed_.clear();
  return Status::Ok();
}

void Recompressor::TakeOwed(std::vector<Mutation>& mutations) {
  MutexLock run(run_mutex_);
  mutations.insert(mutations.end(), owed_.begin(), owed_.end());
}

Status Recompressor::Judge(Status failure) {
  if (failure.ok() || failure.Is(StatusCode::kNoSpace)) return failure;
  return log_.Fail(failure);
}

void Recompressor::StartInBackground() {
  if (!enabled()) return;
  MutexLock lock(mutex_);
  if (!stopping_ && !thread_.joinable()) thread_ = std::thread([this] { Work(); });
}

bool Recompressor::IsQuiet() const {
  return env_.MonotonicNanoseconds() - last_use_ >= options_.quiet.count();
}

void Recompressor::WaitAtMost(std::chrono::nanoseconds time) {
  if (options_.wait) return options_.wait(wakes_, mutex_, time);
  wakes_.WaitFor(mutex_, time);
}

Status Recompressor::PaceInBackground(uint64_t plain_bytes) {
  int64_t rested = env_.MonotonicNanoseconds();
  if (options_.bytes_per_second > 0)
    rested += static_cast<int64_t>(1'000'000'000 * plain_bytes / options_.bytes_per_second);
  MutexLock lock(mutex_);
  while (!Unwanted()) {
    // If a notification ends the wait early, for example that of an added segment, the loop waits
    // for the remaining time.
    const int64_t rest = rested - env_.MonotonicNanoseconds();
    if (rest <= 0 && IsQuiet()) return Status::Ok();
    WaitAtMost(rest > 0 ? std::chrono::nanoseconds(rest) : kPoll);
  }
  return Interrupted(options_.store);
}

void Recompressor::Work() {
  // The file is made on a thread that gets processor time only when no other thread wants it. All
  // other steps stay on this thread: they take locks that other threads wait for, and little time.
  const Prepare prepare = [this](SegmentId id) {
    std::optional<Result<PreparedRewrite>> prepared;
    const auto work = [&] {
      prepared.emplace(
          PrepareSegment(id, [this](uint64_t bytes) { return PaceInBackground(bytes); }));
    };
    try {
      std::thread([&work] {
        RunWhenIdle();
        work();
      }).join();
    } catch (const std::system_error&) {  // the machine has no thread to spare
      work();
    }
    return *std::move(prepared);
  };
  int64_t not_before = INT64_MIN;
  for (;;) {
    {
      MutexLock lock(mutex_);
      while (candidates_.empty() && !stopping_) wakes_.Wait(mutex_);
      const auto poll = std::min<std::chrono::nanoseconds>(kPoll, options_.quiet + kShortest);
      if (!stopping_) WaitAtMost(poll);
      if (stopping_) return;
      if (candidates_.empty() || Unwanted() || !IsQuiet() ||
          env_.MonotonicNanoseconds() < not_before)
        continue;
    }
    RecompressionOutcome outcome;
    const Status passed = Pass(prepare, outcome);
    passed.IgnoreError("damage is reported, a failed log reports itself, the rest is retried");
    std::chrono::nanoseconds pause{0};
    if (!passed.ok() || outcome.left > 0) pause = kAfterSomeLeft;
    if (passed.Is(StatusCode::kNoSpace)) pause = kAfterNoSpace;
    not_before = env_.MonotonicNanoseconds() + pause.count();
  }
}

}  // namespace siltfs
