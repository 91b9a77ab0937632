#include "tools/bench/index_load.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "store/base/thread_annotations.h"
#include "tools/bench/bench_threads.h"

namespace siltfs {
namespace {

constexpr uint64_t kPutsPerSample = 16384;

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

size_t IndexLoad::BatchOf(uint64_t rest) const {
  return static_cast<size_t>(std::min<uint64_t>(rest, entries_.size()));
}

// Puts the first `count` of entries_.
void IndexLoad::PutBatch(ChunkIndex& index, size_t count, PutStatistics& statistics) {
  const Stopwatch putting;
  Require(index.Put(std::span(entries_).first(count), ++sequence_));
  statistics.latency.Record(putting.nanoseconds());
  since_sample_ += count;
  if (options_.progress != nullptr) options_.progress->puts += count;
}

void IndexLoad::EnterPhase(const char* phase) {
  if (options_.progress != nullptr) options_.progress->phase = phase;
}

void IndexLoad::Sample(MemoryMeter& memory, bool now, PutStatistics& statistics) {
  if (!now && since_sample_ < kPutsPerSample) return;
  since_sample_ = 0;
  Note(memory.PeakGrowth(), statistics);
}

void IndexLoad::Note(uint64_t growth, PutStatistics& statistics) const {
  if (growth > statistics.memory_bytes) {
    statistics.memory_bytes = growth;
    statistics.memory_entries = put_;
  }
  if (put_ <= options_.entries / 2) return;
  statistics.most_bytes_per_entry = std::max(
      statistics.most_bytes_per_entry, static_cast<double>(growth) / static_cast<double>(put_));
}

// Waits until `puts` puts, and the gets that belong to them, are allowed.
void IndexLoad::WaitForRate(const Stopwatch& mixing, uint64_t puts) const {
  if (options_.mix_per_s == 0) return;
  const double share = static_cast<double>(options_.mix_puts) /
                       static_cast<double>(options_.mix_puts + options_.mix_gets);
  const double due = static_cast<double>(puts) / (share * static_cast<double>(options_.mix_per_s));
  std::this_thread::sleep_for(std::chrono::duration<double>(due - mixing.seconds()));
}

void IndexLoad::PutUpTo(ChunkIndex& index, uint64_t end, MemoryMeter& memory, MixPace* pace) {
  const Stopwatch mixing;
  const uint64_t first = put_;
  while (put_ < end) {
    const size_t count = BatchOf(end - put_);
    for (size_t i = 0; i < count; ++i) entries_[i] = keys_.EntryOf(put_ + i);
    if (pace != nullptr) {
      WaitForRate(mixing, put_ - first);
      pace->BeforePut();
    }
    PutBatch(index, count, statistics_.puts);
    put_ += count;
    if (options_.progress != nullptr) options_.progress->entries = put_;
    if (pace != nullptr) pace->AfterPut(count);
    Sample(memory, put_ == end, statistics_.puts);
  }
}

void IndexLoad::PutWithGets(ChunkIndex& index, MemoryMeter& memory) {
  const unsigned threads = options_.get_threads;
  MixPace pace(options_.mix_puts, options_.mix_gets, put_, threads * options_.get_batch);
  Mutex latency_mutex;
  RunThreads(threads + 1, [&](unsigned thread) {
    const PaceEnd end(pace);
    if (thread == threads) {
      PutUpTo(index, options_.entries, memory, &pace);
      return;
    }
    LatencyHistogram latency;
    IndexGets gets(index, keys_, options_.get_batch, options_.seed + 1 + thread);
    gets.Record(latency);
    while (const auto present = pace.ClaimGets(options_.get_batch)) {
      gets.GetPresent(options_.get_batch, *present);
      pace.AfterGets(options_.get_batch);
      if (options_.progress != nullptr) options_.progress->gets += options_.get_batch;
    }
    MutexLock lock(latency_mutex);
    statistics_.mixed_get_latency.Add(latency);
  });
  statistics_.mixed_gets = pace.gets();
}

void IndexLoad::Fill(ChunkIndex& index, MemoryMeter& memory) {
  sequence_ = index.durable_sequence();
  const Stopwatch filling;
  const double processor = ProcessorSeconds();
  EnterPhase("base");
  PutUpTo(index, options_.entries / 2, memory, nullptr);
  statistics_.first_half_seconds = filling.seconds();
  statistics_.first_half_processor_seconds = ProcessorSeconds() - processor;
  const Stopwatch second_half;
  const uint64_t mixed = options_.mix_gets > 0 ? options_.mixed : 0;
  EnterPhase("growth");
  PutUpTo(index, options_.entries - mixed, memory, nullptr);
  if (mixed > 0) {
    EnterPhase("mix");
    const Stopwatch mixing;
    PutWithGets(index, memory);
    statistics_.mixed_seconds = mixing.seconds();
  }
  Require(index.Flush());
  statistics_.puts.seconds = filling.seconds();
  statistics_.second_half_seconds = second_half.seconds();
  Sample(memory, true, statistics_.puts);
  statistics_.puts.end_memory_bytes = memory.Growth();
  Note(statistics_.puts.end_memory_bytes, statistics_.puts);
}

PutStatistics IndexLoad::Update(ChunkIndex& index, MemoryMeter& memory, const UpdateOrder& order,
                                uint64_t first, uint64_t count) {
  PutStatistics statistics;
  memory.PeakGrowth();  // the peak of earlier work does not count
  EnterPhase("updates");
  const Stopwatch updating;
  const uint64_t end = first + count;
  for (uint64_t update = first; update < end;) {
    const size_t batch = BatchOf(end - update);
    for (size_t i = 0; i < batch; ++i, ++update) {
      entries_[i] = keys_.EntryOf(order.NumberOf(update), order.VersionOf(update));
    }
    PutBatch(index, batch, statistics);
    Sample(memory, update == end, statistics);
  }
  Require(index.Flush());
  statistics.seconds = updating.seconds();
  Sample(memory, true, statistics);
  statistics.end_memory_bytes = memory.Growth();
  Note(statistics.end_memory_bytes, statistics);
  return statistics;
}

}  // namespace siltfs
