// Fills the index for the benchmark, as in the SILT paper's experiment. Puts half of the entries as
// a base, then the other half, alone or mixed with gets. Measures memory during all puts.
//
// Errors: throws BenchFailure. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/index_gets.h"
#include "tools/bench/memory_meter.h"
#include "tools/bench/mix_pace.h"

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
  unsigned get_threads = 2;
  uint64_t seed = 1;
};

struct IndexLoadStatistics {
  double base_seconds = 0;
  double second_half_seconds = 0;  // includes the flush at its end
  double mixed_seconds = 0;
  uint64_t mixed_gets = 0;
  uint64_t memory_bytes = 0;    // at the peak
  uint64_t memory_entries = 0;  // entries that were put before the peak
  // The highest ratio of memory to entries put so far, measured during the second half. It is
  // reached at the beginning of that half, when the fixed part of the memory weighs most.
  double second_half_bytes_per_entry = 0;
  uint64_t end_memory_bytes = 0;
};

class IndexLoad {
 public:
  // Allocates its own memory here. A MemoryMeter begun afterwards therefore measures only the index
  // (and the batches of gets, if any).
  IndexLoad(const IndexKeys& keys, const IndexLoadOptions& options);

  // `index` must be empty.
  IndexLoadStatistics Fill(ChunkIndex& index, MemoryMeter& memory);

 private:
  void PutUpTo(ChunkIndex& index, uint64_t end, MemoryMeter& memory, MixPace* pace);
  void PutBatch(ChunkIndex& index, uint64_t end);
  void Sample(MemoryMeter& memory);
  void Note(uint64_t growth);
  void PutWithGets(ChunkIndex& index, MemoryMeter& memory);

  const IndexKeys& keys_;
  const IndexLoadOptions options_;
  std::vector<IndexEntry> entries_;
  uint64_t put_ = 0;
  uint64_t sequence_ = 0;
  IndexLoadStatistics statistics_;
};

}  // namespace siltfs
