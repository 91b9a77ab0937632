#include "fs/core/size_recorder.h"

#include <chrono>
#include <string>
#include <utility>

#include "fs/records/schema.h"

namespace siltfs {
namespace {

// The thread compares the wall clock this often, so that a machine that slept takes a sample soon
// after a day has passed.
constexpr std::chrono::hours kPoll{1};
constexpr std::chrono::nanoseconds kBetweenSamples = std::chrono::hours(24);

SavingsSample ToSample(const FileSystemStats& stats, int64_t now) {
  return {.taken_ns = now,
          .logical_bytes = stats.logical_bytes,
          .unique_bytes = stats.unique_bytes,
          .stored_bytes = stats.stored_bytes,
          .dead_bytes = stats.dead_bytes,
          .metadata_bytes = stats.metadata_bytes,
          .index_bytes = stats.index_bytes,
          .files = stats.files,
          .chunks_logical = stats.chunks_logical,
          .chunks_unique = stats.chunks_unique,
          .index_memory_bytes = stats.index.memory_bytes,
          .index_entries = stats.index.entries,
          .damaged_chunks = stats.damaged_chunks};
}

// Whether the content of the store is the same. The sizes of metadata and index also change by
// themselves.
bool SameContent(const SavingsSample& a, const SavingsSample& b) {
  return a.logical_bytes == b.logical_bytes && a.unique_bytes == b.unique_bytes &&
         a.stored_bytes == b.stored_bytes && a.dead_bytes == b.dead_bytes && a.files == b.files &&
         a.chunks_logical == b.chunks_logical && a.damaged_chunks == b.damaged_chunks;
}

}  // namespace

SizeRecorder::SizeRecorder(Env& env, CommitPort& metadata, const std::string& store,
                           ReadStats stats, BackgroundJob::Wait wait)
    : env_(env),
      metadata_(metadata),
      stats_(std::move(stats)),
      job_(env, {.store = store,
                 .interrupted = "the record of sizes was interrupted",
                 .wait = std::move(wait)}) {}

void SizeRecorder::StartInBackground() {
  BackgroundJob::Loop loop;
  loop.poll = kPoll;
  loop.work = [this] {
    RecordDaily();
    return std::chrono::nanoseconds(0);
  };
  job_.Start(std::move(loop));
}

void SizeRecorder::RecordDaily() {
  const auto history = Read();
  if (!history) return;
  const int64_t now = env_.NowNanoseconds();
  if (!history->samples().empty()) {
    const int64_t last = history->samples().back().taken_ns;
    // A damaged history may have any time, so `last` is subtracted from nothing.
    if (now >= last && last > now - kBetweenSamples.count()) return;
  }
  const auto sample = Sample();
  if (!sample) return;
  metadata_.WriteThrough({*sample}).IgnoreError(
      "the disk is full, or metadata has failed and reports it to all writers");
}

std::optional<SavingsHistory> SizeRecorder::Read() const {
  const auto value = metadata_.CommittedSnapshot()->Get(kSavingsHistoryKey);
  if (!value.ok()) {
    value.status().IgnoreError("fsck reports unreadable metadata");
    return std::nullopt;
  }
  if (!*value) return SavingsHistory();
  auto history = SavingsHistory::Decode(**value);
  if (history.ok()) return *std::move(history);
  const bool newer = history.status().Is(StatusCode::kNeedsNewer);
  history.status().IgnoreError("a malformed history begins again");
  return newer ? std::nullopt : std::optional(SavingsHistory());
}

std::optional<Mutation> SizeRecorder::Sample() const {
  const auto stats = stats_();
  if (stats.ok()) return Sample(*stats);
  stats.status().IgnoreError("the sample is left out");
  return std::nullopt;
}

std::optional<Mutation> SizeRecorder::Sample(const FileSystemStats& stats) const {
  auto history = Read();
  if (!history) return std::nullopt;
  const SavingsSample sample = ToSample(stats, env_.NowNanoseconds());
  if (!history->samples().empty() && SameContent(history->samples().back(), sample))
    return std::nullopt;
  history->Add(sample);
  return Mutation{std::string(kSavingsHistoryKey), history->Encode()};
}

}  // namespace siltfs
