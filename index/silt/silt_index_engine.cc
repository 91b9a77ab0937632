// SILT's row in the table of engines.
#include "index/silt/cuckoo_place.h"
#include "index/silt/plan.h"
#include "index/silt/silt_index.h"

namespace siltfs {
namespace {

// Bits per key of a SortedStore's trie, which is of the sparse kind (plan.h).
constexpr double kSparseTrieBits = 0.3;
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
constexpr EngineParameterSpec kParameters[] = {kPartitionBits, kBucketBits, kNamedSlots, kTries};

SiltIndexOptions OptionsOf(const EngineParameters& parameters) {
  SiltIndexOptions options;
  options.partition_bits = static_cast<unsigned>(ValueOf(kPartitionBits, parameters));
  options.bucket_bits = static_cast<unsigned>(ValueOf(kBucketBits, parameters));
  if (ValueOf(kNamedSlots, parameters) != 0) {
    options.layout = SlotLayout::Named(SlotLayout::kLeastBits);
  }
  options.page_index =
      ValueOf(kTries, parameters) != 0 ? PageIndexKind::kTrie : PageIndexKind::kBounds;
  return options;
}

Result<std::unique_ptr<ChunkIndex>> Open(Env& env, const IndexOptions& options) {
  SiltIndexOptions silt = OptionsOf(options.parameters);
  silt.directory = options.directory;
  silt.read_only = options.read_only;
  silt.memory_limit = options.memory_limit;
  silt.background = options.background;
  silt.synchronous = options.synchronous;
  silt.background_bytes_per_second = options.background_bytes_per_second;
  return OpenSiltIndex(env, silt);
}

// Applies the paper's model (plan.h) to an index with these parameters.
Result<IndexPlan> Plan(const IndexPlanQuestion& question) {
  const SiltIndexOptions options = OptionsOf(question.parameters);
  const unsigned partitions = 1U << options.partition_bits;
  const auto entries = static_cast<double>(question.entries);
  SiltParticulars particulars;
  particulars.sorted_bits_per_key = kSparseTrieBits;
  // A partition is merged when its HashStores hold twice their average share of entries.
  SILTFS_ASSIGN_OR_RETURN(
      const SiltPrediction predicted,
      PredictSilt({.entries = entries}, {.flash_bytes = 1e15},
                  {.merge_entries = 2 * options.hash_store_share * entries / partitions,
                   .tag_bits = kTagBits,
                   .bucket_bits = options.bucket_bits,
                   .instances = partitions},
                  particulars));
  IndexPlan plan;
  plan.least_memory_bytes = kLeastMemory;
  plan.memory_bytes = predicted.peak_memory_bytes;
  plan.costs = IndexCosts{.write_amplification = predicted.write_amplification,
                          .reads_per_hit = predicted.average_hit_reads,
                          .reads_per_miss = predicted.read_amplification,
                          .component_stores = predicted.hash_stores * partitions};
  return plan;
}

}  // namespace

constinit const IndexEngineRow kSiltIndexEngine = {.number = IndexEngine::kSilt,
                                                   .name = kSiltEngineName,
                                                   .remark = "",
                                                   .parameters = kParameters,
                                                   .open = Open,
                                                   .plan = Plan};

}  // namespace siltfs
