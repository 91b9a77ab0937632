// SILT's row in the table of engines.
#include <algorithm>
#include <optional>
#include <string>

#include "index/flash/cuckoo_place.h"
#include "index/silt/merge_policy.h"
#include "index/silt/plan_shape.h"
#include "index/silt/silt_index.h"

namespace siltfs {
namespace {

// An index needs at least 2.4 MiB, plus some memory for each store (memory_plan.h).
constexpr uint64_t kLeastMemory = 3 << 20;

constexpr EngineParameterSpec kPartitionBits = {.name = "partition_bits",
                                                .least = 0,
                                                .most = kMaxPartitionBits,
                                                .value = kDefaultPartitionBits};
constexpr EngineParameterSpec kBucketBits = {
    .name = "bucket_bits", .least = 1, .most = kMaxBucketBits, .value = kDefaultBucketBits};
// The paper's choices instead of ours: slots with names, and tries instead of page boundaries.
constexpr EngineParameterSpec kNamedSlots = {
    .name = "named_slots", .least = 0, .most = 1, .value = 0};
constexpr EngineParameterSpec kTries = {.name = "tries", .least = 0, .most = 1, .value = 0};
// Sorted runs; with 0, the paper's HashStores. Slots with names always have HashStores.
constexpr EngineParameterSpec kSortedRuns = {
    .name = "sorted_runs", .least = 0, .most = 1, .value = 1};
constexpr EngineParameterSpec kParameters[] = {kPartitionBits, kBucketBits, kNamedSlots, kTries,
                                               kSortedRuns};

}  // namespace

SiltIndexOptions SiltOptionsOf(const EngineParameters& parameters) {
  SiltIndexOptions options;
  options.partition_bits = static_cast<unsigned>(ValueOf(kPartitionBits, parameters));
  options.bucket_bits = static_cast<unsigned>(ValueOf(kBucketBits, parameters));
  if (ValueOf(kNamedSlots, parameters) != 0) {
    options.layout = SlotLayout::Named(SlotLayout::kLeastBits);
  }
  options.page_index =
      ValueOf(kTries, parameters) != 0 ? PageIndexKind::kTrie : PageIndexKind::kBounds;
  options.sorted_runs = ValueOf(kSortedRuns, parameters) != 0;
  return options;
}

namespace {

Result<std::unique_ptr<ChunkIndex>> Open(Env& env, const IndexOptions& options) {
  SiltIndexOptions silt = SiltOptionsOf(options.parameters);
  silt.directory = options.directory;
  silt.read_only = options.read_only;
  silt.memory_limit = options.memory_limit;
  silt.background = options.background;
  silt.synchronous = options.synchronous;
  silt.background_bytes_per_second = options.background_bytes_per_second;
  return OpenSiltIndex(env, silt);
}

SiltParticulars StrategyParticulars(const SiltIndexOptions& options, bool sorted_filters) {
  const bool named = !options.layout.hashed();
  return ParticularsOf({.name = {},
                        .named_slots = named,
                        .tries = named || options.page_index == PageIndexKind::kTrie,
                        .sorted_runs = options.sorted_runs && !named},
                       sorted_filters);
}

// The share if memory is not short.
double ShareOf(const SiltIndexOptions& options) {
  return WantedShare(options, options.layout,
                     CostsOf(options, options.layout, /*sorted_filters=*/false, kMostStores));
}

// Applies the model (plan_strategy.h) to an index with these parameters.
Result<IndexPlan> Plan(const IndexPlanQuestion& question) {
  const SiltIndexOptions options = SiltOptionsOf(question.parameters);
  SILTFS_ASSIGN_OR_RETURN(const SiltCosts costs,
                          PredictSiltIndex({.entries = static_cast<double>(question.entries),
                                            .partition_bits = options.partition_bits,
                                            .bucket_bits = options.bucket_bits,
                                            .hash_store_share = ShareOf(options)},
                                           StrategyParticulars(options, question.limited_memory)));
  IndexPlan plan;
  plan.least_memory_bytes = kLeastMemory;
  plan.memory_bytes = costs.peak_memory_bytes();
  plan.flash_bytes = costs.updates.flash_bytes;
  plan.costs = IndexCosts{.write_amplification = costs.growth.write_amplification,
                          .written_bytes_per_put = costs.growth.written_bytes_per_put,
                          .written_bytes_per_update = costs.updates.written_bytes_per_put,
                          .reads_per_hit = costs.growth.average_hit_reads,
                          .reads_per_miss = costs.growth.read_amplification,
                          .component_stores = costs.growth.hash_stores *
                                              static_cast<double>(1U << options.partition_bits)};
  return plan;
}

// Chooses partition_bits and bucket_bits (plan_shape.h).
Result<EngineParameters> Choose(const IndexChoiceQuestion& question) {
  const SiltIndexOptions options = SiltOptionsOf(question.parameters);
  const auto chosen = [&](const EngineParameterSpec& spec) -> std::optional<unsigned> {
    const auto is_it = [&](const EngineParameter& given) { return given.name == spec.name; };
    if (std::ranges::none_of(question.parameters, is_it)) return std::nullopt;
    return static_cast<unsigned>(ValueOf(spec, question.parameters));
  };
  const SiltShapeQuestion shape_question{.entries = question.entries,
                                         .memory_limit = question.memory_limit,
                                         .hash_store_share = ShareOf(options),
                                         .partition_bits = chosen(kPartitionBits),
                                         .bucket_bits = chosen(kBucketBits)};
  SILTFS_ASSIGN_OR_RETURN(
      const SiltShape shape,
      ChooseSiltShape(shape_question, StrategyParticulars(options, /*sorted_filters=*/true)));
  EngineParameters parameters = question.parameters;
  if (!shape_question.partition_bits)
    parameters.push_back({std::string(kPartitionBits.name), shape.partition_bits});
  if (!shape_question.bucket_bits)
    parameters.push_back({std::string(kBucketBits.name), shape.bucket_bits});
  return parameters;
}

}  // namespace

constinit const IndexEngineRow kSiltIndexEngine = {.number = IndexEngine::kSilt,
                                                   .name = kSiltEngineName,
                                                   .remark = "",
                                                   .parameters = kParameters,
                                                   .open = Open,
                                                   .plan = Plan,
                                                   .choose = Choose};

}  // namespace siltfs
