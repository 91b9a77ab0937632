// Writes an index's memory over time to a CSV file, as in figure 10 of the SILT paper. The columns
// for gets, conversions and merges also give figure 9. A thread takes a sample at each interval.
//
// A sample lists all component stores, and so takes some 250 bytes of memory per store. This
// memory remains in the process and counts as resident.
//
// Errors: throws BenchFailure. Thread-safety: one thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "index/chunk_index.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "tools/bench/index_progress.h"
#include "tools/bench/memory_meter.h"
#include "tools/bench/rounds.h"

namespace siltfs {

// Memory by purpose, as the index itself counts it. An engine without component stores of a kind
// has 0 there. Units: bytes.
struct IndexMemory {
  uint64_t log_stores = 0;  // tables, and pages that are not written yet
  uint64_t hash_store_filters = 0;
  uint64_t page_indexes = 0;  // page boundaries or tries of SortedStores
  uint64_t sorted_store_filters = 0;
  uint64_t other = 0;
  uint64_t total = 0;
};
IndexMemory MemoryOf(const IndexStats& stats);

struct MemoryPeak {
  IndexMemory memory;
  uint64_t entries = 0;  // in the index at the peak
};

class MemoryTrace {
 public:
  // Creates the file, which must not exist, and begins. Borrows everything.
  MemoryTrace(Env& env, const std::string& path, std::chrono::milliseconds interval,
              const ChunkIndex& index, const MemoryMeter& meter, const IndexProgress& progress);
  ~MemoryTrace();
  MemoryTrace(const MemoryTrace&) = delete;
  MemoryTrace& operator=(const MemoryTrace&) = delete;

  // Takes a sample now.
  void Sample();
  // Returns the sample with the highest sum since the last call, and forgets it.
  MemoryPeak TakePeak();
  // Takes a last sample and closes the file. Call this before the index is closed.
  void End();
  uint64_t samples() const;

 private:
  void Run();
  void StopThread();
  Status TakeSample() SILTFS_REQUIRES(mutex_);
  Status Write(const std::string& line) SILTFS_REQUIRES(mutex_);

  const std::chrono::milliseconds interval_;
  const ChunkIndex& index_;
  const MemoryMeter& meter_;
  const IndexProgress& progress_;
  const Stopwatch clock_;

  mutable Mutex mutex_;
  CondVar stop_changed_;
  bool stop_ SILTFS_GUARDED_BY(mutex_) = false;
  std::unique_ptr<File> file_ SILTFS_GUARDED_BY(mutex_);
  uint64_t size_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t samples_ SILTFS_GUARDED_BY(mutex_) = 0;
  MemoryPeak peak_ SILTFS_GUARDED_BY(mutex_);
  Status status_ SILTFS_GUARDED_BY(mutex_);  // of the thread
  std::thread thread_;
};

}  // namespace siltfs
