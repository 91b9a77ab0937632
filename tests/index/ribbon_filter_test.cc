// The guarantees of a ribbon filter: it never rules out a key, and every slice halves the false
// positives.
#include "index/flash/ribbon_filter.h"

#include <algorithm>
#include <cmath>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Built {
  RibbonShape shape;
  std::vector<uint64_t> keys;
  RibbonFilter filter{RibbonShape{}};  // all slices
};

// Returns the hash of a random key; all keys share the first `skip_bits` bits.
uint64_t RandomHash(Random& random, unsigned skip_bits) {
  return skip_bits == 0 ? random.Next()
                        : random.Next() >> skip_bits | uint64_t{5} << (64 - skip_bits);
}

RibbonFilter Build(const RibbonShape& shape, std::vector<uint64_t> keys) {
  std::sort(keys.begin(), keys.end());
  std::vector<std::shared_ptr<RibbonSlice>> slices;
  for (unsigned i = 0; i < kRibbonSlices; ++i) {
    slices.push_back(std::make_shared<RibbonSlice>(shape.slice_words()));
  }
  RibbonBlock building(shape.block_words);
  size_t next = 0;
  for (uint32_t block = 0; block < shape.blocks; ++block) {
    for (; next < keys.size(); ++next) {
      const RibbonRow row = RibbonRow::Of(shape, keys[next]);
      REQUIRE(row.block >= block);
      REQUIRE(row.start + 64 <= shape.block_words * 64);
      if (row.block != block) break;
      building.Add(row.start, row.coefficients);
    }
    RibbonBlock::Solutions solutions;
    for (unsigned i = 0; i < kRibbonSlices; ++i) {
      solutions[i] =
          std::span(*slices[i]).subspan(size_t{block} * shape.block_words, shape.block_words);
    }
    building.Solve(block, solutions);
  }
  REQUIRE(next == keys.size());
  RibbonFilter filter(shape);
  for (auto& slice : slices) filter = filter.With(std::move(slice));
  return filter;
}

Built BuildRandom(uint64_t keys, uint64_t expected, unsigned skip_bits, uint64_t seed) {
  Random random(seed);
  Built built;
  built.shape = RibbonShape::For(expected, skip_bits);
  for (uint64_t i = 0; i < keys; ++i) built.keys.push_back(RandomHash(random, skip_bits));
  built.filter = Build(built.shape, built.keys);
  return built;
}

void CheckNoneDenied(const Built& built) {
  for (unsigned slices = 0; slices <= kRibbonSlices; ++slices) {
    const RibbonFilter filter = built.filter.WithFirst(slices);
    REQUIRE(filter.slices() == slices);
    REQUIRE(std::all_of(built.keys.begin(), built.keys.end(),
                        [&](uint64_t key) { return filter.MayContain(key); }));
  }
}

double ShareThatPasses(const RibbonFilter& filter, unsigned skip_bits, uint64_t tries) {
  Random random(77);
  uint64_t passed = 0;
  for (uint64_t i = 0; i < tries; ++i) passed += filter.MayContain(RandomHash(random, skip_bits));
  return static_cast<double>(passed) / static_cast<double>(tries);
}

}  // namespace

TEST_CASE("a ribbon filter denies none of its keys, for any number of keys and slices") {
  for (const unsigned skip_bits : {0U, 6U, 12U}) {
    for (const uint64_t keys : {1, 2, 63, 64, 65, 128, 1000, 7000, 7400, 30'000}) {
      INFO(keys << " keys, " << skip_bits << " bits in common");
      CheckNoneDenied(BuildRandom(keys, keys, skip_bits, keys + skip_bits));
    }
  }
}

TEST_CASE("each slice of a ribbon filter halves the false positives") {
  constexpr uint64_t kTries = 200'000;
  for (const uint64_t keys : {300, 20'000, 100'000}) {
    const Built built = BuildRandom(keys, keys, 6, 3);
    for (unsigned slices = 0; slices <= kRibbonSlices; ++slices) {
      const double expected = std::ldexp(1.0, -static_cast<int>(slices));
      const double deviation = std::sqrt(expected * (1 - expected) / kTries);
      const double passes = ShareThatPasses(built.filter.WithFirst(slices), 6, kTries);
      INFO(keys << " keys, " << slices << " slices: " << passes);
      CHECK(passes <= expected * 1.04 + 4 * deviation);
      CHECK(passes >= expected - 4 * deviation);
    }
  }
}

TEST_CASE("a slice takes 1.11 bits per key and an equation's width per block") {
  for (const uint64_t keys : {uint64_t{1'000}, uint64_t{1'560'000}, uint64_t{100'000'000}}) {
    const RibbonShape shape = RibbonShape::For(keys, 6);
    const double bits = 8.0 * static_cast<double>(shape.slice_bytes());
    CHECK(shape.block_words <= RibbonShape::kMostBlockWords);
    CHECK(bits >= 1.11 * static_cast<double>(keys));
    CHECK(bits <= 1.13 * static_cast<double>(keys) + 128.0 * shape.blocks);
  }
  CHECK(RibbonShape::For(0, 0).slice_words() > 0);
}

TEST_CASE("a ribbon filter with more keys than expected passes more names and denies no key") {
  const Built built = BuildRandom(40'000, 10'000, 0, 9);
  CheckNoneDenied(built);
}

TEST_CASE("a ribbon filter with fewer keys than expected is as good") {
  const Built built = BuildRandom(1000, 30'000, 0, 10);
  CheckNoneDenied(built);
  CHECK(ShareThatPasses(built.filter, 0, 100'000) < 0.006);
}

TEST_CASE("keys with equal or neighboring hashes are not denied") {
  Built built;
  built.shape = RibbonShape::For(5000, 0);
  for (uint64_t i = 0; i < 2500; ++i) built.keys.insert(built.keys.end(), {i, uint64_t{1} << 63});
  built.filter = Build(built.shape, built.keys);
  CheckNoneDenied(built);
}

}  // namespace siltfs::testing
