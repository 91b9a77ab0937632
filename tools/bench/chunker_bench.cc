// siltfs-bench chunker: finds the cut points of data in memory with every kernel that this machine
// can run, and names the chunks (SHA-1), on one thread.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chunker/chunk_namer.h"
#include "chunker/chunker.h"
#include "chunker/sha1/kernels.h"
#include "store/base/coding.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/chunker_data.h"
#include "tools/bench/rounds.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct ChunkerBenchArguments {
  std::string file;
  uint64_t random_bytes = 0;
  uint64_t zero_bytes = 0;
  uint32_t avg = 8192;
  uint64_t polynomial = kBenchPolynomial;
  unsigned rounds = 5;
  uint64_t seed = 1;
};

constexpr uint64_t kDefaultBytes = 256U << 20;

struct Measured {
  std::string name;
  std::shared_ptr<const ChunkerTables> tables;
  std::vector<uint32_t> lengths;
  std::vector<double> seconds;
};

Bytes MakeData(const ChunkerBenchArguments& arguments) {
  if (!arguments.file.empty()) return ReadForBench(arguments.file);
  if (arguments.zero_bytes > 0) return Bytes(arguments.zero_bytes);
  return RandomForBench(arguments.random_bytes > 0 ? arguments.random_bytes : kDefaultBytes,
                        arguments.seed);
}

// Returns the SHA-1 of the cut points, written as 64-bit little-endian numbers.
std::string CutsSha1(ChunkNamer& namer, const std::vector<uint32_t>& lengths) {
  Encoder cut_points;
  uint64_t end = 0;
  for (const uint32_t length : lengths) cut_points.U64(end += length);
  return namer.NameOf(cut_points.view()).ToHex();
}

std::vector<ByteView> ChunksOf(ByteView data, const std::vector<uint32_t>& lengths) {
  std::vector<ByteView> chunks;
  chunks.reserve(lengths.size());
  for (const uint32_t length : lengths) {
    chunks.push_back(data.first(length));
    data = data.subspan(length);
  }
  return chunks;
}

std::vector<ChunkName> NameOneByOne(ChunkNamer& namer, const std::vector<ByteView>& chunks) {
  std::vector<ChunkName> names;
  names.reserve(chunks.size());
  for (const ByteView chunk : chunks) names.push_back(namer.NameOf(chunk));
  return names;
}

std::vector<ChunkName> NameInBatches(ChunkNamer& namer, std::span<const ByteView> chunks) {
  constexpr size_t kBatchNames = 64;  // the number of chunks in a large write
  std::vector<ChunkName> names(chunks.size());
  for (size_t i = 0; i < chunks.size(); i += kBatchNames) {
    const size_t count = std::min(kBatchNames, chunks.size() - i);
    namer.NamesOf(chunks.subspan(i, count), std::span(names).subspan(i, count));
  }
  return names;
}

Json RunChunkerBench(const ChunkerBenchArguments& arguments) {
  const Bytes data = MakeData(arguments);
  if (data.empty()) throw BenchFailure("chunker: there is nothing to cut");
  const ChunkerParameters parameters = ParametersForBench(arguments.avg, arguments.polynomial);
  const Result<const ChunkerKernel*> chosen = ChosenKernel();
  Require(chosen.status());
  const Result<const Sha1Kernel*> sha1_kernel = Sha1KernelInUse();
  Require(sha1_kernel.status());
  auto namer = ChunkNamer::Create({});
  Require(namer.status());

  std::vector<Measured> kernels;
  for (const ChunkerKernel& kernel : RunnableKernels()) {
    auto tables = ChunkerTables::Create(parameters, kernel);
    Require(tables.status());
    kernels.push_back({kernel.name, *tables, {}, {}});
  }
  // Each round runs all measurements, so that other load on the machine affects all alike.
  std::vector<double> sha1_seconds;
  std::vector<double> batch_seconds;
  for (unsigned round = 0; round < arguments.rounds; ++round) {
    for (Measured& kernel : kernels) {
      const Stopwatch cutting;
      kernel.lengths = kernel.tables->CutAll(data);
      kernel.seconds.push_back(cutting.seconds());
    }
    const std::vector<ByteView> chunks = ChunksOf(data, kernels.front().lengths);
    const Stopwatch naming;
    const std::vector<ChunkName> names = NameOneByOne(*namer, chunks);
    sha1_seconds.push_back(naming.seconds());
    const Stopwatch naming_batches;
    const std::vector<ChunkName> same = NameInBatches(*namer, chunks);
    batch_seconds.push_back(naming_batches.seconds());
    if (same != names) throw BenchFailure("chunker: a batch names the chunks differently");
  }

  const auto bytes = static_cast<double>(data.size());
  const auto rate = [&](const std::vector<double>& seconds) { return bytes / Median(seconds); };
  Json rates = Json::array();
  for (const Measured& kernel : kernels) {
    if (kernel.lengths != kernels.front().lengths)
      throw BenchFailure("chunker: kernel " + kernel.name + " differs from the scalar one");
    rates.push_back({{"name", kernel.name},
                     {"bytes_per_s", rate(kernel.seconds)},
                     {"cuts_sha1", CutsSha1(*namer, kernel.lengths)}});
  }
  return {{"bytes", data.size()},
          {"avg", parameters.avg},
          {"min", parameters.min},
          {"max", parameters.max},
          {"chunks", kernels.front().lengths.size()},
          {"rounds", arguments.rounds},
          {"processor", ProcessorName()},
          {"verified", true},
          {"kernels", rates},
          {"chosen", (*chosen)->name},
          {"sha1_bytes_per_s", rate(sha1_seconds)},  // one chunk at a time, by OpenSSL
          {"sha1_kernel", (*sha1_kernel)->name},
          {"sha1_batch_bytes_per_s", rate(batch_seconds)}};
}

}  // namespace

std::function<Json()> ConfigureChunkerBench(CLI::App& app) {
  auto arguments = std::make_shared<ChunkerBenchArguments>();
  const auto most = CLI::Range(uint64_t{1}, uint64_t{1} << 36);
  CLI::Option* const file = app.add_option("--file", arguments->file, "Cut this file");
  CLI::Option* const random =
      app.add_option("--random", arguments->random_bytes, "Cut this many random bytes (256M)")
          ->transform(CLI::AsSizeValue(false))
          ->check(most)
          ->excludes(file);
  app.add_option("--zero", arguments->zero_bytes, "Cut this many zeros")
      ->transform(CLI::AsSizeValue(false))
      ->check(most)
      ->excludes(file)
      ->excludes(random);
  app.add_option("--avg", arguments->avg,
                 "Mean length; the least is a quarter, the most 8 times the mean")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--polynomial", arguments->polynomial, "Polynomial of the fingerprint")
      ->capture_default_str();
  app.add_option("--rounds", arguments->rounds, "Figures are medians of this many rounds")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  app.add_option("--seed", arguments->seed, "Seed of the random bytes")->capture_default_str();
  return [arguments] { return RunChunkerBench(*arguments); };
}

}  // namespace siltfs
