// When HashStores are merged, and how large new LogStores are.
#include "index/silt/merge_policy.h"

#include <catch2/catch.hpp>

#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kEntries = 100'000'000;

constexpr IndexSizes kSizes{
    .entries = kEntries, .page_index_bytes = 600'000, .stores = 1100, .hash_stores = 16};

MemoryPlan PlanWith(uint64_t index_bytes) {
  MemoryPlan plan;
  plan.index_bytes = index_bytes;
  return plan;
}

double ShareUnder(uint64_t index_bytes, const SiltIndexOptions& options) {
  return HashStoreShare(options, kChunkSlots, PlanWith(index_bytes), kSizes);
}

bool FiltersUnder(uint64_t index_bytes, const SiltIndexOptions& options) {
  return HasRoomForSortedFilters(options, kChunkSlots, PlanWith(index_bytes), kSizes);
}

}  // namespace

TEST_CASE("the share of HashStores is the one at which a put writes the given bytes") {
  for (const bool filters : {false, true}) {
    for (const SlotLayout layout : {SlotLayout::Hashed(), SlotLayout::Named(5)}) {
      const EntryCosts costs = CostsOf(layout, filters);
      for (const double bytes : {130.0, 165.0, 320.0}) {
        const double share = ShareFor(costs, bytes);
        CHECK(BytesPerPut(costs, share) == Approx(bytes));
      }
      CHECK(ShareFor(costs, 1) == kMostHashStoreShare);  // no share is large enough
    }
  }
  // Larger slots leave a larger share in HashStores, whose filters take memory.
  CHECK(ShareFor(CostsOf(SlotLayout::Hashed(), false), kBytesPerPutOfHashStores) < 0.08);
  CHECK(ShareFor(CostsOf(SlotLayout::Named(5), false), kBytesPerPutOfHashStores) > 0.13);
}

TEST_CASE("with less memory merges come earlier, until a put writes the most bytes") {
  SiltIndexOptions options;
  options.sorted_runs = GENERATE(true, false);
  const EntryCosts costs = CostsOf(options, kChunkSlots, false, kSizes.hash_stores);
  const double bytes_per_put = options.sorted_runs ? kBytesPerPutOfRuns : kBytesPerPutOfHashStores;
  const double wanted = ShareFor(costs, bytes_per_put);
  const double least = ShareFor(costs, options.most_bytes_per_put);
  REQUIRE(least < wanted / 1.8);
  // With filters of SortedStores, merges write more, and a share must be larger.
  CHECK(ShareUnder(64U << 20, options) ==
        ShareFor(CostsOf(options, kChunkSlots, true, kSizes.hash_stores), bytes_per_put));
  double last = 1;
  bool between = false;
  for (uint64_t bytes = 24U << 20; bytes > 0; bytes -= 1U << 20) {
    const double share = ShareUnder(bytes, options);
    REQUIRE(share <= last);
    REQUIRE(share >= least);
    if (share > least) {
      // The filters of this share fit, and so do those of the partition that is being merged.
      const double filters = share * static_cast<double>(kEntries) * costs.filter_memory;
      REQUIRE(filters + 600'000 + 1100 * 1024 <= static_cast<double>(bytes));
      between = between || share < wanted;
    }
    last = share;
  }
  CHECK(between);
  CHECK(ShareUnder(0, options) == least);
  CHECK(ShareUnder(kNoMemoryLimit, options) == wanted);
}

TEST_CASE("merges write filters of SortedStores only if HashStores leave memory for them") {
  SiltIndexOptions options;
  options.sorted_runs = GENERATE(true, false);
  CHECK(FiltersUnder(64U << 20, options));
  CHECK_FALSE(FiltersUnder(kNoMemoryLimit, options));
  CHECK_FALSE(FiltersUnder(0, options));
  const double wanted = ShareUnder(kNoMemoryLimit, options);
  for (uint64_t bytes = 64U << 20; bytes > 0; bytes -= 1U << 20) {
    // The bytes that a filter adds to merges are never paid with a smaller share.
    CHECK(FiltersUnder(bytes, options) == (ShareUnder(bytes, options) > wanted));
  }
  options.sorted_filters = true;
  CHECK(FiltersUnder(0, options));
  options.sorted_filters = false;
  CHECK_FALSE(FiltersUnder(64U << 20, options));
}

TEST_CASE("a share that is set holds as long as its filters fit") {
  SiltIndexOptions options;
  options.hash_store_share = 0.06;
  CHECK(ShareUnder(64U << 20, options) == 0.06);
  CHECK(ShareUnder(8U << 20, options) < 0.06);
}

TEST_CASE("new LogStores are so large that a partition has at most 38 HashStores on average") {
  for (const uint64_t entries : {uint64_t{1'000}, kEntries, 10 * kEntries, 30 * kEntries}) {
    const unsigned bits = BucketBitsFor(entries, 6, 0.077, 11);
    const double stores = 0.077 * static_cast<double>(entries) / 64 /
                          (0.95 * static_cast<double>(kBucketWays << bits));
    CHECK(stores <= 38);
    if (bits > 11) CHECK(2 * stores > 38);  // no larger than needed
  }
  CHECK(BucketBitsFor(kEntries, 6, 0.077, 11) == 11);
  CHECK(BucketBitsFor(10 * kEntries, 6, 0.077, 11) == 14);
  CHECK(BucketBitsFor(kEntries * 1000, 6, 0.077, 11) == kMaxBucketBits);
}

TEST_CASE("LogStores grow with the index, and are full when they are frozen") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 3;
  fixture.options.write_batch_pages = 1;
  fixture.options.hash_store_share = std::nullopt;
  fixture.options.memory_limit = GENERATE(kNoMemoryLimit, uint64_t{64} << 20);
  auto index = fixture.Open();
  for (uint64_t part = 0; part < 300; ++part) PutNumbers(*index, part * 500, 500, part + 1);
  const IndexStats stats = index->stats();
  uint64_t stores = 0;
  for (const auto& store : stats.stores) {
    if (store.kind != "hash_store") continue;
    ++stores;
    CHECK(store.occupancy > 0.85);
  }
  // With tables of the first size there would be 350.
  CHECK(stores > 2);
  CHECK(stores < 2 * 38);
  CheckNumbers(*index, 0, 1000);
  REQUIRE_OK(index->Close());
  index = fixture.Open();
  CheckNumbers(*index, 149'000, 1000);
}

TEST_CASE("an index under a tight limit keeps all filters by merging earlier") {
  // Fills an index and returns the most memory that filters of HashStores took.
  const auto peak_under = [](uint64_t limit) {
    SiltFixture fixture;
    fixture.options.bucket_bits = 6;
    fixture.options.hash_store_share = std::nullopt;
    fixture.options.sorted_filters = false;
    fixture.options.memory_limit = limit;
    auto index = fixture.Open();
    uint64_t peak = 0;
    for (uint64_t part = 0; part < 200; ++part) {
      PutNumbers(*index, part * 500, 500, part + 1);
      peak = std::max(peak, MemoryOf(index->stats(), "hash_store"));
    }
    for (const auto& store : index->stats().stores) {
      if (store.kind == "hash_store") CHECK(store.memory_bytes > 0);
    }
    CheckNumbers(*index, 0, 1000);
    return peak;
  };
  const uint64_t free = peak_under(kNoMemoryLimit);
  uint64_t limit = 1U << 20;
  const uint64_t room = free / 2 + 20 * kStoreBytes;  // a HashStore has 512 bytes of filter here
  SiltIndexOptions options;
  options.sorted_runs = false;  // as in SiltFixture
  while (PlanMemory(limit, options, 6, 0).index_bytes < room) limit += 512;
  const uint64_t tight = peak_under(limit);
  INFO(free << " without a limit, " << tight << " under the limit");
  CHECK(tight < free * 4 / 5);
  CHECK(tight > free / 4);
}

}  // namespace siltfs::testing
