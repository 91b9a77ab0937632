#include "tools/bench/index_lookups.h"

#include <algorithm>

#include "index/silt/silt_options.h"
#include "store/base/thread_annotations.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/rounds.h"
#include "tools/bench/timed_step.h"

namespace siltfs {
namespace {

// Of all threads together. The threads wait for each other after a step, so steps are long.
constexpr uint64_t kMostNamesOfStep = 1U << 21;

}  // namespace

IndexLookups::Get IndexLookups::Present() const {
  return [this](IndexGets& gets, size_t count) { gets.GetPresent(count, options_.entries); };
}

IndexLookups::Get IndexLookups::Absent() {
  return [](IndexGets& gets, size_t count) { gets.GetAbsent(count); };
}

LookupStatistics IndexLookups::MeasureBatches(uint64_t gets, DeviceReads* device,
                                              const std::string& directory) const {
  LookupStatistics statistics;
  const uint64_t count = std::max<uint64_t>(gets / options_.rounds, 1);
  const auto reads_per_s = [&](DeviceReads& reads, unsigned round) {
    const unsigned depth = SiltIndexOptions{}.read_depth;
    return static_cast<double>(count) / reads.Read(count, options_.threads, depth, round);
  };
  const auto read_device = [&](unsigned round) {
    if (device == nullptr) return;
    const double before = ProcessorSeconds();
    statistics.device_per_s.push_back(reads_per_s(*device, round));
    statistics.device_processor_us += (ProcessorSeconds() - before) * 1e6 /
                                      static_cast<double>(count * (options_.rounds + uint64_t{1}));
    const auto files = DeviceReads::OfFilesIn(device->env(), directory);
    if (files != nullptr) statistics.files_per_s.push_back(reads_per_s(*files, round));
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
  const IndexStats before = index_.stats();
  TimedStep step(options_.threads);  // without the making of names and the checks of answers
  RunThreads(options_.threads, [&](unsigned thread) {
    TimedStep::Member member(step);
    const uint64_t share = ShareOf(count, thread, options_.threads);
    const uint64_t steps = 1 + count / kMostNamesOfStep;
    IndexGets gets(index_, keys_, (share + steps - 1) / steps,
                   (options_.seed + round) * options_.threads + thread);
    gets.ExpectUpdates(order_, updates_);
    gets.CallTogether(member);
    gets.LimitCalls(options_.get_batch);
    for (unsigned number = 0; number < steps; ++number) {
      const uint64_t size = ShareOf(share, number, static_cast<unsigned>(steps));
      get(gets, size);
      progress_.gets += size;
    }
  });
  statistics.per_s.push_back(static_cast<double>(count) / step.seconds());
  statistics.processor_seconds += step.processor_seconds();
  const IndexStats after = index_.stats();
  statistics.reads += after.flash_reads - before.flash_reads;
  statistics.pages += after.flash_pages_read - before.flash_pages_read;
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
