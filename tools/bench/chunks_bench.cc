// siltfs-bench chunks: for several mean lengths, measures the lengths of the chunks of files and
// how many chunks are new. The files are taken in order, like the generations of a backup.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "chunker/chunk_namer.h"
#include "chunker/chunker.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/chunker_data.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct ChunksBenchArguments {
  std::vector<std::string> files;
  uint64_t random_bytes = 0;
  std::vector<std::string> avgs = {"4K", "8K", "16K", "64K"};
  uint64_t polynomial = kBenchPolynomial;
  uint64_t seed = 1;
};

constexpr uint64_t kDefaultBytes = 256U << 20;
constexpr size_t kBinsPerMean = 16;

// The chunks of all files for one mean length.
class Cutting {
 public:
  explicit Cutting(const ChunkerParameters& parameters) {
    auto tables = ChunkerTables::Create(parameters);
    Require(tables.status());
    tables_ = *tables;
    auto namer = ChunkNamer::Create({});
    Require(namer.status());
    namer_ = std::make_unique<ChunkNamer>(std::move(*namer));
  }

  void Add(const std::string& file, ByteView data) {
    uint64_t new_bytes = 0;
    uint64_t new_chunks = 0;
    const std::vector<uint32_t> lengths = tables_->CutAll(data);
    std::vector<ByteView> chunks;
    size_t begin = 0;
    for (const uint32_t length : lengths) {
      chunks.push_back(data.subspan(begin, length));
      begin += length;
    }
    std::vector<ChunkName> names(chunks.size());
    namer_->NamesOf(chunks, names);
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (!known_.insert(names[i]).second) continue;
      new_bytes += lengths[i];
      ++new_chunks;
    }
    // Leaves out the last chunk of each file: the end of the file determines its length.
    lengths_.insert(lengths_.end(), lengths.begin(), lengths.end() - (lengths.empty() ? 0 : 1));
    bytes_ += data.size();
    chunks_ += chunks.size();
    unique_bytes_ += new_bytes;
    files_.push_back({{"file", file},
                      {"bytes", data.size()},
                      {"chunks", chunks.size()},
                      {"new_bytes", new_bytes},
                      {"new_chunks", new_chunks}});
  }

  Json Statistics() {
    const ChunkerParameters& parameters = tables_->parameters();
    std::sort(lengths_.begin(), lengths_.end());
    Json statistics = {{"avg", parameters.avg},
                       {"min", parameters.min},
                       {"max", parameters.max},
                       {"bytes", bytes_},
                       {"chunks", chunks_},
                       {"unique_bytes", unique_bytes_},
                       {"unique_chunks", known_.size()},
                       {"dedup_ratio", Ratio(bytes_, unique_bytes_)},
                       {"files", files_}};
    if (lengths_.empty()) return statistics;
    statistics["mean"] = Mean();
    statistics["standard_deviation"] = Deviation();
    for (const int percent : {10, 50, 90, 99}) {
      const size_t place = lengths_.size() * static_cast<size_t>(percent) / 100;
      statistics["percentile_" + std::to_string(percent)] = lengths_[place];
    }
    const auto forced = static_cast<uint64_t>(
        lengths_.end() - std::lower_bound(lengths_.begin(), lengths_.end(), parameters.max));
    statistics["bytes_in_forced_share"] = Ratio(forced * parameters.max, bytes_);
    statistics["bins_per_mean"] = kBinsPerMean;
    statistics["share_by_bin"] = SharesByBin();
    return statistics;
  }

 private:
  static double Ratio(uint64_t of, uint64_t to) {
    return to == 0 ? 1 : static_cast<double>(of) / static_cast<double>(to);
  }
  double Mean() const {
    uint64_t sum = 0;
    for (const uint32_t length : lengths_) sum += length;
    return Ratio(sum, lengths_.size());
  }
  double Deviation() const {
    const double mean = Mean();
    double sum = 0;
    for (const uint32_t length : lengths_) sum += (length - mean) * (length - mean);
    return std::sqrt(sum / static_cast<double>(lengths_.size()));
  }
  // Returns for each i the share of chunks with [i, i + 1) * avg / kBinsPerMean bytes. The last bin
  // holds the chunks of the maximum length.
  std::vector<double> SharesByBin() const {
    const ChunkerParameters& parameters = tables_->parameters();
    std::vector<double> shares(parameters.max * kBinsPerMean / parameters.avg + 1);
    for (const uint32_t length : lengths_) {
      shares[uint64_t{length} * kBinsPerMean / parameters.avg] +=
          1 / static_cast<double>(lengths_.size());
    }
    return shares;
  }

  std::shared_ptr<const ChunkerTables> tables_;
  std::unique_ptr<ChunkNamer> namer_;
  std::unordered_set<ChunkName> known_;
  std::vector<uint32_t> lengths_;
  uint64_t bytes_ = 0;
  uint64_t chunks_ = 0;
  uint64_t unique_bytes_ = 0;
  Json files_ = Json::array();
};

uint32_t ParseSize(std::string text) {
  const std::string refused = CLI::AsSizeValue(false)(text);
  if (!refused.empty() || text.size() > 9) throw BenchFailure("chunks: --avg " + text);
  return static_cast<uint32_t>(std::stoul(text));
}

Json RunChunksBench(const ChunksBenchArguments& arguments) {
  std::vector<Cutting> cuttings;
  for (const std::string& avg : arguments.avgs)
    cuttings.emplace_back(ParametersForBench(ParseSize(avg), arguments.polynomial));
  if (arguments.files.empty()) {
    const uint64_t size = arguments.random_bytes > 0 ? arguments.random_bytes : kDefaultBytes;
    const Bytes data = RandomForBench(size, arguments.seed);
    for (Cutting& cutting : cuttings) cutting.Add("random", data);
  }
  for (const std::string& file : arguments.files) {
    const Bytes data = ReadForBench(file);
    for (Cutting& cutting : cuttings) cutting.Add(file.substr(file.rfind('/') + 1), data);
  }
  Json means = Json::array();
  for (Cutting& cutting : cuttings) means.push_back(cutting.Statistics());
  return {{"polynomial", arguments.polynomial}, {"means", means}};
}

}  // namespace

std::function<Json()> ConfigureChunksBench(CLI::App& app) {
  auto arguments = std::make_shared<ChunksBenchArguments>();
  CLI::Option* const files = app.add_option("FILE", arguments->files, "Cut these files, in order");
  app.add_option("--random", arguments->random_bytes, "Cut this many random bytes (256M)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 36))
      ->excludes(files);
  app.add_option(
         "--avg", arguments->avgs,
         "Mean lengths, for example 4K,8K; the least is a quarter, the most 8 times the mean")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--polynomial", arguments->polynomial, "Polynomial of the fingerprint")
      ->capture_default_str();
  app.add_option("--seed", arguments->seed, "Seed of the random bytes")->capture_default_str();
  return [arguments] { return RunChunksBench(*arguments); };
}

}  // namespace siltfs
