// The choice of an index's partitions and tables for an expected number of entries.
#include "index/silt/plan_shape.h"

#include "index/engines.h"
#include "index/silt/memory_plan.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kShare = 0.145;

Result<SiltShape> Choose(uint64_t entries, double mebibytes) {
  return ChooseSiltShape({.entries = entries,
                          .memory_limit = static_cast<uint64_t>(mebibytes * kMiB),
                          .hash_store_share = kShare},
                         {});
}

SiltCosts CostsOf(const SiltShape& shape) {
  const auto costs = PredictSiltIndex(shape, {});
  REQUIRE_OK(costs);
  return *costs;
}

TEST_CASE("a chosen shape keeps to the memory and to 1.01 reads, and none needs fewer reads") {
  struct Case {
    uint64_t entries;
    double mebibytes;
  };
  for (const Case& c : {Case{1, 3}, Case{100'000, 4}, Case{1'000'000, 44}, Case{10'000'000, 8},
                        Case{10'000'000, 47}, Case{10'000'000, 49}, Case{100'000'000, 44},
                        Case{100'000'000, 60}, Case{100'000'000, 200}, Case{1'000'000'000, 480}}) {
    INFO(c.entries << " entries, " << c.mebibytes << " MiB");
    const auto shape = Choose(c.entries, c.mebibytes);
    REQUIRE_OK(shape);
    const SiltCosts chosen = CostsOf(*shape);
    CHECK(chosen.growth.read_amplification <= 1.01);
    CHECK(chosen.updates.read_amplification <= 1.01);
    CHECK(chosen.peak_memory_bytes() <= c.mebibytes * kMiB);
    // The index keeps the tables of this size under this limit.
    const auto limit = static_cast<uint64_t>(c.mebibytes * kMiB);
    CHECK(PlanMemory(limit, {}, shape->bucket_bits, shape->partition_bits).bucket_bits ==
          shape->bucket_bits);
    const auto entries = static_cast<double>(c.entries);
    const double reads = ExtraReads(chosen, entries, c.mebibytes * kMiB);
    for (unsigned p = 0; p <= 12; ++p) {
      for (unsigned b = 8; b <= 15; ++b) {
        const SiltShape other{
            .entries = entries, .partition_bits = p, .bucket_bits = b, .hash_store_share = kShare};
        const SiltCosts costs = CostsOf(other);
        const bool fits = costs.peak_memory_bytes() <= c.mebibytes * kMiB &&
                          PlanMemory(limit, {}, b, p).bucket_bits == b &&
                          costs.updates.read_amplification <= 1.01 &&
                          costs.growth.read_amplification <= 1.01;
        if (fits) REQUIRE(ExtraReads(costs, entries, c.mebibytes * kMiB) >= reads);
      }
    }
  }
}

TEST_CASE("spare memory holds slices of filters, each of which halves the reads of absent names") {
  const SiltCosts costs =
      CostsOf({.entries = 1e8, .partition_bits = 6, .bucket_bits = 11, .hash_store_share = kShare});
  const double slice = 1e8 * 1.11 / 8;
  const double peak = costs.peak_memory_bytes();
  const double hash_stores = costs.updates.read_amplification + costs.growth.average_hit_reads - 2;
  CHECK(ExtraReads(costs, 1e8, peak) == Approx(hash_stores + 1));
  CHECK(ExtraReads(costs, 1e8, peak + slice) == Approx(hash_stores + 0.5));
  CHECK(ExtraReads(costs, 1e8, peak + 1.5 * slice) == Approx(hash_stores + 0.375));
  CHECK(ExtraReads(costs, 1e8, peak + 100 * slice) == Approx(hash_stores + 1.0 / 256));
}

TEST_CASE("a limit that is too low is refused with the least memory that suffices") {
  const auto refused = Choose(100'000'000, 10);
  REQUIRE_CODE(refused, kUnsupported);
  CHECK(refused.status().cause().starts_with("the index of 100000000 chunks needs at least "));
  const std::string cause(refused.status().cause());
  const double least = std::stod(cause.substr(cause.find("least ") + 6));  // MiB
  INFO(cause);
  REQUIRE_OK(Choose(100'000'000, least + 0.1));
  REQUIRE_CODE(Choose(100'000'000, least - 0.1), kUnsupported);
}

TEST_CASE("parameters that were given are kept") {
  const IndexEngineRow& row = *FindIndexEngine(IndexEngine::kSilt);
  const auto chosen = row.choose({.entries = 50'000'000,
                                  .memory_limit = 64 << 20,
                                  .parameters = {{"tries", 1}, {"bucket_bits", 13}}});
  REQUIRE_OK(chosen);
  REQUIRE(chosen->size() == 3);
  CHECK((*chosen)[0] == EngineParameter{"tries", 1});
  CHECK((*chosen)[1] == EngineParameter{"bucket_bits", 13});
  CHECK((*chosen)[2].name == "partition_bits");
  REQUIRE_OK(CheckIndexChoice(IndexEngine::kSilt, *chosen));
}

}  // namespace
}  // namespace siltfs
