// siltfs-bench slicebloom: adds names to a SliceBloom, and looks names up: absent ones for the rate
// of false positives, and both kinds beside additions for the rate of operations. A Bloom filter in
// memory with the same number of bits for each name gets the same lookups.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "index/flash/bloom_filter.h"
#include "index/slice_bloom/slice_bloom.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/device_reads.h"
#include "tools/bench/lost_index_bench.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct SliceBloomBenchArguments {
  uint64_t names = 4'000'000;
  SliceBloomShape shape{.partition_bits = 4, .names_per_group = 0};
  uint64_t lookups = 200'000;
  uint64_t batch = 65'536;
  uint64_t mixed = 200'000;
  unsigned rounds = 3;
  uint64_t seed = 1;
  std::string directory;
  LostIndexArguments lost_index;
};

// The i-th name of a run: a permutation of numbers, so that no name comes twice.
uint64_t NameOf(uint64_t i, uint64_t seed) {
  uint64_t x = i * 2 + 1 + (seed << 40);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

class SliceBloomBenchRun {
 public:
  explicit SliceBloomBenchRun(const SliceBloomBenchArguments& arguments)
      : arguments_(arguments), env_(NewPosixEnv()), scratch_(*env_, arguments.directory) {
    options_ = {.directory = scratch_.path(),
                .shape = arguments.shape,
                .secret = arguments.seed};  // equal runs have equal false positives
    Open(options_.channels);
  }

  Json All() {
    Json report = AddAll();
    report.update(LookUpAbsent());
    report.update(LookUpPresent());
    // Operations at 50 % additions, with and without the order of channels.
    std::vector<double> ordered;
    std::vector<double> unordered;
    std::vector<double> reads;
    for (unsigned round = 0; round < 2 * arguments_.rounds; ++round) {
      // Neither of the two always comes second, because lookups take longer from round to round.
      const bool order = round % 4 == 0 || round % 4 == 3;
      Open(order ? SliceBloomOptions().channels : 0);
      (order ? ordered : unordered).push_back(MixedPerSecond());
      reads.push_back(static_cast<double>(bloom_->stats().flash_reads) * 2 /
                      static_cast<double>(MixedOperations()));
    }
    report["mixed_operations_per_s"] = Median(ordered);
    report["mixed_operations_per_s_without_order"] = Median(unordered);
    report["mixed_reads_per_lookup"] = Median(reads);
    report["mixed_groups_at_end"] = bloom_->stats().groups;
    const auto device = DeviceReads::OfFilesIn(*env_, scratch_.path());
    if (device != nullptr) {
      constexpr uint64_t kReads = 100'000;
      report["device_reads_per_s"] = kReads / device->Read(kReads, 1, options_.read_depth, 1);
    }
    report["verified"] = true;
    return report;
  }

 private:
  void Open(uint32_t channels) {
    if (bloom_ != nullptr) Require(bloom_->Close());
    bloom_.reset();
    options_.channels = channels;
    auto opened = SliceBloom::Open(*env_, options_);
    Require(opened.status());
    bloom_ = std::move(*opened);
  }

  // Each group is one segment.
  Json AddAll() {
    const uint64_t per_group = arguments_.shape.names_per_group;
    const Stopwatch stopwatch;
    while (added_ < arguments_.names) AddSegment(std::min(per_group, arguments_.names - added_));
    Require(bloom_->EndGroup());
    const double seconds = stopwatch.seconds();
    const SliceBloomStats stats = bloom_->stats();
    const auto names = static_cast<double>(added_);
    const auto filter_bits = static_cast<double>(per_group * arguments_.shape.bits_per_name);
    return {{"names", added_},
            {"names_per_group", per_group},
            {"bits_per_name", arguments_.shape.bits_per_name},
            {"probes", arguments_.shape.probes},
            {"groups_per_filter", arguments_.shape.groups_per_filter},
            {"partitions", uint64_t{1} << arguments_.shape.partition_bits},
            {"batch", arguments_.batch},
            {"rounds", arguments_.rounds},
            {"processor", ProcessorName()},
            {"groups", stats.groups},
            {"slicefilters", stats.filters},
            {"adds_per_s", names / seconds},
            {"memory_bytes", stats.memory_bytes},
            {"filter_bits_per_name", filter_bits / names},
            {"memory_bits_per_name", static_cast<double>(stats.memory_bytes) * 8 / names},
            {"flash_bytes_per_name", static_cast<double>(stats.flash_bytes) / names},
            {"written_bytes_per_name", static_cast<double>(stats.flash_bytes_written) / names}};
  }

  void AddSegment(uint64_t count) {
    std::vector<uint64_t> names;
    names.reserve(count);
    for (uint64_t i = 0; i < count; ++i) names.push_back(NameOf(added_ + i, arguments_.seed));
    Require(bloom_->Add(++segment_, names));
    added_ += count;
  }

  Json LookUpAbsent() {
    uint64_t groups = 0;
    uint64_t passed = 0;
    const uint64_t reads = bloom_->stats().flash_reads;
    double seconds = 0;
    for (uint64_t at = 0; at < arguments_.lookups; at += arguments_.batch) {
      std::vector<uint64_t> names;
      for (uint64_t i = 0; i < std::min(arguments_.batch, arguments_.lookups - at); ++i) {
        names.push_back(NameOf(at + i, arguments_.seed + 1));
      }
      const Stopwatch stopwatch;
      const auto found = Find(names);
      seconds += stopwatch.seconds();
      for (const auto& segments : found) {
        groups += segments.size();
        passed += segments.empty() ? 0 : 1;
      }
    }
    const auto lookups = static_cast<double>(arguments_.lookups);
    const double h = arguments_.shape.probes;
    const double each = std::pow(1 - std::exp(-h / arguments_.shape.bits_per_name), h);
    const auto of_all = static_cast<double>(bloom_->stats().groups);
    return {{"misses_per_s", lookups / seconds},
            {"reads_per_miss", static_cast<double>(bloom_->stats().flash_reads - reads) / lookups},
            {"false_positives_of_group", static_cast<double>(groups) / lookups / of_all},
            {"false_positives_of_group_theory", each},
            {"false_positives", static_cast<double>(passed) / lookups},
            {"false_positives_theory", 1 - std::pow(1 - each, of_all)}};
  }

  std::vector<std::vector<SegmentId>> Find(const std::vector<uint64_t>& names) {
    std::vector<std::vector<SegmentId>> segments;
    Require(bloom_->Find(names, segments));
    return segments;
  }

  // Numbers of names that were added, and that must be found in their segments.
  void FindPresent(Random& random, uint64_t count) {
    std::vector<uint64_t> names;
    std::vector<uint64_t> numbers;
    for (uint64_t i = 0; i < count; ++i) {
      numbers.push_back(random.Below(arguments_.names));
      names.push_back(NameOf(numbers.back(), arguments_.seed));
    }
    const auto found = Find(names);
    for (size_t i = 0; i < found.size(); ++i) {
      const auto segment =
          static_cast<SegmentId>(numbers[i] / arguments_.shape.names_per_group + 1);
      if (std::ranges::find(found[i], segment) == found[i].end()) {
        throw BenchFailure("slicebloom: a name was not found in its segment");
      }
    }
  }

  Json LookUpPresent() {
    Random random(arguments_.seed);
    const uint64_t reads = bloom_->stats().flash_reads;
    const Stopwatch stopwatch;
    for (uint64_t at = 0; at < arguments_.lookups; at += arguments_.batch) {
      FindPresent(random, std::min(arguments_.batch, arguments_.lookups - at));
    }
    const auto lookups = static_cast<double>(arguments_.lookups);
    return {{"hits_per_s", lookups / stopwatch.seconds()},
            {"reads_per_hit", static_cast<double>(bloom_->stats().flash_reads - reads) / lookups}};
  }

  // As many additions as lookups, in turns of at most a group.
  uint64_t MixedBatch() const {
    return std::min({arguments_.batch, arguments_.mixed / 2, arguments_.shape.names_per_group});
  }
  uint64_t MixedOperations() const {
    const uint64_t turn = 2 * MixedBatch();
    return (arguments_.mixed + turn - 1) / turn * turn;
  }
  double MixedPerSecond() {
    Random random(arguments_.seed + segment_);
    const Stopwatch stopwatch;
    for (uint64_t done = 0; done < MixedOperations(); done += 2 * MixedBatch()) {
      AddSegment(MixedBatch());
      FindPresent(random, MixedBatch());
    }
    return static_cast<double>(MixedOperations()) / stopwatch.seconds();
  }

  const SliceBloomBenchArguments arguments_;
  const std::unique_ptr<Env> env_;
  ScratchDirectory scratch_;
  SliceBloomOptions options_;
  std::unique_ptr<SliceBloom> bloom_;
  uint64_t added_ = 0;
  SegmentId segment_ = 0;
};

// The same number of bits for each name, all in memory.
Json MeasureMemoryFilter(const SliceBloomBenchArguments& arguments) {
  BloomShape shape{.blocks = 1, .block_bits = 0, .probes = arguments.shape.probes};
  const uint64_t bits = arguments.names * arguments.shape.bits_per_name;
  // A block has fewer than 2^32 bits.
  shape.blocks = static_cast<uint32_t>(bits >> 31) + 1;
  shape.block_bits = static_cast<uint32_t>(bits / shape.blocks);
  BloomFilter filter(shape);
  const Stopwatch adding;
  for (uint64_t i = 0; i < arguments.names; ++i) filter.Add(NameOf(i, arguments.seed));
  const double add_seconds = adding.seconds();
  for (uint64_t i = 0; i < arguments.names; ++i) {
    if (!filter.MayHave(NameOf(i, arguments.seed))) {
      throw BenchFailure("slicebloom: the filter in memory lost a name");
    }
  }
  const Stopwatch looking;
  uint64_t passed = 0;
  for (uint64_t i = 0; i < arguments.lookups; ++i) {
    passed += filter.MayHave(NameOf(i, arguments.seed + 1)) ? 1 : 0;
  }
  const auto lookups = static_cast<double>(arguments.lookups);
  return {{"memory_bytes", filter.memory_bytes()},
          {"memory_bits_per_name", arguments.shape.bits_per_name},
          {"adds_per_s", static_cast<double>(arguments.names) / add_seconds},
          {"misses_per_s", lookups / looking.seconds()},
          {"false_positives", static_cast<double>(passed) / lookups}};
}

}  // namespace

std::function<Json()> ConfigureSliceBloomBench(CLI::App& app) {
  auto arguments = std::make_shared<SliceBloomBenchArguments>();
  SliceBloomShape& shape = arguments->shape;
  app.add_option("--names", arguments->names, "Names to add")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--group-names", shape.names_per_group,
                 "Names of a group (so many that --names fill one slicefilter)");
  app.add_option("--groups", shape.groups_per_filter, "Groups of a slicefilter")
      ->check(CLI::Range(1U, 256U))
      ->capture_default_str();
  app.add_option("--partition-bits", shape.partition_bits, "2^n partitions")
      ->check(CLI::Range(0U, 16U))
      ->capture_default_str();
  app.add_option("--bits", shape.bits_per_name, "Bits of a filter for each name")
      ->check(CLI::Range(1U, 64U))
      ->capture_default_str();
  app.add_option("--probes", shape.probes, "Bits of a name")
      ->check(CLI::Range(1U, 16U))
      ->capture_default_str();
  app.add_option("--get", arguments->lookups, "Lookups of absent names, and of present ones")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--batch", arguments->batch, "Names in a lookup")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--mix", arguments->mixed, "Operations of a round, half of them additions")
      ->check(CLI::Range(uint64_t{2}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--rounds", arguments->rounds, "Rounds of mixed operations; rates are medians")
      ->check(CLI::Range(1U, 100U))
      ->capture_default_str();
  app.add_option("--dir", arguments->directory,
                 "Where to make it, in a directory that is removed afterwards (the system's "
                 "temporary directory)");
  LostIndexArguments& lost = arguments->lost_index;
  app.add_option("--store-chunks", lost.chunks,
                 "Also measure a store of so many chunks that has lost its index: searches, and a "
                 "mount's first file");
  app.add_option("--search", lost.searches, "Searches with the segment guide of that store")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--guide-group-names", lost.guide.names_per_group,
                 "Names of a group of that guide")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32))
      ->capture_default_str();
  app.add_option("--guide-groups", lost.guide.groups_per_filter,
                 "Groups of a slicefilter of that guide")
      ->check(CLI::Range(1U, 256U))
      ->capture_default_str();
  app.add_option("--seed", arguments->seed, "Seed of the names")->capture_default_str();
  return [arguments] {
    SliceBloomShape& chosen = arguments->shape;
    if (chosen.names_per_group == 0) {
      chosen.names_per_group =
          (arguments->names + chosen.groups_per_filter - 1) / chosen.groups_per_filter;
    }
    Json report = SliceBloomBenchRun(*arguments).All();
    report["memory_filter"] = MeasureMemoryFilter(*arguments);
    if (arguments->lost_index.chunks > 0) {
      arguments->lost_index.seed = arguments->seed;
      arguments->lost_index.directory = arguments->directory;
      report["lost_index"] = MeasureLostIndex(arguments->lost_index);
    }
    return report;
  };
}

}  // namespace siltfs
