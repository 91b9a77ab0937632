// Compares the model's predictions with what an index counts. The index does all work within Put,
// so every run gives the same figures.
#include <cmath>

#include "index/silt/plan_strategy.h"
#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kNames = 200'000;
constexpr uint64_t kBatch = 1000;
constexpr double kTolerance = 0.1;

struct Measured : SiltFixture {
  explicit Measured(const SiltStrategy& strategy) : particulars(ParticularsOf(strategy)) {
    options.partition_bits = 3;
    options.bucket_bits = 7;
    options.hash_store_share = 0.145;
    if (strategy.named_slots) options.layout = SlotLayout::Named(SlotLayout::kLeastBits);
    options.page_index = strategy.tries ? PageIndexKind::kTrie : PageIndexKind::kBounds;
    options.sorted_runs = strategy.sorted_runs;
    index = Open();
  }
  SiltCosts Predict(uint64_t entries) const {
    auto costs = PredictSiltIndex({.entries = static_cast<double>(entries),
                                   .partition_bits = options.partition_bits,
                                   .bucket_bits = options.bucket_bits,
                                   .hash_store_share = *options.hash_store_share},
                                  particulars);
    REQUIRE_OK(costs);
    return *costs;
  }
  // Bytes written by puts of the numbers from `first` on.
  double Put(uint64_t first, uint64_t count) {
    const uint64_t before = index->stats().flash_bytes_written;
    for (uint64_t i = first; i < first + count; i += kBatch) {
      ++sequence;
      PutNumbers(*index, i, kBatch, sequence, static_cast<uint32_t>(sequence));
    }
    return static_cast<double>(index->stats().flash_bytes_written - before);
  }

  SiltParticulars particulars;
  std::unique_ptr<ChunkIndex> index;
  uint64_t sequence = 0;
};

void RequireNear(double predicted, double measured) {
  INFO("predicted " << predicted << ", measured " << measured << ", "
                    << (predicted / measured - 1) * 100 << " %");
  REQUIRE(std::abs(predicted - measured) <= kTolerance * measured);
}

// The strategies that an index can have.
SiltStrategy GenerateStrategy() {
  const char* const name = GENERATE("hashed+bounds", "paper", "hashed+tries", "runs+bounds");
  const auto strategy = FindSiltStrategy(name);
  REQUIRE_OK(strategy);
  return *strategy;
}

TEST_CASE("an index that grows writes as many bytes for each put as predicted") {
  const SiltStrategy strategy = GenerateStrategy();
  INFO(strategy.name);
  Measured measured(strategy);
  uint64_t put = 0;
  double bytes = 0;
  for (const uint64_t until : {50'000U, 100'000U, 150'000U, 200'000U}) {
    bytes += measured.Put(put, until - put);
    put = until;
    INFO(put << " entries");
    RequireNear(measured.Predict(put).growth.written_bytes_per_put,
                bytes / static_cast<double>(put));
  }
}

TEST_CASE("an index of constant size writes as many bytes for each update as predicted") {
  const SiltStrategy strategy = GenerateStrategy();
  INFO(strategy.name);
  Measured measured(strategy);
  measured.Put(0, kNames);
  measured.Put(0, kNames / 2);  // until the merges are those of updates
  const double bytes = measured.Put(kNames / 2, kNames / 2) + measured.Put(0, kNames / 2);
  RequireNear(measured.Predict(kNames).updates.written_bytes_per_put,
              bytes / static_cast<double>(kNames));
}

TEST_CASE("filters and indexes take the predicted memory") {
  const SiltStrategy strategy = GenerateStrategy();
  INFO(strategy.name);
  Measured measured(strategy);
  double filters = 0;
  double predicted_filters = 0;
  measured.Put(0, kNames / 2);
  for (uint64_t put = kNames / 2; put < kNames; put += kBatch) {
    measured.Put(put, kBatch);
    filters += static_cast<double>(
        MemoryOf(measured.index->stats(), strategy.sorted_runs ? "run_store" : "hash_store"));
    predicted_filters += measured.Predict(put + kBatch).growth.hash_filter_bytes;
  }
  RequireNear(predicted_filters, filters);
  // A trie of a store as small as these takes more for each key than a large one.
  if (strategy.tries) return;
  // The model counts all entries; those in LogStores and HashStores are in no SortedStore yet.
  const IndexStats stats = measured.index->stats();
  double sorted = 0;
  for (const auto& store : stats.stores) {
    sorted += store.kind == "sorted_store" ? static_cast<double>(store.entries) : 0;
  }
  RequireNear(measured.Predict(kNames).growth.sorted_index_bytes * sorted / kNames,
              static_cast<double>(MemoryOf(stats, "sorted_store")));
}

}  // namespace
}  // namespace siltfs::testing
