#include "tools/bench/index_strategy.h"

#include <algorithm>

#include "index/engines.h"
#include "index/open_index.h"
#include "index/silt/plan_strategy.h"
#include "index/silt/silt_index.h"
#include "index/silt/silt_options.h"
#include "tools/bench/bench.h"

namespace siltfs {
namespace {

// Named slots always have tries, so an index cannot have this strategy of the model.
bool IsPossible(const SiltStrategy& strategy) { return !strategy.named_slots || strategy.tries; }

constexpr const char* kAllEngines = "all";
constexpr const char* kHash = "hash";
constexpr const char* kSorted = "sorted";

// A share must be above 0 and below 1, so the smallest and largest useful values are used.
constexpr double kLeastShare = 1e-9;
constexpr double kMostShare = 0.999999;
constexpr unsigned kNoStoreLimit = 1U << 28;

Status Refused(std::string why) { return {StatusCode::kInvalidArgument, std::move(why)}; }

bool LeavesOut(const IndexChoice& choice, const char* kind) {
  return std::find(choice.without.begin(), choice.without.end(), kind) != choice.without.end();
}

// These options are no parameters of the engine, because a store never needs them.
SiltIndexOptions OptionsWithout(const IndexChoice& choice, const EngineParameters& parameters) {
  SiltIndexOptions options = SiltOptionsOf(parameters);
  const bool no_hash = LeavesOut(choice, kHash);
  const bool no_sorted = LeavesOut(choice, kSorted);
  if (no_hash && no_sorted) {
    options.background_bytes_per_second = 1;
    options.max_frozen_logs = kNoStoreLimit;
  } else if (no_hash) {
    options.hash_store_share = kLeastShare;
  } else if (no_sorted) {
    options.hash_store_share = kMostShare;
    options.max_hash_stores = kNoStoreLimit;
  }
  return options;
}

}  // namespace

std::vector<std::string> IndexStrategyNames() {
  std::vector<std::string> names;
  for (const SiltStrategy& strategy : SiltStrategies()) {
    if (IsPossible(strategy)) names.emplace_back(strategy.name);
  }
  return names;
}

std::vector<std::string> IndexKindsToLeaveOut() { return {kHash, kSorted}; }

namespace {

// The parts of a text between colons.
std::vector<std::string> SplitAtColons(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(':', begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

IndexChoice ParseEngineChoice(const std::string& text) {
  std::vector<std::string> parts = SplitAtColons(text);
  IndexChoice choice{.engine = parts.front()};
  choice.parameters.assign(parts.begin() + 1, parts.end());
  return choice;
}

}  // namespace

std::string CheckEngineChoice(const std::string& text) {
  if (text == kAllEngines) return "";
  const auto parameters = ParametersOf(ParseEngineChoice(text));
  return parameters.ok() ? "" : std::string(parameters.status().cause());
}

std::vector<IndexChoice> ParseEngineChoices(const std::vector<std::string>& texts) {
  std::vector<IndexChoice> choices;
  for (const std::string& text : texts) {
    if (text == kAllEngines) {
      for (const IndexEngineRow* row : IndexEngines()) {
        choices.push_back({.engine = std::string(row->name)});
      }
      continue;
    }
    const std::string refused = CheckEngineChoice(text);
    if (!refused.empty()) throw BenchFailure(refused);
    choices.push_back(ParseEngineChoice(text));
  }
  return choices;
}

Result<EngineParameters> ParametersOf(const IndexChoice& choice) {
  SILTFS_ASSIGN_OR_RETURN(const IndexEngineRow* const engine, FindIndexEngine(choice.engine));
  SILTFS_ASSIGN_OR_RETURN(const SiltStrategy strategy, FindSiltStrategy(choice.strategy));
  if (!IsPossible(strategy))
    return Refused("named slots always have tries: use the strategy paper");
  if (engine->number != IndexEngine::kSilt) {
    if (choice.strategy != "default") return Refused("only the engine silt has strategies");
    if (!choice.without.empty()) return Refused("only the engine silt can leave out stores");
  }
  EngineParameters parameters;
  if (strategy.named_slots) parameters.push_back({.name = "named_slots", .value = 1});
  if (strategy.tries) parameters.push_back({.name = "tries", .value = 1});
  // Named slots have HashStores in any case.
  if (engine->number == IndexEngine::kSilt && !strategy.sorted_runs && !strategy.named_slots)
    parameters.push_back({.name = "sorted_runs", .value = 0});
  for (const std::string& text : choice.parameters) {
    SILTFS_ASSIGN_OR_RETURN(EngineParameter parameter, ParseEngineParameter(text));
    parameters.push_back(std::move(parameter));
  }
  SILTFS_RETURN_IF_ERROR(CheckIndexChoice(engine->number, parameters));
  return parameters;
}

std::string HowWithout(const IndexChoice& choice) {
  const bool no_hash = LeavesOut(choice, kHash);
  const bool no_sorted = LeavesOut(choice, kSorted);
  if (no_hash && no_sorted) {
    return "conversions are limited to a byte a second, so frozen LogStores keep their tables";
  }
  if (no_hash) {
    return "each HashStore is merged as soon as it is written; its bytes count as written";
  }
  if (no_sorted) {
    return "merges begin only while HashStores have more than 99.9999 % of all entries, so the "
           "first merge is nearly the only one";
  }
  return "";
}

size_t SlotBytesOf(const EngineParameters& parameters, const IndexChoice& choice) {
  if (choice.engine != kSiltEngineName) return 0;
  return SiltOptionsOf(parameters).layout.slot_size();
}

Result<std::unique_ptr<ChunkIndex>> OpenChosenIndex(Env& env, const IndexChoice& choice,
                                                    const std::string& directory,
                                                    uint64_t memory_limit) {
  SILTFS_ASSIGN_OR_RETURN(const IndexEngineRow* const engine, FindIndexEngine(choice.engine));
  SILTFS_ASSIGN_OR_RETURN(const EngineParameters parameters, ParametersOf(choice));
  if (choice.without.empty()) {
    return OpenIndex(env, {.engine = engine->number,
                           .directory = directory,
                           .memory_limit = memory_limit,
                           .parameters = parameters});
  }
  SiltIndexOptions options = OptionsWithout(choice, parameters);
  options.directory = directory;
  options.memory_limit = memory_limit;
  return OpenSiltIndex(env, options);
}

}  // namespace siltfs
