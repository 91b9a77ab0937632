#include "tools/bench/trace_replay.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "store/env/daemon.h"
#include "store/env/page_allocator.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/index_keys.h"
#include "tools/bench/latency_histogram.h"
#include "tools/bench/memory_meter.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

double Ratio(double part, uint64_t whole) {
  return whole == 0 ? 0 : part / static_cast<double>(whole);
}

// The trace, and for each of its places the place where the same name comes first.
struct KnownTrace {
  std::span<const ChunkName> names;
  std::vector<uint32_t> first;
  uint64_t unique = 0;

  explicit KnownTrace(std::span<const ChunkName> all) : names(all), first(all.size()) {
    if (all.size() > UINT32_MAX) throw BenchFailure("trace: has too many names");
    std::unordered_map<ChunkName, uint32_t> places;
    for (uint32_t i = 0; i < all.size(); ++i) first[i] = places.emplace(all[i], i).first->second;
    unique = places.size();
  }
};

struct ReplayRound {
  double seconds = 0;
  double processor_seconds = 0;
};

class Replay {
 public:
  Replay(Env& env, const KnownTrace& trace, const TraceReplayOptions& options,
         const IndexChoice& choice)
      : env_(env), trace_(trace), options_(options), choice_(choice), keys_(1) {}

  void RunRound() {
    const ScratchDirectory scratch(env_, options_.directory);
    const std::string directory = scratch.path() + "/index";
    Require(env_.CreateDirectory(directory));
    ReleaseFreePages();
    MemoryMeter memory;
    auto index = OpenChosenIndex(env_, choice_, directory, options_.MemoryLimit());
    Require(index.status());
    ReplayRound round;
    const Stopwatch time;
    const double processor = ProcessorSeconds();
    uint64_t puts = 0;
    uint64_t sequence = 0;
    uint64_t hits = 0;
    for (uint64_t begin = 0; begin < trace_.names.size(); begin += options_.batch) {
      const uint64_t count = std::min<uint64_t>(options_.batch, trace_.names.size() - begin);
      hits += LookUp(**index, begin, count);
      CollectMissing(begin, count);
      if (entries_.empty()) continue;
      Require((*index)->Put(entries_, ++sequence));
      const uint64_t flushes = puts / options_.puts_per_flush;
      puts += entries_.size();
      if (puts / options_.puts_per_flush != flushes) Require((*index)->Flush());
    }
    Require((*index)->Flush());
    round.seconds = time.seconds();
    round.processor_seconds = ProcessorSeconds() - processor;
    rounds_.push_back(round);
    hits_ = hits;
    memory_bytes_ = memory.PeakGrowth();
    memory_bytes_end_ = memory.Growth();
    stats_ = (*index)->stats();
    CheckWhole(**index);
    Require((*index)->Close());
  }

  Json Report() const {
    std::vector<double> per_s;
    std::vector<double> processor;
    for (const ReplayRound& round : rounds_) {
      per_s.push_back(static_cast<double>(trace_.names.size()) / round.seconds);
      processor.push_back(round.processor_seconds * 1e6 / static_cast<double>(trace_.names.size()));
    }
    const uint64_t lookups = trace_.names.size();
    return {
        {"engine", choice_.engine},
        {"index_options", choice_.parameters},
        {"lookups_per_s", Median(per_s)},
        {"hits", hits_},
        {"processor_us_per_lookup", Median(processor)},
        {"reads_per_lookup", Ratio(static_cast<double>(stats_.flash_reads), lookups)},
        {"pages_per_lookup", Ratio(static_cast<double>(stats_.flash_pages_read), lookups)},
        {"call_us",
         {{"p50", Microseconds(0.5)}, {"p99", Microseconds(0.99)}, {"p999", Microseconds(0.999)}}},
        {"written_bytes_per_put",
         Ratio(static_cast<double>(stats_.flash_bytes_written), trace_.unique)},
        {"memory_bytes", memory_bytes_},
        {"memory_bytes_per_entry", Ratio(static_cast<double>(memory_bytes_), trace_.unique)},
        {"memory_bytes_per_entry_end",
         Ratio(static_cast<double>(memory_bytes_end_), trace_.unique)},
        {"memory_bytes_reported", stats_.memory_bytes},
        {"flash_bytes", stats_.flash_bytes},
        {"merges", stats_.merges},
        {"verified", true}};  // a wrong answer throws
  }

 private:
  double Microseconds(double share) const {
    return static_cast<double>(latency_.Percentile(share)) / 1000;
  }

  uint64_t LookUp(ChunkIndex& index, uint64_t begin, uint64_t count) {
    results_.resize(count);
    const Stopwatch call;
    Require(index.Get(trace_.names.subspan(begin, count), results_));
    latency_.Record(call.nanoseconds());
    uint64_t hits = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t first = trace_.first[begin + i];
      const auto right = first < begin ? std::optional(keys_.LocationOf(first)) : std::nullopt;
      if (results_[i] != right) {
        throw BenchFailure("trace: a wrong answer for the name at " + std::to_string(begin + i));
      }
      hits += right ? 1 : 0;
    }
    return hits;
  }

  void CollectMissing(uint64_t begin, uint64_t count) {
    entries_.clear();
    for (uint64_t at = begin; at < begin + count; ++at) {
      if (trace_.first[at] == at) entries_.push_back({trace_.names[at], keys_.LocationOf(at)});
    }
  }

  void CheckWhole(ChunkIndex& index) const {
    uint64_t entries = 0;
    Require(index.ForEach([&](const OrderedEntry&) {
      ++entries;
      return Status::Ok();
    }));
    if (entries != trace_.unique) {
      throw BenchFailure("trace: the index lists " + std::to_string(entries) + " entries, not " +
                         std::to_string(trace_.unique));
    }
  }

  Env& env_;
  const KnownTrace& trace_;
  const TraceReplayOptions& options_;
  const IndexChoice choice_;
  const IndexKeys keys_;
  std::vector<std::optional<Location>> results_;
  std::vector<IndexEntry> entries_;
  std::vector<ReplayRound> rounds_;
  LatencyHistogram latency_;
  uint64_t hits_ = 0;
  uint64_t memory_bytes_ = 0;
  uint64_t memory_bytes_end_ = 0;
  IndexStats stats_;
};

}  // namespace

Json ReplayTrace(Env& env, const DedupTrace& trace, const TraceReplayOptions& options) {
  const auto limit = RaiseFileLimit();
  Require(limit.status());
  const std::span<const ChunkName> names(trace.names);
  const KnownTrace known(names.first(std::min<uint64_t>(names.size(), options.limit)));
  std::vector<std::unique_ptr<Replay>> replays;
  for (const IndexChoice& choice : options.indexes) {
    replays.push_back(std::make_unique<Replay>(env, known, options, choice));
  }
  for (unsigned round = 0; round < options.rounds; ++round) {
    for (const auto& replay : replays) replay->RunRound();
  }
  Json engines = Json::array();
  for (const auto& replay : replays) engines.push_back(replay->Report());
  return {{"lookups", known.names.size()},
          {"unique", known.unique},
          {"chunk_bytes", trace.chunk_bytes},
          {"value_bytes", trace.value_bytes},
          {"batch", options.batch},
          {"rounds", options.rounds},
          {"memory_limit_bytes", options.memory ? Json(*options.memory) : Json()},
          {"verified", true},
          {"engines", std::move(engines)}};
}

}  // namespace siltfs
