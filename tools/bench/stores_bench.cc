// siltfs-bench stores: each kind of SILT's stores alone, as in tables 6 and 7 of the paper. Builds
// LogStores, converts them, and merges the result into a SortedStore, each step timed alone. Then
// looks present and absent names up in one kind of store at a time.
//
// Each lookup goes to the one store that has the name, because an index does not search all stores
// of a kind for a name that it finds in the first one.
#include <memory>
#include <string>
#include <vector>

#include "index/silt/lookup.h"
#include "index/silt/silt_options.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/device_reads.h"
#include "tools/bench/index_report.h"
#include "tools/bench/latency_histogram.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"
#include "tools/bench/single_stores.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct StoresBenchArguments {
  uint64_t entries = 4'000'000;
  unsigned bucket_bits = kDefaultBucketBits;
  uint64_t gets = 500'000;
  uint64_t single_gets = 20'000;
  unsigned threads = 2;
  unsigned rounds = 3;
  std::string directory;
  uint64_t seed = 1;
};

constexpr double kPutBytes = 32;  // of a name and a location

// Looks up names that are in their stores, or that no store has.
class StoreGets final : public LookupBatch<Lookup> {
 public:
  StoreGets(const SingleStores& stores, const OneStores& searched, bool present, size_t count,
            uint64_t seed)
      : stores_(stores),
        searched_(searched),
        present_(present),
        count_(count),
        random_(seed),
        nothing_(LogStore::Config{.bucket_bits = 1, .name_hash = stores.name_hash()}, nullptr) {
    numbers_.resize(count);
  }

  size_t size() const override { return count_; }
  Lookup Prepare(size_t i) override {
    const OneStore& store = *searched_[random_.Below(searched_.size())];
    numbers_[i] = store.first + random_.Below(store.count) + (present_ ? 0 : IndexKeys::kAbsent);
    Lookup lookup(stores_.name_hash().KeyOf(kChunkSlots, stores_.keys().NameOf(numbers_[i])));
    lookup.Begin(nothing_, &store.version);
    return lookup;
  }
  void Begin(Lookup& /*lookup*/) override {}
  void End(size_t i, const Lookup& lookup) override {
    Require(lookup.status());
    reads_ += lookup.pages_read();
    const auto& found = lookup.found();
    if (found.has_value() != present_ ||
        (present_ && found->location != stores_.keys().LocationOf(numbers_[i]))) {
      throw BenchFailure("stores: a lookup has a wrong answer");
    }
  }
  uint64_t reads() const { return reads_; }

 private:
  const SingleStores& stores_;
  const OneStores& searched_;
  const bool present_;
  const size_t count_;
  Random random_;
  LogStore nothing_;
  std::vector<uint64_t> numbers_;
  uint64_t reads_ = 0;
};

struct Gets {
  std::vector<double> per_s;
  uint64_t reads = 0;
  uint64_t gets = 0;
  LatencyHistogram latency;  // of single lookups
};

class Measurement {
 public:
  explicit Measurement(const StoresBenchArguments& arguments)
      : arguments_(arguments),
        env_(NewPosixEnv()),
        scratch_(*env_, arguments.directory),
        stores_(*env_, scratch_.path(), arguments.entries, arguments.bucket_bits, arguments.seed) {}

  Json Run() {
    Json kinds;
    const Built put = stores_.MakeLogs();
    device_ =
        std::make_unique<DeviceReads>(*env_, scratch_.path() + "/device", arguments_.entries * 20);
    kinds["log_store"] = LookUp(stores_.logs(), put, MemoryOf(stores_.logs()));
    for (const bool runs : {false, true}) {
      OneStores converted;
      const Built convert = stores_.Convert(runs, converted);
      kinds[runs ? "sorted_run" : "hash_store"] = LookUp(converted, convert, MemoryOf(converted));
      OneStores merged;
      merged.push_back(std::make_unique<OneStore>());
      const Built merge = stores_.Merge(converted, *merged.front());
      kinds[runs ? "sorted_store_of_runs" : "sorted_store"] =
          LookUp(merged, merge, MemoryOf(merged));
    }
    return {{"entries", arguments_.entries},
            {"bucket_bits", arguments_.bucket_bits},
            {"gets", arguments_.gets},
            {"threads", arguments_.threads},
            {"rounds", arguments_.rounds},
            {"processor", ProcessorName()},
            {"verified", true},
            {"device_reads_per_s", Median(device_per_s_)},
            {"kinds", kinds}};
  }

 private:
  static uint64_t MemoryOf(const OneStores& stores) {
    uint64_t bytes = 0;
    for (const auto& store : stores) {
      std::vector<IndexComponentStats> stats;
      store->version.AddStats(stats);
      for (const auto& one : stats) bytes += one.memory_bytes;
    }
    return bytes;
  }

  Json LookUp(const OneStores& searched, const Built& built, uint64_t memory) {
    Gets hits;
    Gets misses;
    for (unsigned round = 0; round < arguments_.rounds; ++round) {
      const double seconds =
          device_->Read(arguments_.gets, arguments_.threads, SiltIndexOptions{}.read_depth, round);
      device_per_s_.push_back(static_cast<double>(arguments_.gets) / seconds);
      Measure(searched, true, round, hits);
      Measure(searched, false, round, misses);
    }
    if (arguments_.single_gets > 0) {
      MeasureSingle(searched, true, hits.latency);
      MeasureSingle(searched, false, misses.latency);
    }
    const auto per_get = [](const Gets& gets) {
      return static_cast<double>(gets.reads) / static_cast<double>(gets.gets);
    };
    const double entries_per_s = static_cast<double>(built.entries) / built.seconds;
    return {{"stores", searched.size()},
            {"built_entries_per_s", entries_per_s},
            {"built_mb_per_s", entries_per_s * kPutBytes / 1e6},
            {"memory_bytes_per_entry",
             static_cast<double>(memory) / static_cast<double>(arguments_.entries)},
            {"get_hit_per_s", Median(hits.per_s)},
            {"get_miss_per_s", Median(misses.per_s)},
            {"reads_per_hit", per_get(hits)},
            {"reads_per_miss", per_get(misses)},
            {"single_hit_us", ReportOf(hits.latency)},
            {"single_miss_us", ReportOf(misses.latency)}};
  }

  void Measure(const OneStores& searched, bool present, unsigned round, Gets& gets) {
    std::vector<uint64_t> reads(arguments_.threads);
    const Stopwatch getting;
    RunThreads(arguments_.threads, [&](unsigned thread) {
      auto queue = env_->NewReadQueue(SiltIndexOptions{}.read_depth);
      Require(queue.status());
      LookupReader reader{
          .queue = std::move(*queue),
          .pages = AlignedBuffer(size_t{2} * SiltIndexOptions{}.read_depth * kPageSize)};
      StoreGets batch(stores_, searched, present,
                      ShareOf(arguments_.gets, thread, arguments_.threads),
                      (arguments_.seed + round) * arguments_.threads + thread);
      RunLookups(batch, reader);
      reads[thread] = batch.reads();
    });
    gets.per_s.push_back(static_cast<double>(arguments_.gets) / getting.seconds());
    for (const uint64_t share : reads) gets.reads += share;
    gets.gets += arguments_.gets;
  }

  // One lookup at a time.
  void MeasureSingle(const OneStores& searched, bool present, LatencyHistogram& latency) {
    StoreGets batch(stores_, searched, present, arguments_.single_gets, ~arguments_.seed);
    for (size_t i = 0; i < arguments_.single_gets; ++i) {
      const Stopwatch getting;
      Lookup lookup = batch.Prepare(i);
      FinishLookup(lookup);
      latency.Record(getting.nanoseconds());
      batch.End(i, lookup);
    }
  }

  const StoresBenchArguments& arguments_;
  const std::unique_ptr<Env> env_;
  const ScratchDirectory scratch_;  // destroyed after the members that have files in it
  SingleStores stores_;
  std::unique_ptr<DeviceReads> device_;
  std::vector<double> device_per_s_;
};

}  // namespace

std::function<Json()> ConfigureStoresBench(CLI::App& app) {
  auto arguments = std::make_shared<StoresBenchArguments>();
  app.add_option("--entries", arguments->entries, "Number of entries")
      ->check(CLI::Range(uint64_t{1000}, uint64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--bucket-bits", arguments->bucket_bits,
                 "Binary logarithm of the buckets of a LogStore's table")
      ->check(CLI::Range(1U, kMaxBucketBits))
      ->capture_default_str();
  app.add_option("--get", arguments->gets, "Lookups of each kind in each round")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--single-get", arguments->single_gets,
                 "Further lookups of each kind, one at a time, for latencies; 0: none")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--threads", arguments->threads, "Threads that look up")
      ->check(CLI::Range(1U, 256U))
      ->capture_default_str();
  app.add_option("--rounds", arguments->rounds,
                 "Rounds of lookups, each with reads of the bare device; figures are medians")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  app.add_option("--dir", arguments->directory,
                 "Where to make the stores (the system's temporary directory)");
  app.add_option("--seed", arguments->seed, "Seed of names and lookups")->capture_default_str();
  return [arguments] { return Measurement(*arguments).Run(); };
}

}  // namespace siltfs
