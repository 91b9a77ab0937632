// siltfs-bench delta: lookups of resembling chunks in SliceLSH, beside the random reads of the
// device; and how well the bases that it finds are chosen, on files.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "index/slice_lsh/slice_lsh.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/delta_recall.h"
#include "tools/bench/delta_stores.h"
#include "tools/bench/device_reads.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

// Section 7.5 of the paper: 10 tables, on a Crucial SSD.
constexpr double kPaperLookupsPerSecond = 6900;
constexpr uint64_t kChunksPerSegment = 10'000;

struct DeltaBenchArguments {
  uint64_t chunks = 1'000'000;
  std::vector<unsigned> tables = {10, 3};
  unsigned growth = SliceLshShape().growth;
  unsigned most_levels = SliceLshShape().most_levels;
  uint64_t buffer = SliceLshOptions().buffer_bytes;
  uint64_t single_buffer = uint64_t{16} << 20;
  unsigned directories = 0;
  unsigned depth = 64;
  uint64_t lookups = 50'000;
  uint64_t batch = 4096;
  unsigned rounds = 3;
  std::string directory;
  uint64_t seed = 1;
  DeltaRecallArguments recall;
  DeltaStoresArguments stores;
};

SliceLshPlace PlaceOf(uint64_t chunk) {
  return {.segment = static_cast<SegmentId>(1 + chunk / kChunksPerSegment),
          .ordinal = static_cast<uint32_t>(chunk % kChunksPerSegment)};
}

// A SliceLSH with some number of tables. The paper has one slicetable for each table, and much
// memory (`single`).
class DeltaBenchRun {
 public:
  DeltaBenchRun(Env& env, const DeltaBenchArguments& arguments, unsigned tables, bool single)
      : arguments_(arguments), env_(env), scratch_(env, arguments.directory) {
    auto opened =
        SliceLsh::Open(env, {.directory = scratch_.path(),
                             .shape = {.tables = tables,
                                       .growth = arguments.growth,
                                       .most_levels = single ? 1 : arguments.most_levels,
                                       .directories = arguments.directories},
                             .buffer_bytes = single ? arguments.single_buffer : arguments.buffer,
                             .read_depth = arguments.depth});
    Require(opened.status());
    lsh_ = std::move(*opened);
  }

  void AddAll() {
    const Stopwatch stopwatch;
    for (uint64_t chunk = 0; chunk < arguments_.chunks; ++chunk) {
      Require(lsh_->Add(FeaturesOf(chunk), PlaceOf(chunk)));
    }
    Require(lsh_->Flush());
    add_seconds_ = stopwatch.seconds();
    device_ = DeviceReads::OfFilesIn(env_, scratch_.path());
  }

  // Looks random chunks up, and the device's random reads after them.
  void Round(unsigned round) {
    Random random(arguments_.seed * 1000 + round);
    uint64_t found_all = 0;
    double seconds = 0;
    const uint64_t reads = lsh_->stats().flash_reads;
    for (uint64_t at = 0; at < arguments_.lookups; at += arguments_.batch) {
      std::vector<uint64_t> features;
      std::vector<uint64_t> chunks;
      for (uint64_t i = 0; i < std::min(arguments_.batch, arguments_.lookups - at); ++i) {
        chunks.push_back(random.Below(arguments_.chunks));
        const auto one = FeaturesOf(chunks.back());
        features.insert(features.end(), one.begin(), one.end());
      }
      std::vector<std::vector<SliceLshCandidate>> found;
      const Stopwatch stopwatch;
      Require(lsh_->Find(features, found));
      seconds += stopwatch.seconds();
      for (size_t i = 0; i < chunks.size(); ++i) {
        // A full page loses an entry sometimes, but hardly those of all tables.
        const bool is_there = !found[i].empty() && found[i][0].place == PlaceOf(chunks[i]);
        if (!is_there) throw BenchFailure("delta: a chunk was not found");
        found_all += found[i][0].tables == lsh_->shape().tables ? 1 : 0;
      }
    }
    const auto lookups = static_cast<double>(arguments_.lookups);
    rates_.push_back(lookups / seconds);
    reads_per_lookup_ = static_cast<double>(lsh_->stats().flash_reads - reads) / lookups;
    found_in_all_tables_ = static_cast<double>(found_all) / lookups;
    if (device_ == nullptr) return;
    constexpr uint64_t kReads = 50'000;
    device_rates_.push_back(kReads / device_->Read(kReads, 1, arguments_.depth, round));
  }

  Json Report() const {
    const SliceLshStats stats = lsh_->stats();
    const auto chunks = static_cast<double>(arguments_.chunks);
    const auto entries = static_cast<double>(std::max<uint64_t>(stats.entries, 1));
    Json report = {{"lookups_per_s", Median(rates_)},
                   {"lookups_per_s_paper", kPaperLookupsPerSecond},
                   {"reads_per_lookup", reads_per_lookup_},
                   {"reads_per_s", Median(rates_) * reads_per_lookup_}};
    if (!device_rates_.empty()) {
      report["device_reads_per_s"] = Median(device_rates_);
      report["device_read_mechanism"] = device_->mechanism();
      report["device_reads_are_direct"] = device_->direct();
    }
    report.update(
        {{"found_in_all_tables", found_in_all_tables_},
         {"adds_per_s", chunks / add_seconds_},
         {"slicetables", stats.slicetables},
         {"memory_bytes", stats.memory_bytes},
         {"flash_bytes_per_entry", static_cast<double>(stats.flash_bytes) / entries},
         {"written_bytes_per_entry", static_cast<double>(stats.flash_bytes_written) /
                                         (chunks * static_cast<double>(stats.shape.tables))}});
    const char* const kind = stats.shape.most_levels == 1 ? "_single" : "";
    return {{"tables_" + std::to_string(stats.shape.tables) + kind, report}};
  }

 private:
  std::vector<uint64_t> FeaturesOf(uint64_t chunk) const {
    Random random(arguments_.seed << 40 | chunk);
    std::vector<uint64_t> features(lsh_->shape().tables);
    for (uint64_t& feature : features) feature = random.Next();
    return features;
  }

  const DeltaBenchArguments& arguments_;
  Env& env_;
  ScratchDirectory scratch_;
  std::unique_ptr<SliceLsh> lsh_;
  std::unique_ptr<DeviceReads> device_;
  double add_seconds_ = 0;
  double reads_per_lookup_ = 0;
  double found_in_all_tables_ = 0;
  std::vector<double> rates_;
  std::vector<double> device_rates_;
};

Json MeasureLookups(const DeltaBenchArguments& arguments) {
  const std::unique_ptr<Env> env = NewPosixEnv();
  std::vector<std::unique_ptr<DeltaBenchRun>> runs;
  for (const unsigned tables : arguments.tables) {
    for (const bool single : {false, true}) {
      runs.push_back(std::make_unique<DeltaBenchRun>(*env, arguments, tables, single));
      runs.back()->AddAll();
    }
  }
  for (unsigned round = 0; round < arguments.rounds; ++round) {
    for (const auto& run : runs) run->Round(round);
  }
  Json report;
  for (const auto& run : runs) report.update(run->Report());
  return report;
}

}  // namespace

std::function<Json()> ConfigureDeltaBench(CLI::App& app) {
  auto arguments = std::make_shared<DeltaBenchArguments>();
  app.add_option("--chunks", arguments->chunks, "Chunks to add; 0: measure no lookups")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 32))
      ->capture_default_str();
  app.add_option("--tables", arguments->tables, "Super-features of a chunk; several are compared")
      ->delimiter(',')
      ->check(CLI::Range(1U, SliceLshShape::kMostTables))
      ->capture_default_str();
  app.add_option("--growth", arguments->growth, "From each slicetable to the next older one")
      ->check(CLI::Range(2U, 64U))
      ->capture_default_str();
  app.add_option("--levels", arguments->most_levels, "Slicetables of a table")
      ->check(CLI::Range(2U, 8U))
      ->capture_default_str();
  app.add_option("--buffer", arguments->buffer, "Memory of the buffer")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1} << 10, uint64_t{1} << 28))
      ->capture_default_str();
  app.add_option("--single-buffer", arguments->single_buffer,
                 "The same for one slicetable of each table, as in the paper")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1} << 10, uint64_t{1} << 28))
      ->capture_default_str();
  app.add_option("--directories", arguments->directories, "Directories that tables are spread over")
      ->check(CLI::Range(0U, 8U))
      ->capture_default_str();
  app.add_option("--depth", arguments->depth, "Reads in flight")
      ->check(CLI::Range(1U, 1024U))
      ->capture_default_str();
  app.add_option("--get", arguments->lookups, "Chunks to look up in each round")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--batch", arguments->batch, "Chunks in a lookup")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--rounds", arguments->rounds, "Rounds of lookups; rates are medians")
      ->check(CLI::Range(1U, 100U))
      ->capture_default_str();
  app.add_option("--dir", arguments->directory,
                 "Where to make the tables, in a directory that is removed afterwards (the "
                 "system's temporary directory)");
  app.add_option("--seed", arguments->seed, "Seed of the chunks and of the sample")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->capture_default_str();
  DeltaRecallArguments& recall = arguments->recall;
  app.add_option("PATH", recall.paths,
                 "Files and directories, the oldest version first: the bases that are found for "
                 "their chunks are compared with the best ones");
  app.add_option("--avg", recall.chunk_bytes, "Mean length of the chunks of files")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{256}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--sample", recall.sample,
                 "Chunks of files; each is compared with all earlier ones. 0: no comparison")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option(
         "--store-rounds", arguments->stores.rounds,
         "Rounds in which PATHs are stored, recompressed and read in two new stores, one of "
         "them with deltas; 0: none")
      ->check(CLI::Range(0U, 100U))
      ->capture_default_str();
  app.add_flag("--cold", arguments->stores.cold,
               "Empty the page cache before the stores are filled and read (as root)");
  app.add_option("--candidates", recall.candidates, "Candidates that are tried for a chunk")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 10))
      ->capture_default_str();
  app.add_option("--threads", recall.threads, "Threads of the search for the best bases")
      ->check(CLI::Range(1U, 64U))
      ->capture_default_str();
  return [arguments] {
    Json report = {{"chunks", arguments->chunks},      {"growth", arguments->growth},
                   {"levels", arguments->most_levels}, {"directories", arguments->directories},
                   {"depth", arguments->depth},        {"batch", arguments->batch},
                   {"rounds", arguments->rounds},      {"processor", ProcessorName()}};
    if (arguments->chunks > 0) report["lookups"] = MeasureLookups(*arguments);
    if (!arguments->recall.paths.empty()) {
      arguments->recall.directory = arguments->directory;
      arguments->recall.seed = arguments->seed;
      if (arguments->recall.sample > 0) {
        report["resemblance"] = MeasureDeltaRecall(arguments->recall);
        // Those that stores have (fs/deltas/open_near_duplicates.cc).
        const Json& shape = report["resemblance"].at("super_features_x_features").at("3x1");
        report["recall"] = shape.at("recall");
        report["precision"] = shape.at("precision");
      }
      arguments->stores.paths = arguments->recall.paths;
      arguments->stores.directory = arguments->directory;
      if (arguments->stores.rounds > 0) report.update(MeasureDeltaStores(arguments->stores));
    }
    report["verified"] = true;
    return report;
  };
}

}  // namespace siltfs
