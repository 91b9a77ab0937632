#include "fs/core/index_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace siltfs {
namespace {

uint64_t SegmentsAfter(const SegmentRecords& records, uint64_t sequence) {
  return static_cast<uint64_t>(std::ranges::count_if(records, [&](const auto& numbered) {
    return numbered.second.chunks > 0 && numbered.second.last_sequence > sequence;
  }));
}

}  // namespace

IndexReplay::IndexReplay(ChunkParts& parts, SegmentRecords records, Options options)
    : parts_(parts), records_(std::move(records)), options_(std::move(options)) {
  for (const auto& [id, record] : parts_.salvaged) {
    for (auto& [known, old] : records_) {
      if (known == id) old = record;
    }
  }
  parts_.replay.Begin(SegmentsAfter(records_, parts_.index.durable_sequence()));
}

IndexReplay::~IndexReplay() { Stop(); }

void IndexReplay::Start(std::function<void()> then) {
  then_ = std::move(then);
  thread_ = std::thread([this] { Run(); });
}

void IndexReplay::Stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    thread_.join();
  } else if (parts_.replay.progress().running) {
    parts_.replay.End(Status(StatusCode::kInterrupted, "the store is closed"));
  }
}

void IndexReplay::Run() {
  Status outcome = Replay();
  if (outcome.ok() && options_.finish) outcome = options_.finish();
  if (!outcome.ok() && !outcome.Is(StatusCode::kInterrupted)) {
    outcome = parts_.log->Fail(outcome);
    if (parts_.options.report) {
      parts_.options.report(
          fmt::format("the chunk index could not be rebuilt: {}", outcome.ToString()));
    }
  }
  finished_ = outcome.ok();
  parts_.replay.End(outcome);
  if (finished_ && then_) then_();
}

Status IndexReplay::MarkIfUnfinished() const {
  return finished_ ? Status::Ok() : options_.mark_unfinished();
}

Status IndexReplay::Interrupted() const {
  return Status(StatusCode::kInterrupted,
                "rebuilding the chunk index was interrupted; the next mount continues")
      .At(parts_.options.store);
}

Status IndexReplay::Replay() {
  ReplayedEntries replayed(parts_.index, records_, options_.secondary, parts_.damage);
  ReplayOptions replay;
  replay.durable_sequence = parts_.index.durable_sequence();
  replay.put = [&](std::span<const IndexEntry> entries, uint64_t sequence) {
    return replayed.Put(entries, sequence);
  };
  replay.report = [this](const std::string& sentence) {
    if (parts_.options.report) parts_.options.report(sentence);
  };
  replay.segment_done = [this](SegmentId) {
    parts_.replay.NoteSegmentDone();
    const ReplayState::Progress progress = parts_.replay.progress();
    if (options_.on_progress) options_.on_progress(progress.done, progress.total);
    return stopping_ ? Interrupted() : Status::Ok();
  };
  std::atomic<bool> gave_up = false;
  replay.wait_for_answer = [this, &gave_up] {
    constexpr std::chrono::milliseconds kPause(100);
    for (int i = 0; i < 10 && !stopping_; ++i) std::this_thread::sleep_for(kPause);
    if (stopping_) gave_up = true;
    return !stopping_;
  };
  replay.on_damage = [this](const DamagedBlock& lost) {
    if (!parts_.damage.Add(lost)) return Status::Ok();
    return parts_.options.metadata->WriteThrough(parts_.damage.Changes());
  };
  const Status outcome =
      ReplayBlocks(parts_.segments->store(), options_.identity, records_, replay);
  return !outcome.ok() && gave_up ? Interrupted() : outcome;
}

}  // namespace siltfs
