// The lookups of the index benchmark: batches of present and of absent names, and single lookups.
//
// Errors: throws BenchFailure, also for a wrong answer. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/bench/device_reads.h"
#include "tools/bench/index_bench_options.h"
#include "tools/bench/index_gets.h"
#include "tools/bench/index_progress.h"

namespace siltfs {

// One kind of lookups, over all rounds.
struct GetStatistics {
  std::vector<double> per_s;  // of batches
  uint64_t reads = 0;
  uint64_t pages = 0;  // that these reads read
  uint64_t gets = 0;
  double processor_seconds = 0;  // of batches
  LatencyHistogram latency;      // of single lookups
};

struct LookupStatistics {
  GetStatistics hits;
  GetStatistics misses;
  std::vector<double> device_per_s;  // empty if the device was not read
  double device_processor_us = 0;    // of a bare read, on average
  std::vector<double> files_per_s;   // bare reads of the index's own files; may be empty
};

class IndexLookups {
 public:
  // Borrows everything. The index has the versions that entries have after the first `updates`
  // updates of `order`.
  IndexLookups(ChunkIndex& index, const IndexKeys& keys, const IndexBenchOptions& options,
               IndexProgress& progress, const UpdateOrder& order, uint64_t updates)
      : index_(index),
        keys_(keys),
        options_(options),
        progress_(progress),
        order_(order),
        updates_(updates) {}

  // Makes `gets` lookups of each kind in batches. Each round runs all compared measurements, so
  // that other load on the machine affects all alike. `device` may be null; then the files in
  // `directory` are not read either.
  LookupStatistics MeasureBatches(uint64_t gets, DeviceReads* device,
                                  const std::string& directory) const;
  // Makes `gets` lookups of each kind, one in each call, and records the time of each call.
  void MeasureSingle(uint64_t gets, LookupStatistics& statistics) const;

 private:
  using Get = std::function<void(IndexGets& gets, size_t count)>;
  void Measure(uint64_t count, unsigned round, GetStatistics& statistics, const Get& get) const;
  void MeasureLatency(uint64_t count, LatencyHistogram& latency, const Get& get) const;
  Get Present() const;
  static Get Absent();

  ChunkIndex& index_;
  const IndexKeys& keys_;
  const IndexBenchOptions& options_;
  IndexProgress& progress_;
  const UpdateOrder& order_;
  const uint64_t updates_;
};

}  // namespace siltfs
