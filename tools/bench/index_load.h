// The filling of the index benchmark, as in the paper's experiment: half of the entries as a base,
// then the other half new ones into it, alone or with gets between them. Memory is watched all the
// while.
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
  // Beside the last `mixed` puts; 0 gets: none.
  uint64_t mix_puts = 1;
  uint64_t mix_gets = 0;
  uint64_t mixed = 0;
  unsigned get_threads = 2;
  uint64_t seed = 1;
};

struct IndexLoadFigures {
  double base_seconds = 0;
  double second_half_seconds = 0;  // with the flush at its end
  double mixed_seconds = 0;
  uint64_t mixed_gets = 0;
  uint64_t memory_bytes = 0;    // the most at any moment
  uint64_t memory_entries = 0;  // that had been put then
  // Bytes by what had been put then, the most at any moment of the second half: at its beginning,
  // when what doesn't grow weighs most.
  double second_half_bytes_per_entry = 0;
  uint64_t end_memory_bytes = 0;
};

class IndexLoad {
 public:
  // Takes what it needs for itself, so that a MemoryMeter begun afterwards measures the index (and
  // the batches of gets, if there are any).
  IndexLoad(const IndexKeys& keys, const IndexLoadOptions& options);

  // `index` is empty.
  IndexLoadFigures Fill(ChunkIndex& index, MemoryMeter& memory);

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
  IndexLoadFigures figures_;
};

}  // namespace siltfs
