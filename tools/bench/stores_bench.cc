// siltfs-bench stores: each kind of SILT's stores alone, as in tables 6 and 7 of the paper. Builds
// LogStores, converts them, and merges the result into a SortedStore, each step timed alone. Then
// looks present and absent names up in one kind of store at a time.
//
// Each lookup goes to the one store that has the name, because an index does not search all stores
// of a kind for a name that it finds in the first one.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "index/silt/conversion.h"
#include "index/silt/entry_merge.h"
#include "index/silt/lookup.h"
#include "index/silt/silt_options.h"
#include "index/silt/sorted_store.h"
#include "index/silt/store_files.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/device_reads.h"
#include "tools/bench/index_keys.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  uint64_t entries = 4'000'000;
  unsigned bucket_bits = kDefaultBucketBits;
  uint64_t gets = 500'000;
  unsigned threads = 2;
  unsigned rounds = 3;
  std::string directory;
  uint64_t seed = 1;
};

constexpr double kPutBytes = 32;  // of a name and a location
constexpr uint32_t kBatchPages = 3;
// Each merge reads this share of its entries from converted stores, as in an index at rest.
constexpr double kMergedShare = 0.073;

// A version with one store, and the numbers of the names in it.
struct OneStore {
  PartitionVersion version;
  uint64_t first = 0;
  uint64_t count = 0;
};

struct Built {
  double seconds = 0;
  uint64_t entries = 0;
};

class Stores {
 public:
  Stores(Env& env, std::string directory, const Arguments& arguments)
      : env_(env),
        directory_(std::move(directory)),
        arguments_(arguments),
        keys_(MixNumber(arguments.seed)),
        throttle_(env, 0) {}

  const IndexKeys& keys() const { return keys_; }
  const NameHash& name_hash() const { return name_hash_; }

  // Fills LogStores one after another, each until it refuses an entry.
  Built MakeLogs() {
    const Stopwatch building;
    for (uint64_t put = 0; put < arguments_.entries;) {
      const auto log = NewLog();
      const uint64_t first = put;
      while (put < arguments_.entries && Insert(*log, keys_.EntryOf(put))) ++put;
      if (put == first) throw BenchFailure("stores: an empty LogStore refused an entry");
      if (log->HasOpenEntries()) log->SealPage(0);
      WriteOut(*log);
      Require(log->Sync());
      auto store = std::make_unique<OneStore>();
      store->version.logs = {log};
      store->first = first;
      store->count = put - first;
      logs_.push_back(std::move(store));
    }
    return {.seconds = building.seconds(), .entries = arguments_.entries};
  }

  // Converts every LogStore into a HashStore or a sorted run.
  Built Convert(bool sorted_runs, std::vector<std::unique_ptr<OneStore>>& stores) {
    const ConversionOptions options{
        .sorted_runs = sorted_runs, .partition_bits = 0, .runs_per_partition = kRunsPerPartition};
    const Stopwatch building;
    for (const auto& log : logs_) {
      const StoreFileId id{StoreKind::kHash, 0, next_id_++};
      auto written =
          ConvertLog(*log->version.logs.front(), env_, directory_, id, throttle_, options);
      Require(written.status());
      Require(written->file->Sync());
      auto opened = OpenConverted(env_, directory_, id, 0, kChunkSlots);
      Require(opened.status());
      auto filtered = (*opened)->WithFilter();
      Require(filtered.status());
      auto store = std::make_unique<OneStore>();
      store->version.hashes = {std::move(*filtered)};
      store->first = log->first;
      store->count = log->count;
      stores.push_back(std::move(store));
    }
    return {.seconds = building.seconds(), .entries = arguments_.entries};
  }

  // Merges converted stores into a SortedStore of the other entries. The entries are all in one
  // partition, so the converted stores are merged a share at a time, as in an index.
  Built Merge(const std::vector<std::unique_ptr<OneStore>>& stores, OneStore& merged) {
    const auto later =
        std::max<size_t>(1, static_cast<size_t>(kMergedShare * static_cast<double>(stores.size())));
    const size_t base = stores.size() - later;
    MergeInto(stores, 0, base, kBaseSortMemory, merged);
    return MergeInto(stores, base, stores.size(), SiltIndexOptions{}.sort_memory_bytes, merged);
  }

  std::vector<std::unique_ptr<OneStore>>& logs() { return logs_; }

 private:
  static constexpr double kRunsPerPartition = 19;
  static constexpr size_t kBaseSortMemory = 256U << 20;

  std::shared_ptr<LogStore> NewLog() {
    const StoreFileId id{StoreKind::kLog, 0, next_id_++};
    auto file = CreateStoreFile(env_, directory_, id);
    Require(file.status());
    return std::make_shared<LogStore>(LogStore::Config{.id = id.id,
                                                       .bucket_bits = arguments_.bucket_bits,
                                                       .name_hash = name_hash_,
                                                       .layout = kChunkSlots},
                                      *file);
  }

  bool Insert(LogStore& log, const IndexEntry& entry) {
    if (log.sealed_tail_pages() >= kBatchPages) WriteOut(log);
    return log.Insert(name_hash_.Of(entry.name), entry, 0);
  }
  static void WriteOut(LogStore& log) {
    Require(log.WriteOut());
    log.DropWritten();
  }

  Built MergeInto(const std::vector<std::unique_ptr<OneStore>>& stores, size_t begin, size_t end,
                  size_t sort_memory, OneStore& merged) {
    PartitionVersion inputs;
    inputs.sorted = merged.version.sorted;
    uint64_t count = merged.count;
    for (size_t i = begin; i < end; ++i) {
      inputs.hashes.push_back(stores[i]->version.hashes.front());
      count += stores[i]->count;
    }
    const StoreFileId id{StoreKind::kSorted, 0, next_id_++};
    const Stopwatch merging;
    auto writer = SortedStoreWriter::Create(
        env_, directory_, id, {.expected_entries = count, .layout = kChunkSlots}, throttle_);
    Require(writer.status());
    EntryMerge merge(
        inputs, {.name_hash = name_hash_, .sort_memory_bytes = sort_memory, .layout = kChunkSlots});
    Require(merge.Run([&](const OrderKey& key, const SlotEntry& entry) {
      return (*writer)->Append(key, entry);
    }));
    Require((*writer)->Finish());
    auto opened = SortedStore::Open(env_, directory_, id, 0);
    Require(opened.status());
    const double seconds = merging.seconds();
    if ((*opened)->entries() != count) throw BenchFailure("stores: a merge lost entries");
    merged.version.sorted = std::move(*opened);
    merged.count = count;
    return {.seconds = seconds, .entries = count};
  }

  Env& env_;
  const std::string directory_;
  const Arguments& arguments_;
  const IndexKeys keys_;
  const NameHash name_hash_{0x5117f5};
  Throttle throttle_;
  uint64_t next_id_ = 1;
  std::vector<std::unique_ptr<OneStore>> logs_;
};

// Looks up names that are in their stores, or that no store has.
class StoreGets final : public LookupBatch {
 public:
  StoreGets(const Stores& stores, const std::vector<std::unique_ptr<OneStore>>& searched,
            bool present, size_t count, uint64_t seed)
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
  const Stores& stores_;
  const std::vector<std::unique_ptr<OneStore>>& searched_;
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
};

class Measurement {
 public:
  explicit Measurement(const Arguments& arguments)
      : arguments_(arguments),
        env_(NewPosixEnv()),
        scratch_(*env_, arguments.directory),
        stores_(*env_, scratch_.path(), arguments) {}

  Json Run() {
    Json kinds;
    const Built put = stores_.MakeLogs();
    device_ =
        std::make_unique<DeviceReads>(*env_, scratch_.path() + "/device", arguments_.entries * 20);
    kinds["log_store"] = LookUp(stores_.logs(), put, MemoryOf(stores_.logs()));
    for (const bool runs : {false, true}) {
      std::vector<std::unique_ptr<OneStore>> converted;
      const Built convert = stores_.Convert(runs, converted);
      kinds[runs ? "sorted_run" : "hash_store"] = LookUp(converted, convert, MemoryOf(converted));
      std::vector<std::unique_ptr<OneStore>> merged;
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
  static uint64_t MemoryOf(const std::vector<std::unique_ptr<OneStore>>& stores) {
    uint64_t bytes = 0;
    for (const auto& store : stores) {
      std::vector<IndexComponentStats> stats;
      store->version.AddStats(stats);
      for (const auto& one : stats) bytes += one.memory_bytes;
    }
    return bytes;
  }

  Json LookUp(const std::vector<std::unique_ptr<OneStore>>& searched, const Built& built,
              uint64_t memory) {
    Gets hits;
    Gets misses;
    for (unsigned round = 0; round < arguments_.rounds; ++round) {
      const double seconds =
          device_->Read(arguments_.gets, arguments_.threads, SiltIndexOptions{}.read_depth, round);
      device_per_s_.push_back(static_cast<double>(arguments_.gets) / seconds);
      Measure(searched, true, round, hits);
      Measure(searched, false, round, misses);
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
            {"reads_per_miss", per_get(misses)}};
  }

  void Measure(const std::vector<std::unique_ptr<OneStore>>& searched, bool present, unsigned round,
               Gets& gets) {
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

  const Arguments& arguments_;
  const std::unique_ptr<Env> env_;
  const ScratchDirectory scratch_;  // destroyed after the members that have files in it
  Stores stores_;
  std::unique_ptr<DeviceReads> device_;
  std::vector<double> device_per_s_;
};

}  // namespace

std::function<Json()> ConfigureStoresBench(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
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
