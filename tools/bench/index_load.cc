#include "tools/bench/index_load.h"

#include <algorithm>

#include "tools/bench/bench_threads.h"
#include "tools/bench/rounds.h"

namespace siltfs {
namespace {

constexpr uint64_t kBatchesPerSample = 16;

// Ends the pace however its thread ends, so that the others don't wait for ever.
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
  if (growth > figures_.memory_bytes) {
    figures_.memory_bytes = growth;
    figures_.memory_entries = put_;
  }
  if (put_ <= options_.entries / 2) return;
  figures_.second_half_bytes_per_entry =
      std::max(figures_.second_half_bytes_per_entry,
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
  figures_.mixed_gets = pace.gets();
}

IndexLoadFigures IndexLoad::Fill(ChunkIndex& index, MemoryMeter& memory) {
  figures_ = {};
  sequence_ = index.durable_sequence();
  const Stopwatch base;
  PutUpTo(index, options_.entries / 2, memory, nullptr);
  figures_.base_seconds = base.seconds();
  const Stopwatch second_half;
  const uint64_t mixed = options_.mix_gets > 0 ? options_.mixed : 0;
  PutUpTo(index, options_.entries - mixed, memory, nullptr);
  if (mixed > 0) {
    const Stopwatch mixing;
    PutWithGets(index, memory);
    figures_.mixed_seconds = mixing.seconds();
  }
  Require(index.Flush());
  figures_.second_half_seconds = second_half.seconds();
  Sample(memory);
  figures_.end_memory_bytes = memory.Growth();
  Note(figures_.end_memory_bytes);
  return figures_;
}

}  // namespace siltfs
