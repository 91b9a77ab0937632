// What IndexRun prints.
#include "index/engines.h"
#include "index/silt/silt_options.h"
#include "store/env/resources.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/index_run.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json IndexRun::Statistics() const {
  const IndexLoadStatistics& load = loading_->statistics();
  const PutStatistics& puts = load.puts;
  const auto first = static_cast<double>(options_.entries / 2);  // without lookups beside puts
  const auto rest = static_cast<double>(options_.entries - options_.entries / 2);
  const IndexStats stats = index_->stats();
  const auto parameters = ParametersOf(options_.index);
  Require(parameters.status());
  Json statistics = {{"engine", options_.index.engine},
                     {"strategy", options_.index.strategy},
                     {"index_options", options_.index.parameters},
                     {"slot_bytes", SlotBytesOf(*parameters, options_.index)},
                     {"entries", options_.entries},
                     {"threads", options_.threads},
                     {"put_batch", options_.put_batch},
                     {"get_batch", options_.get_batch},
                     {"read_depth", SiltIndexOptions{}.read_depth},
                     {"rounds", options_.rounds},
                     {"processor", ProcessorName()},
                     {"verified", true},  // a wrong answer throws
                     {"put_per_s", static_cast<double>(options_.entries) / puts.seconds},
                     {"put_first_half_per_s", first / load.first_half_seconds},
                     {"processor_us_per_put", load.first_half_processor_seconds * 1e6 / first},
                     {"put_second_half_per_s", rest / load.second_half_seconds},
                     {"memory_bytes", puts.memory_bytes},
                     {"memory_peak_entries", puts.memory_entries},
                     {"memory_bytes_per_entry", Ratio(puts.memory_bytes, puts.memory_entries)},
                     {"memory_bytes_per_entry_second_half", puts.most_bytes_per_entry},
                     {"memory_bytes_end", puts.end_memory_bytes},
                     {"memory_bytes_per_entry_end", Ratio(puts.end_memory_bytes, options_.entries)},
                     {"memory_bytes_reported", filled_.memory_bytes},
                     {"memory_limit_bytes", options_.memory ? Json(*options_.memory) : Json()},
                     {"flash_bytes", filled_.flash_bytes},
                     {"write_amplification", stats.WriteAmplification()},
                     {"put_reads_per_put", Ratio(filled_.put_flash_reads, options_.entries)},
                     {"conversions", stats.conversions},
                     {"merges", stats.merges},
                     {"merge_backlog", filled_.merge_backlog},
                     {"component_stores", filled_.stores.size()},
                     {"scan_per_s", static_cast<double>(options_.entries) / scan_seconds_}};
  if (!options_.index.without.empty()) {
    statistics["without"] = options_.index.without;
    statistics["without_by"] = HowWithout(options_.index);
  }
  AddSummary(growth_, update_phase_, statistics);
  AddMix(statistics);
  if (!steps_.empty()) statistics["memory_steps"] = steps_;
  if (device_ != nullptr) AddLookups(*growth_.lookups, *device_, statistics);
  statistics["growth"] = ReportOf(growth_);
  if (options_.updates > 0) statistics["updates"] = ReportOf(update_phase_);
  if (trace_ != nullptr) {
    statistics["memory_trace"] = {{"file", options_.trace}, {"samples", trace_->samples()}};
  }
  AddPlan(*parameters, statistics);
  return statistics;
}

void IndexRun::AddPlan(const EngineParameters& parameters, Json& statistics) const {
  if (!options_.index.without.empty()) return;  // the model has all kinds of stores
  const auto engine = FindIndexEngine(options_.index.engine);
  Require(engine.status());
  const auto plan = (*engine)->plan({.entries = options_.entries,
                                     .parameters = parameters,
                                     .limited_memory = options_.memory.has_value()});
  Require(plan.status());
  if (plan->costs) statistics["plan"] = ReportOf(*plan, options_.entries);
}

void IndexRun::AddMix(Json& statistics) const {
  const IndexLoadStatistics& load = loading_->statistics();
  if (load.mixed_gets == 0) return;
  const auto entries = static_cast<double>(options_.MixedEntries());
  statistics["mix"] = options_.mix_text;
  statistics["mix_gets"] = load.mixed_gets;
  statistics["mix_entries"] = options_.MixedEntries();
  statistics["mix_put_per_s"] = entries / load.mixed_seconds;
  statistics["mix_get_per_s"] = static_cast<double>(load.mixed_gets) / load.mixed_seconds;
  statistics["mix_get_call_us"] = ReportOf(load.mixed_get_latency);
}

}  // namespace siltfs
