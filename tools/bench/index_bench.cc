// siltfs-bench index: fills a chunk index, looks names up, and reads the whole index. Compares the
// rates with bare reads of the device.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "index/engines.h"
#include "index/open_index.h"
#include "index/silt/silt_index.h"
#include "store/env/daemon.h"
#include "store/env/posix_env.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/device_reads.h"
#include "tools/bench/index_load.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string engine = "silt";
  uint64_t entries = 1'000'000;
  std::string directory;
  uint64_t gets = 200'000;
  std::string mix;
  uint64_t mixed = 0;
  std::optional<uint64_t> memory;
  std::vector<std::string> memory_steps;
  uint64_t step_gets = 20'000;
  bool keep = false;
  bool die = false;
  unsigned threads = 2;
  uint64_t get_batch = 65536;
  unsigned rounds = 5;
  uint64_t seed = 1;
};

std::vector<std::string> EngineNames() {
  std::vector<std::string> names;
  for (const IndexEngineRow* row : IndexEngines()) names.emplace_back(row->name);
  return names;
}

constexpr uint64_t kWarmUpEntries = 2000;

double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// A ratio of puts to gets, parsed from "P:G". Both are decimal numbers; P is not 0.
struct Mix {
  uint64_t puts = 1;
  uint64_t gets = 0;
};
bool ParseMix(const std::string& text, Mix& mix) {
  const auto number = [](const std::string& digits, uint64_t& value) {
    if (digits.empty() || digits.size() > 6) return false;
    value = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9') return false;
      value = value * 10 + static_cast<uint64_t>(c - '0');
    }
    return true;
  };
  const size_t colon = text.find(':');
  return colon != std::string::npos && number(text.substr(0, colon), mix.puts) &&
         number(text.substr(colon + 1), mix.gets) && mix.puts > 0;
}

// Parses a memory limit: a size, or "none".
uint64_t MemoryStep(std::string text) {
  if (text == "none") return kNoMemoryLimit;
  const std::string refused = CLI::AsSizeValue(false)(text);
  if (!refused.empty()) throw CLI::ValidationError(refused);
  return std::stoull(text);
}

// Statistics of one kind of lookups over all rounds.
struct GetStatistics {
  std::vector<double> per_s;
  uint64_t reads = 0;
  uint64_t gets = 0;
};

class IndexBench {
 public:
  explicit IndexBench(const Arguments& arguments)
      : arguments_(arguments),
        engine_(RowOf(arguments.engine)),
        env_(NewPosixEnv()),
        keys_(MixNumber(arguments.seed)),
        scratch_(*env_, arguments.keep ? std::string() : arguments.directory) {}

  Json Run() {
    const auto limit = RaiseFileLimit();
    Require(limit.status());
    Fill();
    if (arguments_.die) DieSuddenly();
    LookUp();
    for (const std::string& step : arguments_.memory_steps) StepMemory(step);
    ReadWhole();
    Require(index_->Close());
    return Statistics();
  }

 private:
  void Fill() {
    Mix mix;
    if (!arguments_.mix.empty()) ParseMix(arguments_.mix, mix);
    IndexLoad load(keys_, {.entries = arguments_.entries,
                           .get_batch = arguments_.get_batch,
                           .mix_puts = mix.puts,
                           .mix_gets = mix.gets,
                           .mixed = MixedEntries(),
                           .get_threads = arguments_.threads,
                           .seed = arguments_.seed});
    const std::string directory =
        arguments_.keep ? arguments_.directory : scratch_.path() + "/index";
    if (!arguments_.keep) Require(env_->CreateDirectory(directory));
    WarmUp();
    memory_ = std::make_unique<MemoryMeter>();
    auto index = OpenIndex(*env_, {.engine = engine_.number,
                                   .directory = directory,
                                   .memory_limit = arguments_.memory.value_or(kNoMemoryLimit)});
    Require(index.status());
    index_ = std::move(*index);
    load_ = load.Fill(*index_, *memory_);
    filled_ = index_->stats();
  }

  // Measures the index's memory and lookups under another memory limit.
  void StepMemory(const std::string& step) {
    const uint64_t limit = MemoryStep(step);
    Require(index_->SetMemoryLimit(limit));
    while (index_->stats().load_backlog > 0 || index_->stats().merge_backlog > 0) Nap();
    const uint64_t resident = memory_->Growth();
    const IndexStats stats = index_->stats();
    GetStatistics hits;
    GetStatistics misses;
    const uint64_t count = std::max<uint64_t>(arguments_.step_gets / arguments_.rounds, 1);
    for (unsigned round = 0; round < arguments_.rounds; ++round) {
      Measure(count, round, hits,
              [&](IndexGets& gets, size_t batch) { gets.GetPresent(batch, arguments_.entries); });
      Measure(count, round, misses, [](IndexGets& gets, size_t batch) { gets.GetAbsent(batch); });
    }
    steps_.push_back({{"memory_limit_bytes", limit == kNoMemoryLimit ? Json() : Json(limit)},
                      {"memory_bytes_resident", resident},
                      {"memory_bytes_reported", stats.memory_bytes},
                      {"reads_per_hit", Ratio(hits.reads, hits.gets)},
                      {"reads_per_miss", Ratio(misses.reads, misses.gets)},
                      {"get_hit_per_s", Median(hits.per_s)},
                      {"get_miss_per_s", Median(misses.per_s)},
                      {"gets", hits.gets}});
  }

  static const IndexEngineRow& RowOf(const std::string& name) {
    const auto found = FindIndexEngine(name);
    Require(found.status());
    return **found;
  }

  static void Nap() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

  // Ends the process as kill -9 does: nothing is closed, and the index stays on disk as it is.
  [[noreturn]] static void DieSuddenly() {
    std::raise(SIGKILL);
    std::abort();  // not reached
  }

  // Uses a SILT index of a few hundred KiB before the measurement, so that code and libraries are
  // already in memory.
  void WarmUp() {
    SiltIndexOptions options;
    options.directory = scratch_.path() + "/warm-up";
    options.partition_bits = 0;
    options.bucket_bits = 4;
    Require(env_->CreateDirectory(options.directory));
    auto index = OpenSiltIndex(*env_, options);
    Require(index.status());
    IndexLoad load(keys_, {.entries = kWarmUpEntries, .put_batch = 64});
    MemoryMeter memory;
    load.Fill(**index, memory);
    IndexGets gets(**index, keys_, 64, arguments_.seed);
    gets.GetPresent(64, kWarmUpEntries);
    gets.GetAbsent(64);
    Require((*index)->Close());
  }

  // Each round runs all compared measurements, so that other load on the machine affects all alike.
  void LookUp() {
    if (arguments_.gets == 0) return;
    device_ = std::make_unique<DeviceReads>(*env_, scratch_.path() + "/device",
                                            std::max<uint64_t>(index_->stats().flash_bytes, 1));
    const uint64_t count = std::max<uint64_t>(arguments_.gets / arguments_.rounds, 1);
    for (unsigned round = 0; round < arguments_.rounds; ++round) {
      ReadDevice(count, round);
      Measure(count, round, hits_,
              [&](IndexGets& gets, size_t batch) { gets.GetPresent(batch, arguments_.entries); });
      Measure(count, round, misses_, [](IndexGets& gets, size_t batch) { gets.GetAbsent(batch); });
    }
    ReadDevice(count, arguments_.rounds);
  }

  void ReadDevice(uint64_t count, unsigned round) {
    const double seconds = device_->Read(count, arguments_.threads, Depth(), round);
    device_per_s_.push_back(static_cast<double>(count) / seconds);
  }

  template <typename Get>
  void Measure(uint64_t count, unsigned round, GetStatistics& statistics, const Get& get) {
    const uint64_t before = index_->stats().flash_reads;
    const Stopwatch getting;
    RunThreads(arguments_.threads, [&](unsigned thread) {
      IndexGets gets(*index_, keys_, arguments_.get_batch,
                     (arguments_.seed + round) * arguments_.threads + thread);
      const uint64_t share = ShareOf(count, thread, arguments_.threads);
      const uint64_t batches = (share + arguments_.get_batch - 1) / arguments_.get_batch;
      for (unsigned batch = 0; batch < batches; ++batch) get(gets, ShareOf(share, batch, batches));
    });
    statistics.per_s.push_back(static_cast<double>(count) / getting.seconds());
    statistics.reads += index_->stats().flash_reads - before;
    statistics.gets += count;
  }

  // Checks that the index has every entry once, and no other entry.
  void ReadWhole() {
    NumberTally tally;
    const Stopwatch reading;
    Require(index_->ForEach([&](const OrderedEntry& entry) {
      const auto number = keys_.NumberOf(entry.location);
      if (!number || index_->OrderOf(keys_.NameOf(*number)) != entry.order) {
        return Status(StatusCode::kCorruption,
                      "index: " + std::to_string(entry.order) + " has not the value that was put");
      }
      tally.Add(*number);
      return Status::Ok();
    }));
    scan_seconds_ = reading.seconds();
    if (tally.IsFirst(arguments_.entries)) return;
    throw BenchFailure("index: " + std::to_string(tally.count()) +
                       " entries were read back, not just the " +
                       std::to_string(arguments_.entries) + " that were put");
  }

  // Returns the number of puts that are mixed with lookups.
  uint64_t MixedEntries() const {
    const uint64_t second_half = arguments_.entries - arguments_.entries / 2;
    return arguments_.mixed == 0 ? second_half : std::min(arguments_.mixed, second_half);
  }
  static unsigned Depth() { return SiltIndexOptions{}.read_depth; }

  Json Statistics() const {
    const uint64_t base = arguments_.entries / 2;
    const auto rest = static_cast<double>(arguments_.entries - base);
    const IndexStats stats = index_->stats();
    Json statistics = {
        {"engine", arguments_.engine},
        {"entries", arguments_.entries},
        {"threads", arguments_.threads},
        {"get_batch", arguments_.get_batch},
        {"read_depth", Depth()},
        {"rounds", arguments_.rounds},
        {"processor", ProcessorName()},
        {"verified", true},  // a wrong answer throws
        {"put_per_s", static_cast<double>(arguments_.entries) /
                          (load_.base_seconds + load_.second_half_seconds)},
        {"put_second_half_per_s", rest / load_.second_half_seconds},
        {"memory_bytes", load_.memory_bytes},
        {"memory_peak_entries", load_.memory_entries},
        {"memory_bytes_per_entry", Ratio(load_.memory_bytes, load_.memory_entries)},
        {"memory_bytes_per_entry_second_half", load_.second_half_bytes_per_entry},
        {"memory_bytes_end", load_.end_memory_bytes},
        {"memory_bytes_per_entry_end", Ratio(load_.end_memory_bytes, arguments_.entries)},
        {"memory_bytes_reported", filled_.memory_bytes},
        {"memory_limit_bytes", arguments_.memory ? Json(*arguments_.memory) : Json()},
        {"flash_bytes", filled_.flash_bytes},
        {"write_amplification", stats.WriteAmplification()},
        {"put_reads_per_put", Ratio(filled_.put_flash_reads, arguments_.entries)},
        {"conversions", stats.conversions},
        {"merges", stats.merges},
        {"merge_backlog", filled_.merge_backlog},
        {"component_stores", filled_.stores.size()},
        {"scan_per_s", static_cast<double>(arguments_.entries) / scan_seconds_}};
    if (load_.mixed_gets > 0) {
      statistics["mix"] = arguments_.mix;
      statistics["mix_gets"] = load_.mixed_gets;
      statistics["mix_entries"] = MixedEntries();
      statistics["mix_put_per_s"] = static_cast<double>(MixedEntries()) / load_.mixed_seconds;
      statistics["mix_get_per_s"] = static_cast<double>(load_.mixed_gets) / load_.mixed_seconds;
    }
    if (!steps_.empty()) statistics["memory_steps"] = steps_;
    if (device_ != nullptr) AddLookups(statistics);
    const auto plan = engine_.plan({.entries = arguments_.entries});
    Require(plan.status());
    if (plan->costs) statistics["plan"] = Prediction(*plan);
    return statistics;
  }

  // Returns the costs that the engine's model predicts for an index with these parameters.
  Json Prediction(const IndexPlan& plan) const {
    return {{"write_amplification", plan.costs->write_amplification},
            {"written_bytes_per_put", plan.costs->written_bytes_per_put},
            {"written_bytes_per_update", plan.costs->written_bytes_per_update},
            {"read_amplification", plan.costs->reads_per_miss},
            {"reads_per_hit", plan.costs->reads_per_hit},
            {"memory_bytes", plan.memory_bytes},
            {"memory_bytes_per_entry", plan.memory_bytes / static_cast<double>(arguments_.entries)},
            {"hash_stores", plan.costs->component_stores}};
  }

  void AddLookups(Json& statistics) const {
    const double device = Median(device_per_s_);
    const double hits = Median(hits_.per_s);
    statistics["gets"] = hits_.gets;
    statistics["get_hit_per_s"] = hits;
    statistics["get_miss_per_s"] = Median(misses_.per_s);
    statistics["reads_per_hit"] = Ratio(hits_.reads, hits_.gets);
    statistics["reads_per_miss"] = Ratio(misses_.reads, misses_.gets);
    statistics["device_reads_per_s"] = device;
    statistics["device_reads_lowest_per_s"] = *std::ranges::min_element(device_per_s_);
    statistics["device_reads_highest_per_s"] = *std::ranges::max_element(device_per_s_);
    statistics["device_file_bytes"] = device_->size();
    statistics["device_direct"] = device_->direct();
    statistics["read_mechanism"] = device_->mechanism();
    statistics["get_hit_share_of_device"] = hits / device;
    if (load_.mixed_gets > 0) {
      statistics["mix_get_share_of_device"] = statistics["mix_get_per_s"].get<double>() / device;
    }
  }

  const Arguments& arguments_;
  const IndexEngineRow& engine_;
  const std::unique_ptr<Env> env_;
  const IndexKeys keys_;
  const ScratchDirectory scratch_;  // destroyed after the members that have files in it
  std::unique_ptr<ChunkIndex> index_;
  std::unique_ptr<MemoryMeter> memory_;
  std::unique_ptr<DeviceReads> device_;
  IndexLoadStatistics load_;
  IndexStats filled_;
  GetStatistics hits_;
  GetStatistics misses_;
  std::vector<double> device_per_s_;
  double scan_seconds_ = 0;
  std::vector<Json> steps_;
};

std::string CheckMemoryStep(const std::string& text) {
  try {
    MemoryStep(text);
    return "";
  } catch (const CLI::Error&) {
    return "a step is a size, as 8M, or \"none\" for no limit";
  }
}

std::string CheckMix(const std::string& text) {
  Mix mix;
  return ParseMix(text, mix) ? "" : "a mix is PUTS:GETS, as in 50:50, with at least one put";
}

}  // namespace

std::function<Json()> ConfigureIndexBench(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("--engine", arguments->engine, "Index engine")
      ->check(CLI::IsMember(EngineNames()))
      ->capture_default_str();
  app.add_option("--entries", arguments->entries,
                 "Entries to put: half as a base; the other half is also measured separately")
      ->check(CLI::Range(uint64_t{2}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--dir", arguments->directory,
                 "Where to make the index, in a directory of its own that is removed afterwards "
                 "(the system's temporary directory)");
  app.add_option("--get", arguments->gets,
                 "Lookups of present names, and as many of absent names; 0: none")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--mix", arguments->mix,
                 "PUTS:GETS: look present names up while entries are put, in this ratio")
      ->check(CheckMix);
  app.add_option("--mix-entries", arguments->mixed,
                 "How many puts, the last ones, are mixed with lookups (the second half)");
  app.add_option("--memory", arguments->memory, "Memory limit of the index (no limit)")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--memory-steps", arguments->memory_steps,
                 "Further memory limits, each measured with its own lookups afterwards: sizes, or "
                 "\"none\"")
      ->delimiter(',')
      ->check(CheckMemoryStep);
  app.add_option("--step-get", arguments->step_gets, "Lookups of each kind at each of these limits")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  CLI::Option* const keep =
      app.add_flag("--keep", arguments->keep,
                   "Make the index in --dir itself, which must be empty, and leave it there");
  app.add_flag("--die", arguments->die, "Kill the process when the index is full, as by kill -9")
      ->needs(keep);
  app.add_option("--threads", arguments->threads, "Threads that look up")
      ->check(CLI::Range(1U, 256U))
      ->capture_default_str();
  app.add_option("--get-batch", arguments->get_batch, "Names per lookup call")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--rounds", arguments->rounds,
                 "Spread the lookups over this many rounds, each with reads of the bare device; "
                 "figures are medians")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  app.add_option("--seed", arguments->seed, "Seed of names and lookups")->capture_default_str();
  return [arguments] { return IndexBench(*arguments).Run(); };
}

}  // namespace siltfs
