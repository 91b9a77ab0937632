// Fills the index for the benchmark, as in the SILT paper's experiment. Puts half of the entries as
// a base, then the other half, alone or mixed with gets. May update the entries afterwards, so that
// their number stays constant. Measures memory and the time of each call during all puts.
//
// Errors: throws BenchFailure. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/index_gets.h"
#include "tools/bench/index_progress.h"
#include "tools/bench/memory_meter.h"
#include "tools/bench/mix_pace.h"
#include "tools/bench/rounds.h"
#include "tools/bench/update_order.h"

namespace siltfs {

struct IndexLoadOptions {
  uint64_t entries = 0;
  size_t put_batch = 1024;
  size_t get_batch = 4096;
  // Gets run beside the last `mixed` puts: `mix_gets` gets for each `mix_puts` puts. If `mix_gets`
  // is 0, no gets run beside puts.
  uint64_t mix_puts = 1;
  uint64_t mix_gets = 0;
  uint64_t mixed = 0;
  uint64_t mix_per_s = 0;  // puts and gets together are at most this fast; 0: no limit
  unsigned get_threads = 2;
  uint64_t seed = 1;
  IndexProgress* progress = nullptr;  // borrowed; may be null
};

// Of all puts of Fill, or of one call of Update.
struct PutStatistics {
  double seconds = 0;           // includes the flush at the end
  uint64_t memory_bytes = 0;    // at the peak
  uint64_t memory_entries = 0;  // entries in the index at the peak
  // The highest ratio of memory to entries at the same moment, once half of the entries are there.
  // While the index grows, it is reached at half, when the fixed part of the memory weighs most.
  double most_bytes_per_entry = 0;
  uint64_t end_memory_bytes = 0;
  LatencyHistogram latency;  // of each Put call
};

struct IndexLoadStatistics {
  PutStatistics puts;
  double first_half_seconds = 0;
  double first_half_processor_seconds = 0;
  double second_half_seconds = 0;  // includes the flush at its end
  double mixed_seconds = 0;
  uint64_t mixed_gets = 0;
  LatencyHistogram mixed_get_latency;  // of each Get call
};

class IndexLoad {
 public:
  // Allocates its own memory here. A MemoryMeter begun afterwards therefore measures only the index
  // (and the batches of gets, if any).
  IndexLoad(const IndexKeys& keys, const IndexLoadOptions& options);

  // `index` must be empty. Call this once.
  void Fill(ChunkIndex& index, MemoryMeter& memory);
  const IndexLoadStatistics& statistics() const { return statistics_; }  // of Fill
  // Makes `count` updates of `order`, from the number `first` on. Call this after Fill.
  PutStatistics Update(ChunkIndex& index, MemoryMeter& memory, const UpdateOrder& order,
                       uint64_t first, uint64_t count);

 private:
  void PutUpTo(ChunkIndex& index, uint64_t end, MemoryMeter& memory, MixPace* pace);
  size_t BatchOf(uint64_t rest) const;
  void PutBatch(ChunkIndex& index, size_t count, PutStatistics& statistics);
  // Samples the memory if enough entries were put since the last sample, or if `now` is true.
  void Sample(MemoryMeter& memory, bool now, PutStatistics& statistics);
  void Note(uint64_t growth, PutStatistics& statistics) const;
  void WaitForRate(const Stopwatch& mixing, uint64_t puts) const;
  void PutWithGets(ChunkIndex& index, MemoryMeter& memory);
  void EnterPhase(const char* phase);

  const IndexKeys& keys_;
  const IndexLoadOptions options_;
  std::vector<IndexEntry> entries_;
  uint64_t put_ = 0;  // different names
  uint64_t since_sample_ = 0;
  uint64_t sequence_ = 0;
  IndexLoadStatistics statistics_;
};

}  // namespace siltfs
