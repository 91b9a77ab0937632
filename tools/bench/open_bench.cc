// siltfs-bench open: opens an index on flash, and measures when it gives its first answer and when
// it reaches full speed. An index answers before its filters and tries are loaded (SILT, section
// 4).
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "index/silt/silt_index.h"
#include "store/env/daemon.h"
#include "store/env/posix_env.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/index_gets.h"
#include "tools/bench/rounds.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct OpenBenchArguments {
  std::string directory;
  uint64_t entries = 0;
  uint64_t memory = kNoMemoryLimit;
  bool wait = false;
  bool cold = false;
  uint64_t seed = 1;
};

constexpr size_t kBatch = 256;

class OpenBench {
 public:
  explicit OpenBench(const OpenBenchArguments& arguments)
      : arguments_(arguments), env_(NewPosixEnv()), keys_(MixNumber(arguments.seed)) {}

  Json Run() {
    const auto limit = RaiseFileLimit();
    Require(limit.status());
    if (arguments_.cold) Require(DropPageCache());
    SiltIndexOptions options;
    options.directory = arguments_.directory;
    options.memory_limit = arguments_.memory;
    options.serve_early = !arguments_.wait;
    const Stopwatch watch;
    auto opened = OpenSiltIndex(*env_, options);
    Require(opened.status());
    index_ = std::move(*opened);
    const double open_seconds = watch.seconds();
    IndexGets gets(*index_, keys_, kBatch, arguments_.seed);
    gets.GetPresent(1, arguments_.entries);
    const double first_seconds = watch.seconds();
    std::thread waiting([this, &watch] {
      index_->WaitUntilOpen().IgnoreError("lookups report it, too");
      recovered_seconds_ = watch.seconds();
      while (index_->stats().load_backlog > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      loaded_seconds_ = watch.seconds();
    });
    Json series = Json::array();
    while (loaded_seconds_ == 0) Step(gets, watch, series);
    waiting.join();
    std::vector<double> full;
    for (int i = 0; i < 9; ++i) full.push_back(Step(gets, watch, series));
    Json statistics = {{"entries", arguments_.entries},
                       {"cold", arguments_.cold},
                       {"verified", true},  // a wrong answer throws
                       {"open_seconds", open_seconds},
                       {"first_answer_seconds", first_seconds},
                       {"writable_seconds", recovered_seconds_.load()},
                       {"loaded_seconds", loaded_seconds_.load()},
                       {"get_per_s_loaded", Median(full)},
                       {"component_stores", index_->stats().stores.size()},
                       {"durable_sequence", index_->durable_sequence()},
                       {"series", series}};
    Require(index_->Close());
    return statistics;
  }

 private:
  // Looks names up for a twentieth of a second, in batches, on one thread. Returns the lookups per
  // second.
  double Step(IndexGets& gets, const Stopwatch& watch, Json& series) {
    constexpr double kStepSeconds = 0.05;
    const uint64_t before = index_->stats().flash_reads;
    const Stopwatch getting;
    double count = 0;
    do {
      gets.GetPresent(kBatch, arguments_.entries);
      count += kBatch;
    } while (getting.seconds() < kStepSeconds);
    const double per_s = count / getting.seconds();
    const auto reads = static_cast<double>(index_->stats().flash_reads - before);
    series.push_back(
        {{"seconds", watch.seconds()}, {"get_per_s", per_s}, {"reads_per_get", reads / count}});
    return per_s;
  }

  const OpenBenchArguments& arguments_;
  const std::unique_ptr<Env> env_;
  const IndexKeys keys_;
  std::unique_ptr<ChunkIndex> index_;
  std::atomic<double> recovered_seconds_{0};
  std::atomic<double> loaded_seconds_{0};
};

}  // namespace

std::function<Json()> ConfigureOpenBench(CLI::App& app) {
  auto arguments = std::make_shared<OpenBenchArguments>();
  app.add_option("--dir", arguments->directory,
                 "A SILT index kept by \"siltfs-bench index --keep\"")
      ->required();
  app.add_option("--entries", arguments->entries, "Number of entries in this index")
      ->required()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  app.add_option("--memory", arguments->memory, "Memory limit of the index (no limit)")
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--wait", arguments->wait, "Replay the logs before the index is opened");
  app.add_flag("--cold", arguments->cold, "Empty the page cache first (as root)");
  app.add_option("--seed", arguments->seed, "Seed of the names with which the index was filled")
      ->capture_default_str();
  return [arguments] { return OpenBench(*arguments).Run(); };
}

}  // namespace siltfs
