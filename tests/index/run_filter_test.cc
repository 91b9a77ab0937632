// The filter of a sorted run: how many absent names pass.
#include "index/silt/run_filter.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "index/flash/cuckoo_place.h"
#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("the filters of large runs pass as few absent names as those of small ones") {
  const unsigned bucket_bits = GENERATE(7U, 11U, 13U, kMaxBucketBits);
  const uint64_t keys = (kBucketWays << bucket_bits) * 95 / 100;
  constexpr unsigned kSlices = 11;
  constexpr uint64_t kAsked = 2'000'000;
  Random random(bucket_bits);
  std::vector<uint64_t> hashes(keys);
  for (uint64_t& hash : hashes) hash = random.Next();
  std::sort(hashes.begin(), hashes.end());
  const RunFilter filter = RunFilter::Of(hashes, 0, kSlices);
  CHECK(std::all_of(hashes.begin(), hashes.end(),
                    [&](uint64_t hash) { return filter.MayContain(hash); }));
  CHECK(filter.shape().blocks == 1);
  uint64_t passed = 0;
  for (uint64_t i = 0; i < kAsked; ++i) passed += filter.MayContain(random.Next()) ? 1 : 0;
  const double expected = std::exp2(-static_cast<double>(kSlices)) * kAsked;
  INFO(passed << " pass, expected are " << expected);
  CHECK(static_cast<double>(passed) < 1.08 * expected + 3 * std::sqrt(expected));
}

TEST_CASE("the filters of a partition's runs together pass the intended share of absent names") {
  for (const double runs : {0.0, 1.5, 3.0, 14.0, 17.6, 30.0, 38.0}) {
    for (const uint64_t keys : {500U, 7900U, 31'000U, 130'000U}) {
      const auto slices = RunFilterSlices::For(runs, keys);
      INFO(runs << " runs, " << keys << " keys: " << slices.share_of_more << " have " << slices.more
                << " slices, the others " << slices.fewer);
      CHECK(slices.fewer >= kLeastRunFilterSlices);
      CHECK(slices.more <= kMostRunFilterSlices);
      const double extra = (1 + runs) * slices.PassingShare();
      CHECK(extra <= kExtraReadsOfRuns * 1.000001);
      // The least number of slices may be more than is needed.
      if (slices.fewer < slices.more) CHECK(extra == Approx(kExtraReadsOfRuns));
      // More slices would take more memory.
      for (const unsigned some : {slices.fewer, slices.more}) {
        if (some == kMostRunFilterSlices) continue;
        CHECK(RunFilterMemory(RunFilterBytes(some + 1, keys)) >
              RunFilterMemory(RunFilterBytes(some, keys)));
      }
      constexpr uint64_t kRuns = 400;
      uint64_t more = 0;
      for (uint64_t run = 1000; run < 1000 + kRuns; ++run) more += slices.Of(run) == slices.more;
      CHECK(static_cast<double>(more) == Approx(slices.share_of_more * kRuns).margin(3));
    }
  }
  CHECK(RunFilterSlices::For(1e9, 7900).Of(1) == kMostRunFilterSlices);
  CHECK(RunFilterSlices::For(0, 500).Of(1) == kLeastRunFilterSlices);
}

TEST_CASE("a small change of the number of runs changes their memory little") {
  double last = 0;
  for (double runs = 0; runs < 60; runs += 0.25) {
    const double memory = RunFilterSlices::For(runs, 7900).MemoryBytes(7900);
    CHECK(memory >= last);
    if (runs > 0) CHECK(memory < last * 1.12);
    last = memory;
  }
}

TEST_CASE("a filter has the size that is computed for it, and every key passes") {
  for (const unsigned slices : {kLeastRunFilterSlices, 11U, kMostRunFilterSlices}) {
    for (const uint64_t keys : {1U, 500U, 7900U, 130'000U}) {
      Random random(keys);
      std::vector<uint64_t> hashes(keys);
      for (uint64_t& hash : hashes) hash = random.Next();
      std::sort(hashes.begin(), hashes.end());
      const RunFilter filter = RunFilter::Of(hashes, 0, slices);
      CHECK(filter.memory_bytes() == RunFilterBytes(slices, keys));
      for (const uint64_t hash : hashes) REQUIRE(filter.MayContain(hash));
    }
  }
}

}  // namespace siltfs::testing
