// siltfs-bench index: fills a chunk index, looks names up, and reads the whole index. Compares the
// rates with bare reads of the device. This file parses the options; index_run.h runs.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "index/engines.h"
#include "store/env/page_allocator.h"
#include "tools/bench/bench.h"
#include "tools/bench/index_run.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> EngineNames() {
  std::vector<std::string> names;
  for (const IndexEngineRow* row : IndexEngines()) names.emplace_back(row->name);
  return names;
}

// Parses "P:G". Both are decimal numbers; P is not 0.
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

std::string CheckMix(const std::string& text) {
  Mix mix;
  return ParseMix(text, mix) ? "" : "a mix is PUTS:GETS, as in 50:50, with at least one put";
}

constexpr const char* kListStrategies = "list";

std::vector<std::string> StrategyChoices() {
  std::vector<std::string> names = IndexStrategyNames();
  names.emplace_back(kListStrategies);
  return names;
}

std::string CheckMemoryStep(const std::string& text) {
  try {
    ParseMemoryStep(text);
    return "";
  } catch (const CLI::Error&) {
    return "a step is a size, as 8M, or \"none\" for no limit";
  }
}

// Checks what concerns several options.
void CheckTogether(IndexBenchOptions& options) {
  if (options.index.strategy == kListStrategies) return;
  const auto parameters = ParametersOf(options.index);
  if (!parameters.ok()) {
    throw CLI::ValidationError(std::string(parameters.status().cause()));
  }
  const uint64_t updates = options.updates + options.memory_steps.size() * options.step_updates;
  if (updates / options.entries >= IndexKeys::kMostVersion) {
    throw CLI::ValidationError("--updates, --step-updates: at most " +
                               std::to_string(IndexKeys::kMostVersion) +
                               " updates of each entry can be told apart");
  }
  if (!options.engines.empty() && (options.keep || !options.trace.empty())) {
    throw CLI::ValidationError("--engines: not with --keep or --trace-memory");
  }
  if (!options.mix_text.empty()) ParseMix(options.mix_text, options.mix);
}

void AddIndexOptions(CLI::App& app, IndexBenchOptions& options) {
  app.add_option("--engine", options.index.engine, "Index engine")
      ->check(CLI::IsMember(EngineNames()))
      ->capture_default_str();
  app.add_option("--engines", options.engines,
                 "Measure these engines instead, one after the other; a name may be followed by "
                 "parameters, as in silt:partition_bits=4. \"all\" stands for all engines")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CheckEngineChoice);
  app.add_option("--strategy", options.index.strategy,
                 "The slots, the page index and the converted stores of SILT: \"paper\" has named "
                 "slots, tries and HashStores, the default has hashed slots, page boundaries and "
                 "sorted runs; \"list\" prints all names")
      ->check(CLI::IsMember(StrategyChoices()))
      ->capture_default_str();
  app.add_option("--index-option", options.index.parameters,
                 "A parameter of the engine that differs from its default; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--without", options.index.without,
                 "Kinds of SILT's stores to leave out, as in figure 10 of the paper; with both, "
                 "only LogStores remain. The output says how. Without HashStores, merges write "
                 "much; a higher bucket_bits makes larger LogStores and fewer merges")
      ->delimiter(',')
      ->check(CLI::IsMember(IndexKindsToLeaveOut()));
  app.add_option("--memory", options.memory, "Memory limit of the index (no limit)")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--dir", options.directory,
                 "Where to make the index, in a directory of its own that is removed afterwards "
                 "(the system's temporary directory)");
}

void AddPutOptions(CLI::App& app, IndexBenchOptions& options) {
  app.add_option("--entries", options.entries,
                 "Entries to put: half as a base; the other half is also measured separately")
      ->check(CLI::Range(uint64_t{2}, UpdateOrder::kMostEntries))
      ->capture_default_str();
  app.add_option("--put-batch", options.put_batch, "Entries per put call")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--mix", options.mix_text,
                 "PUTS:GETS: look present names up while entries are put, in this ratio. With "
                 "--trace-memory, 50:50 and 10:90 give figure 9 of the paper")
      ->check(CheckMix);
  app.add_option("--mix-entries", options.mixed,
                 "How many puts, the last ones, are mixed with lookups (the second half)");
  app.add_option("--mix-rate", options.mix_per_s,
                 "At most this many puts and lookups a second while they are mixed; 0: no limit")
      ->capture_default_str();
  CLI::Option* const updates = app.add_option(
      "--updates", options.updates,
      "Then put names again with new locations, this many times in all, and look names up again. "
      "Each round updates every name once, in a permuted order");
  updates->check(CLI::Range(uint64_t{0}, uint64_t{1} << 48))->capture_default_str();
  CLI::Option* const keep =
      app.add_flag("--keep", options.keep,
                   "Make the index in --dir itself, which must be empty, and leave it there");
  // "siltfs-bench open" expects the index as it was before updates.
  keep->excludes(updates);
  app.add_flag("--die", options.die, "Kill the process when the index is full, as by kill -9")
      ->needs(keep);
}

void AddGetOptions(CLI::App& app, IndexBenchOptions& options) {
  app.add_option("--get", options.gets,
                 "Lookups of present names, and as many of absent names; 0: none")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--single-get", options.single_gets,
                 "Further lookups of both kinds, one name in each call, for latencies; 0: none")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--memory-steps", options.memory_steps,
                 "Further memory limits, each measured with its own lookups afterwards: sizes, or "
                 "\"none\"")
      ->delimiter(',')
      ->check(CheckMemoryStep);
  app.add_option("--step-updates", options.step_updates,
                 "Put this many names again after each of these limits is set, before its lookups")
      ->excludes("--keep")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 48))
      ->capture_default_str();
  app.add_option("--step-get", options.step_gets, "Lookups of each kind at each of these limits")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads that look up")
      ->check(CLI::Range(1U, 256U))
      ->capture_default_str();
  app.add_option("--get-batch", options.get_batch, "Names per lookup call")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds,
                 "Spread the lookups over this many rounds, each with reads of the bare device; "
                 "figures are medians")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
}

Json RunEngines(const IndexBenchOptions& options) {
  Json reports = Json::array();
  for (const IndexChoice& choice : ParseEngineChoices(options.engines)) {
    IndexBenchOptions one = options;
    one.index = choice;
    reports.push_back(IndexRun(one).Run());
    ReleaseFreePages();  // the next engine's memory is measured as growth
  }
  return {{"engines", std::move(reports)}};
}

}  // namespace

std::function<Json()> ConfigureIndexBench(CLI::App& app) {
  auto options = std::make_shared<IndexBenchOptions>();
  AddIndexOptions(app, *options);
  AddPutOptions(app, *options);
  AddGetOptions(app, *options);
  CLI::Option* const trace = app.add_option(
      "--trace-memory", options->trace,
      "Write the index's memory by kind of store, the process's growth, puts, lookups, conversions "
      "and merges over time to this new CSV file; adds some 250 bytes of memory per store");
  app.add_option("--trace-interval", options->trace_milliseconds, "Milliseconds between its lines")
      ->check(CLI::Range(uint64_t{1}, uint64_t{3'600'000}))
      ->needs(trace)
      ->capture_default_str();
  app.add_option("--seed", options->seed, "Seed of names and lookups")->capture_default_str();
  app.callback([options] { CheckTogether(*options); });
  return [options] {
    if (options->index.strategy == kListStrategies)
      return Json{{"strategies", IndexStrategyNames()}};
    if (!options->engines.empty()) return RunEngines(*options);
    return IndexRun(*options).Run();
  };
}

}  // namespace siltfs
