#include "tools/bench/index_run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "index/silt/silt_index.h"
#include "store/env/daemon.h"
#include "store/env/page_allocator.h"
#include "store/env/posix_env.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kWarmUpEntries = 2000;

void Nap() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

// Ends the process as kill -9 does: nothing is closed, and the index stays on disk as it is.
[[noreturn]] void DieSuddenly() {
  std::raise(SIGKILL);
  std::abort();  // not reached
}

}  // namespace

uint64_t ParseMemoryStep(std::string text) {
  if (text == "none") return kNoMemoryLimit;
  const std::string refused = CLI::AsSizeValue(false)(text);
  if (!refused.empty()) throw CLI::ValidationError(refused);
  return std::stoull(text);
}

IndexRun::IndexRun(const IndexBenchOptions& options)
    : options_(options),
      env_(NewPosixEnv()),
      keys_(MixNumber(options.seed)),
      order_(options.entries, options.seed),
      scratch_(*env_, options.keep ? std::string() : options.directory),
      directory_(options.keep ? options.directory : scratch_.path() + "/index") {}

Json IndexRun::Run() {
  const auto limit = RaiseFileLimit();
  Require(limit.status());
  Fill();
  if (options_.die) DieSuddenly();
  LookUp(growth_);
  if (options_.updates > 0) {
    Update();
    LookUp(update_phase_);
  }
  progress_.phase = "end";
  for (const std::string& step : options_.memory_steps) StepMemory(step);
  ReadWhole();
  if (trace_ != nullptr) trace_->End();
  Require(index_->Close());
  return Statistics();
}

// Uses a SILT index of a few hundred KiB before the measurement, so that code and libraries are
// already in memory.
void IndexRun::WarmUp() {
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
  IndexGets gets(**index, keys_, 64, options_.seed);
  gets.GetPresent(64, kWarmUpEntries);
  gets.GetAbsent(64);
  Require((*index)->Close());
}

void IndexRun::Open() {
  if (!options_.keep) Require(env_->CreateDirectory(directory_));
  memory_ = std::make_unique<MemoryMeter>();
  auto index = OpenChosenIndex(*env_, options_.index, directory_, options_.MemoryLimit());
  Require(index.status());
  index_ = std::move(*index);
  if (options_.trace.empty()) return;
  trace_ = std::make_unique<MemoryTrace>(*env_, options_.trace,
                                         std::chrono::milliseconds(options_.trace_milliseconds),
                                         *index_, *memory_, progress_);
}

void IndexRun::Fill() {
  loading_ = std::make_unique<IndexLoad>(keys_, IndexLoadOptions{.entries = options_.entries,
                                                                 .put_batch = options_.put_batch,
                                                                 .get_batch = options_.get_batch,
                                                                 .mix_puts = options_.mix.puts,
                                                                 .mix_gets = options_.mix.gets,
                                                                 .mixed = options_.MixedEntries(),
                                                                 .mix_per_s = options_.mix_per_s,
                                                                 .get_threads = options_.threads,
                                                                 .seed = options_.seed,
                                                                 .progress = &progress_});
  WarmUp();
  Open();
  growth_.put_count = options_.entries;
  loading_->Fill(*index_, *memory_);
  growth_.puts = loading_->statistics().puts;
  NoteEnd(growth_);
  filled_ = index_->stats();
}

void IndexRun::NoteEnd(IndexPhase& phase) {
  if (trace_ != nullptr) {
    trace_->Sample();
    phase.peak_memory = trace_->TakePeak();
  }
  const IndexStats stats = index_->stats();
  phase.after = CountersOf(stats);
  phase.end_memory = MemoryOf(stats);
}

IndexLookups IndexRun::Lookups() { return {*index_, keys_, options_, progress_, order_, updates_}; }

void IndexRun::LookUp(IndexPhase& phase) {
  progress_.phase = "lookups";
  LookupStatistics lookups;
  if (options_.gets > 0) {
    if (device_ == nullptr) {
      device_ = std::make_unique<DeviceReads>(*env_, scratch_.path() + "/device",
                                              std::max<uint64_t>(index_->stats().flash_bytes, 1));
    }
    lookups = Lookups().MeasureBatches(options_.gets, device_.get(), directory_);
  }
  if (options_.single_gets > 0) Lookups().MeasureSingle(options_.single_gets, lookups);
  phase.lookups = std::move(lookups);
}

// Lookups leave buffers in the index and free memory in the heap. Neither belongs to the memory of
// the updates.
void IndexRun::ReleaseMemoryOfLookups() {
  Require(index_->SetMemoryLimit(options_.MemoryLimit()));
  ReleaseFreePages();
}

void IndexRun::Update() {
  ReleaseMemoryOfLookups();
  update_phase_.put_count = options_.updates;
  update_phase_.before = CountersOf(index_->stats());
  if (trace_ != nullptr) trace_->TakePeak();
  update_phase_.puts = loading_->Update(*index_, *memory_, order_, updates_, options_.updates);
  updates_ += options_.updates;
  NoteEnd(update_phase_);
}

// Updates entries under the memory limit of a step.
Json IndexRun::UpdateInStep() {
  const IndexStats before = index_->stats();
  const PutStatistics puts =
      loading_->Update(*index_, *memory_, order_, updates_, options_.step_updates);
  updates_ += options_.step_updates;
  const IndexStats stats = index_->stats();
  const uint64_t written = stats.flash_bytes_written - before.flash_bytes_written;
  return {{"updates", options_.step_updates},
          {"put_per_s", static_cast<double>(options_.step_updates) / puts.seconds},
          {"written_bytes_per_put", Ratio(written, options_.step_updates)},
          {"write_amplification", Ratio(written, stats.entry_bytes_put - before.entry_bytes_put)},
          {"conversions", stats.conversions - before.conversions},
          {"merges", stats.merges - before.merges},
          {"memory_bytes_peak", puts.memory_bytes}};
}

// Measures the index's memory and lookups under another memory limit.
void IndexRun::StepMemory(const std::string& step) {
  const uint64_t limit = ParseMemoryStep(step);
  Require(index_->SetMemoryLimit(limit));
  // Moved buffers are read from the device only after they are durable.
  Require(index_->Flush());
  const Json updates = options_.step_updates > 0 ? UpdateInStep() : Json();
  while (index_->stats().load_backlog > 0 || index_->stats().merge_backlog > 0) Nap();
  const uint64_t resident = memory_->Growth();
  const IndexStats stats = index_->stats();
  const LookupStatistics lookups = Lookups().MeasureBatches(options_.step_gets, nullptr, "");
  const GetStatistics& hits = lookups.hits;
  const GetStatistics& misses = lookups.misses;
  steps_.push_back({{"memory_limit_bytes", limit == kNoMemoryLimit ? Json() : Json(limit)},
                    {"memory_bytes_resident", resident},
                    {"memory_bytes_reported", stats.memory_bytes},
                    {"reads_per_hit", Ratio(hits.reads, hits.gets)},
                    {"reads_per_miss", Ratio(misses.reads, misses.gets)},
                    {"get_hit_per_s", Median(hits.per_s)},
                    {"get_miss_per_s", Median(misses.per_s)},
                    {"gets", hits.gets}});
  if (!updates.is_null()) steps_.back()["updates"] = updates;
}

// Checks that the index has the newest version of every entry once, and no other entry.
void IndexRun::ReadWhole() {
  NumberTally tally;
  const Stopwatch reading;
  Require(index_->ForEach([&](const OrderedEntry& entry) {
    const auto number = keys_.NumberOf(entry.location);
    if (!number || index_->OrderOf(keys_.NameOf(*number)) != entry.order ||
        keys_.LocationOf(*number, order_.VersionAfter(updates_, *number)) != entry.location) {
      return Status(StatusCode::kCorruption, "index: " + std::to_string(entry.order) +
                                                 " has not the newest value that was put");
    }
    tally.Add(*number);
    return Status::Ok();
  }));
  scan_seconds_ = reading.seconds();
  if (tally.IsFirst(options_.entries)) return;
  throw BenchFailure("index: " + std::to_string(tally.count()) +
                     " entries were read back, not just the " + std::to_string(options_.entries) +
                     " that were put");
}

}  // namespace siltfs
