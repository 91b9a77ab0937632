#include "tools/bench/index_load.h"

#include <algorithm>

#include "tools/bench/bench_threads.h"
#include "tools/bench/rounds.h"

namespace siltfs {
namespace {

constexpr uint64_t kBatchesPerSample = 16;

// Calls MixPace::End on every exit of its thread, so that the other threads do not wait forever.
class PaceEnd {
 public:
  explicit PaceEnd(MixPace& pace) : pace_(pace) {}
  ~PaceEnd() { pace_.End(); }
  PaceEnd(const PaceEnd&) = delete;
  PaceEnd& operator=(const PaceEnd&) = delete;

 private:
  MixPace& pace_;
};

}  // namespace

IndexLoad::IndexLoad(const IndexKeys& keys, const IndexLoadOptions& options)
    : keys_(keys), options_(options) {
  entries_.resize(options_.put_batch);
}

void IndexLoad::PutBatch(ChunkIndex& index, uint64_t end) {
  const size_t count = std::min<uint64_t>(end - put_, entries_.size());
  for (size_t i = 0; i < count; ++i) entries_[i] = keys_.EntryOf(put_ + i);
  Require(index.Put(std::span(entries_).first(count), ++sequence_));
  put_ += count;
}

void IndexLoad::Sample(MemoryMeter& memory) { Note(memory.PeakGrowth()); }

void IndexLoad::Note(uint64_t growth) {
  if (growth > statistics_.memory_bytes) {
    statistics_.memory_bytes = growth;
    statistics_.memory_entries = put_;
  }
  if (put_ <= options_.entries / 2) return;
  statistics_.second_half_bytes_per_entry =
      std::max(statistics_.second_half_bytes_per_entry,
               static_cast<double>(growth) / static_cast<double>(put_));
}

void IndexLoad::PutUpTo(ChunkIndex& index, uint64_t end, MemoryMeter& memory, MixPace* pace) {
  for (uint64_t batch = 1; put_ < end; ++batch) {
    const uint64_t before = put_;
    if (pace != nullptr) pace->BeforePut();
    PutBatch(index, end);
    if (pace != nullptr) pace->AfterPut(put_ - before);
    if (batch % kBatchesPerSample == 0 || put_ == end) Sample(memory);
  }
}

void IndexLoad::PutWithGets(ChunkIndex& index, MemoryMeter& memory) {
  const unsigned threads = options_.get_threads;
  MixPace pace(options_.mix_puts, options_.mix_gets, put_, threads * options_.get_batch);
  RunThreads(threads + 1, [&](unsigned thread) {
    const PaceEnd end(pace);
    if (thread == threads) {
      PutUpTo(index, options_.entries, memory, &pace);
      return;
    }
    IndexGets gets(index, keys_, options_.get_batch, options_.seed + 1 + thread);
    while (const auto present = pace.ClaimGets(options_.get_batch)) {
      gets.GetPresent(options_.get_batch, *present);
      pace.AfterGets(options_.get_batch);
    }
  });
  statistics_.mixed_gets = pace.gets();
}

IndexLoadStatistics IndexLoad::Fill(ChunkIndex& index, MemoryMeter& memory) {
  statistics_ = {};
  sequence_ = index.durable_sequence();
  const Stopwatch base;
  PutUpTo(index, options_.entries / 2, memory, nullptr);
  statistics_.base_seconds = base.seconds();
  const Stopwatch second_half;
  const uint64_t mixed = options_.mix_gets > 0 ? options_.mixed : 0;
  PutUpTo(index, options_.entries - mixed, memory, nullptr);
  if (mixed > 0) {
    const Stopwatch mixing;
    PutWithGets(index, memory);
    statistics_.mixed_seconds = mixing.seconds();
  }
  Require(index.Flush());
  statistics_.second_half_seconds = second_half.seconds();
  Sample(memory);
  statistics_.end_memory_bytes = memory.Growth();
  Note(statistics_.end_memory_bytes);
  return statistics_;
}

}  // namespace siltfs
