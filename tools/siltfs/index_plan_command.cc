// siltfs index plan
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "index/silt/plan_choice.h"
#include "index/silt/plan_strategy.h"
#include "index/silt/silt_options.h"
#include "store/base/size_text.h"
#include "tools/siltfs/index_command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/size_option.h"

namespace siltfs {
namespace {

// The limit of --entries, --memory and --flash. It is far more than any device has, and small
// enough that values computed from it fit into 64 bits.
constexpr uint64_t kMostBytes = uint64_t{1} << 56;
constexpr double kSecondsPerYear = 365.25 * 24 * 3600;

struct Trie {
  std::string_view name;
  double bits_per_key;
};
constexpr std::array kTries = {Trie{"exact", 3.0}, Trie{"weak", 2.5}, Trie{"sparse", 0.28}};

// As the index writes with sorted runs (silt_options.h), in entries of 32 bytes.
constexpr double kWritesOfRuns = kBytesPerPutOfRuns / 32;

// The values on the command line.
struct IndexPlanArguments {
  std::string entries;
  std::string memory;
  std::string flash;
  std::optional<double> write_amplification = std::nullopt;
  double read_amplification = SiltLimits().read_amplification;
  double updates_per_second = SiltWorkload().updates_per_second;
  double erase_cycles = SiltDevice().erase_cycles;
  std::string strategy = std::string(SiltStrategies().front().name);
  std::optional<std::string> trie;
  bool use_all_memory = false;
  bool json = false;
};

struct Question {
  std::string strategy;
  SiltWorkload workload;
  SiltDevice device;
  SiltLimits limits;
  SiltParticulars particulars;
  SiltPreference preference = SiltPreference::kLeastMemory;
};

Status Wrong(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

Result<double> ParseOption(std::string_view option, const std::string& text) {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t number, ParseSizeOption(option, text));
  if (number == 0) return Wrong(fmt::format("{}: must be more than 0", option));
  if (number > kMostBytes)
    return Wrong(
        fmt::format("{}: {} is more than {}", option, text, FormatSizeArgument(kMostBytes)));
  return static_cast<double>(number);
}

// Refuses infinity and NaN, too.
Status CheckPositive(std::string_view option, double number) {
  if (std::isfinite(number) && number > 0) return {};
  return Wrong(fmt::format("{}: {:g} is not a number above 0", option, number));
}

Result<double> BitsPerKey(std::string_view name) {
  for (const Trie& trie : kTries) {
    if (trie.name == name) return trie.bits_per_key;
  }
  return Wrong(fmt::format("--trie: \"{}\" is neither exact, weak nor sparse", name));
}

Status ChooseParticulars(const IndexPlanArguments& arguments, Question& question) {
  auto strategy = FindSiltStrategy(arguments.strategy);
  if (!strategy.ok()) return Wrong(fmt::format("--strategy: {}", strategy.status().cause()));
  question.strategy = strategy->name;
  strategy->tries = strategy->tries || arguments.trie;
  question.particulars = ParticularsOf(*strategy);
  if (strategy->sorted_runs) question.limits.write_amplification = kWritesOfRuns;
  if (!arguments.trie) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(question.particulars.sorted_bits_per_key, BitsPerKey(*arguments.trie));
  return Status::Ok();
}

Result<Question> ToQuestion(const IndexPlanArguments& arguments) {
  Question question;
  SILTFS_ASSIGN_OR_RETURN(question.workload.entries, ParseOption("--entries", arguments.entries));
  SILTFS_ASSIGN_OR_RETURN(question.limits.memory_bytes, ParseOption("--memory", arguments.memory));
  SILTFS_ASSIGN_OR_RETURN(question.limits.flash_bytes, ParseOption("--flash", arguments.flash));
  SILTFS_RETURN_IF_ERROR(ChooseParticulars(arguments, question));
  if (arguments.write_amplification)
    question.limits.write_amplification = *arguments.write_amplification;
  SILTFS_RETURN_IF_ERROR(
      CheckPositive("--write-amplification", question.limits.write_amplification));
  SILTFS_RETURN_IF_ERROR(CheckPositive("--read-amplification", arguments.read_amplification));
  SILTFS_RETURN_IF_ERROR(CheckPositive("--erase-cycles", arguments.erase_cycles));
  if (arguments.updates_per_second != 0) {
    SILTFS_RETURN_IF_ERROR(CheckPositive("--updates-per-second", arguments.updates_per_second));
  }
  question.workload.updates_per_second = arguments.updates_per_second;
  question.device = {.flash_bytes = question.limits.flash_bytes,
                     .erase_cycles = arguments.erase_cycles};
  question.limits.read_amplification = arguments.read_amplification;
  if (arguments.use_all_memory) question.preference = SiltPreference::kLeastWrites;
  return question;
}

uint64_t Whole(double number) { return static_cast<uint64_t>(std::llround(number)); }

// In an index that has grown to N entries and was never updated.
double BytesPerPutGrowing(const Question& question, const SiltPlan& plan) {
  SiltWorkload workload = question.workload;
  workload.history = SiltHistory::kGrowth;
  // The parameters have been checked.
  return PredictSilt(workload, question.device, plan.parameters, question.particulars)
      ->written_bytes_per_put;
}

nlohmann::json ToJson(const Question& question, const SiltPlan& plan) {
  const SiltPrediction& p = plan.prediction;
  const double entries = question.workload.entries;
  nlohmann::json json = {
      {"strategy", question.strategy},
      {"entries", Whole(entries)},
      {"k", plan.parameters.tag_bits},
      {"d", Whole(plan.parameters.merge_entries)},
      {"P", plan.parameters.instances},
      {"H", p.hash_stores},
      {"bucket_bits", plan.parameters.bucket_bits},
      {"log_store_entries", Whole(p.log_store_entries)},
      {"hash_stores_per_merge", Whole(plan.parameters.merge_entries / p.log_store_entries)},
      {"false_positive_rate", p.false_positive_rate},
      {"write_amplification", p.write_amplification},
      {"written_bytes_per_put", p.written_bytes_per_put},
      {"written_bytes_per_put_growing", BytesPerPutGrowing(question, plan)},
      {"read_amplification", p.read_amplification},
      {"read_amplification_hit", p.average_hit_reads},
      {"read_amplification_miss", p.read_amplification},
      {"memory_bytes", Whole(p.memory_bytes)},
      {"memory_bytes_peak", Whole(p.peak_memory_bytes)},
      {"memory_bytes_per_entry", p.memory_bytes / entries},
      {"memory_bytes_per_entry_peak", p.peak_memory_bytes / entries},
      {"flash_bytes", Whole(p.flash_bytes)},
      {"device_life_years", nullptr},  // without updates it is unlimited
  };
  if (std::isfinite(p.device_life_seconds)) {
    json["device_life_years"] = p.device_life_seconds / kSecondsPerYear;
  }
  return json;
}

std::string ToText(const Question& question, const SiltPlan& plan) {
  const SiltPrediction& p = plan.prediction;
  const double entries = question.workload.entries;
  const auto memory = [&](double bytes) {
    return fmt::format("{} ({:.3f} bytes an entry)", FormatSize(Whole(bytes)), bytes / entries);
  };
  std::string text;
  const auto line = [&](std::string_view label, std::string_view value) {
    text += fmt::format("{:<38}  {}\n", label, value);
  };
  line("k, bits of a tag", fmt::format("{}", plan.parameters.tag_bits));
  line("d, entries of a merge",
       fmt::format("{} ({} HashStores of {})", Whole(plan.parameters.merge_entries),
                   Whole(plan.parameters.merge_entries / p.log_store_entries),
                   Whole(p.log_store_entries)));
  line("P, partitions", fmt::format("{}", plan.parameters.instances));
  line("H, HashStores of a partition, average", fmt::format("{:.1f}", p.hash_stores));
  line("buckets of a table", fmt::format("2^{}", plan.parameters.bucket_bits));
  line("write amplification", fmt::format("{:.3f}", p.write_amplification));
  line("bytes written per put",
       fmt::format("{:.1f}; {:.1f} while the index grows", p.written_bytes_per_put,
                   BytesPerPutGrowing(question, plan)));
  line("flash reads of a hit, average", fmt::format("{:.4f}", p.average_hit_reads));
  line("flash reads of a miss", fmt::format("{:.4f}", p.read_amplification));
  line("memory, average", memory(p.memory_bytes));
  line("memory, peak", memory(p.peak_memory_bytes));
  line("flash, peak", FormatSize(Whole(p.flash_bytes)));
  line("life of the device", std::isfinite(p.device_life_seconds)
                                 ? fmt::format("{:.1f} years at {:g} updates a second",
                                               p.device_life_seconds / kSecondsPerYear,
                                               question.workload.updates_per_second)
                                 : "unlimited");
  return text;
}

ExitCode RunIndexPlan(const IndexPlanArguments& arguments, Surroundings& surroundings) {
  const Result<Question> question = ToQuestion(arguments);
  if (!question.ok()) return Fail(surroundings, question.status());
  const Result<SiltPlan> plan =
      ChooseSiltParameters(question->workload, question->device, question->limits,
                           question->particulars, question->preference);
  if (!plan.ok()) return Fail(surroundings, plan.status());
  if (arguments.json) {
    PrintJson(surroundings, ToJson(*question, *plan));
  } else {
    surroundings.out << ToText(*question, *plan);
  }
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureIndexPlan(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<IndexPlanArguments>();
  app.add_option("--entries", arguments->entries,
                 "Number of chunks in the index; accepts the suffixes of sizes")
      ->type_name("N")
      ->required();
  app.add_option("--memory", arguments->memory, "Limit of the index's peak memory")
      ->type_name("SIZE")
      ->required();
  app.add_option("--flash", arguments->flash,
                 "Size of the flash device; the index may use all of it")
      ->type_name("SIZE")
      ->required();
  app.add_option("--write-amplification", arguments->write_amplification,
                 fmt::format("Limit of writes per entry ({:g} with sorted runs, else {:g})",
                             kWritesOfRuns, SiltLimits().write_amplification))
      ->type_name("X");
  app.add_option(
         "--read-amplification", arguments->read_amplification,
         fmt::format("Limit of flash reads per lookup ({:g})", arguments->read_amplification))
      ->type_name("X");
  app.add_option("--updates-per-second", arguments->updates_per_second,
                 fmt::format("Entries put per second ({:g})", arguments->updates_per_second))
      ->type_name("U");
  app.add_option("--erase-cycles", arguments->erase_cycles,
                 fmt::format("Erase cycles that the device lasts ({:g})", arguments->erase_cycles))
      ->type_name("E");
  app.add_option("--strategy", arguments->strategy,
                 fmt::format("Slots and index of sorted entries: {} ({})", SiltStrategyNames(),
                             arguments->strategy))
      ->type_name("NAME");
  app.add_option("--trie", arguments->trie,
                 "Index sorted entries with a trie that is exact, weak or sparse")
      ->type_name("KIND");
  app.add_flag(
      "--use-all-memory", arguments->use_all_memory,
      "Use all of the memory to reduce writes; without this, use as little memory as possible");
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a table");
  return [arguments, &surroundings] { return RunIndexPlan(*arguments, surroundings); };
}

}  // namespace siltfs
