#include "tools/bench/index_lookups.h"

#include <algorithm>

#include "index/silt/silt_options.h"
#include "store/base/thread_annotations.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/rounds.h"

namespace siltfs {

IndexLookups::Get IndexLookups::Present() const {
  return [this](IndexGets& gets, size_t count) { gets.GetPresent(count, options_.entries); };
}

IndexLookups::Get IndexLookups::Absent() {
  return [](IndexGets& gets, size_t count) { gets.GetAbsent(count); };
}

LookupStatistics IndexLookups::MeasureBatches(uint64_t gets, DeviceReads* device) const {
  LookupStatistics statistics;
  const uint64_t count = std::max<uint64_t>(gets / options_.rounds, 1);
  const auto read_device = [&](unsigned round) {
    if (device == nullptr) return;
    const unsigned depth = SiltIndexOptions{}.read_depth;
    const double seconds = device->Read(count, options_.threads, depth, round);
    statistics.device_per_s.push_back(static_cast<double>(count) / seconds);
  };
  for (unsigned round = 0; round < options_.rounds; ++round) {
    read_device(round);
    Measure(count, round, statistics.hits, Present());
    Measure(count, round, statistics.misses, Absent());
  }
  read_device(options_.rounds);
  return statistics;
}

void IndexLookups::Measure(uint64_t count, unsigned round, GetStatistics& statistics,
                           const Get& get) const {
  const uint64_t before = index_.stats().flash_reads;
  const Stopwatch getting;
  RunThreads(options_.threads, [&](unsigned thread) {
    IndexGets gets(index_, keys_, options_.get_batch,
                   (options_.seed + round) * options_.threads + thread);
    gets.ExpectUpdates(order_, updates_);
    const uint64_t share = ShareOf(count, thread, options_.threads);
    const auto batches =
        static_cast<unsigned>((share + options_.get_batch - 1) / options_.get_batch);
    for (unsigned batch = 0; batch < batches; ++batch) {
      const uint64_t size = ShareOf(share, batch, batches);
      get(gets, size);
      progress_.gets += size;
    }
  });
  statistics.per_s.push_back(static_cast<double>(count) / getting.seconds());
  statistics.reads += index_.stats().flash_reads - before;
  statistics.gets += count;
}

void IndexLookups::MeasureSingle(uint64_t gets, LookupStatistics& statistics) const {
  MeasureLatency(gets, statistics.hits.latency, Present());
  MeasureLatency(gets, statistics.misses.latency, Absent());
}

void IndexLookups::MeasureLatency(uint64_t count, LatencyHistogram& latency, const Get& get) const {
  Mutex mutex;
  RunThreads(options_.threads, [&](unsigned thread) {
    LatencyHistogram own;
    // Further seeds than those of the batches, so that these lookups have other names.
    IndexGets gets(index_, keys_, 1, ~(options_.seed * options_.threads + thread));
    gets.ExpectUpdates(order_, updates_);
    gets.Record(own);
    const uint64_t share = ShareOf(count, thread, options_.threads);
    for (uint64_t i = 0; i < share; ++i) get(gets, 1);
    progress_.gets += share;
    MutexLock lock(mutex);
    latency.Add(own);
  });
}

}  // namespace siltfs
