// Super-features agree with a plain computation from all windows, never change, and are in common
// as often as the resemblance of two chunks says.
#include "chunker/resemblance.h"

#include <algorithm>
#include <cmath>

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "tests/chunker/reference.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

Resemblance Make(const ResemblanceShape& shape = {}) {
  auto tables = ChunkerTables::Create(TestParameters(2048, 8192, 65536));
  REQUIRE_OK(tables);
  auto made = Resemblance::Create(*tables, shape);
  REQUIRE_OK(made);
  return *made;
}

std::vector<uint64_t> FeaturesOf(const Resemblance& resemblance, ByteView chunk) {
  std::vector<uint64_t> features(resemblance.shape().super_features);
  if (!resemblance.FeaturesOf(chunk, features)) features.clear();
  return features;
}

// splitmix64, whose i-th output the maps use.
uint64_t SplitMix(uint64_t i) {
  uint64_t x = (i + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

// The definition, one window after the other.
std::vector<uint64_t> Reference(ByteView chunk, const ResemblanceShape& shape) {
  std::vector<uint64_t> sample;
  for (size_t i = 0; i + kWindowSize <= chunk.size(); ++i) {
    const uint64_t fingerprint =
        ReferenceFingerprint(chunk.subspan(i, kWindowSize), TestPolynomial().value());
    if (fingerprint % 32 == 1) sample.push_back(fingerprint);
  }
  std::vector<uint64_t> features;
  for (unsigned super = 0; super < shape.super_features && !sample.empty(); ++super) {
    Encoder out;
    for (unsigned i = 0; i < shape.features; ++i) {
      uint64_t greatest = 0;
      for (const uint64_t fingerprint : sample) {
        const uint64_t number = 2 * (8 * super + i);
        greatest = std::max(greatest, fingerprint * (SplitMix(number) | 1) + SplitMix(number + 1));
      }
      out.U64(greatest);
    }
    features.push_back(Checksum(out.view(), super + 1));
  }
  return features;
}

}  // namespace

TEST_CASE("super-features agree with the definition for chunks of any length") {
  const ResemblanceShape shape = GENERATE(ResemblanceShape{}, ResemblanceShape{1, 1},
                                          ResemblanceShape{10, 8}, ResemblanceShape{10, 2});
  const Resemblance resemblance = Make(shape);
  for (const size_t size : {0U, 1U, 63U, 64U, 65U, 66U, 67U, 68U, 100U, 300U, 2048U, 9001U}) {
    const Bytes chunk = RandomBytes(size + 1, size);
    INFO(size << " bytes");
    CHECK(FeaturesOf(resemblance, chunk) == Reference(chunk, shape));
  }
}

TEST_CASE("a large sample is examined whole") {
  // The chunk repeats a short string with a window of the sample, some 3000 times.
  const ResemblanceShape shape{};
  Random random(3);
  Bytes chunk;
  for (int i = 0; chunk.empty(); ++i) {
    Bytes period(68);
    random.Fill(period);
    for (int repeat = 0; repeat < 2; ++repeat)
      chunk.insert(chunk.end(), period.begin(), period.end());
    if (Reference(chunk, shape).empty()) chunk.clear();
  }
  const Bytes period(chunk.begin(), chunk.begin() + 68);
  while (chunk.size() < 200'000) chunk.insert(chunk.end(), period.begin(), period.end());
  const Bytes tail = RandomBytes(9, 5000);
  chunk.insert(chunk.end(), tail.begin(), tail.end());
  CHECK(FeaturesOf(Make(shape), chunk) == Reference(chunk, shape));
}

TEST_CASE("super-features never change") {
  const Resemblance resemblance = Make({.super_features = 3, .features = 4});
  CHECK(FeaturesOf(resemblance, RandomBytes(2024, 8192)) ==
        std::vector<uint64_t>{0xd7af980675e02f34, 0xbf7330ddfeba77ba, 0xe50e53da521fe75b});
  CHECK(FeaturesOf(resemblance, RandomBytes(2025, 65536)) ==
        std::vector<uint64_t>{0x4149a9a92003b0c9, 0x7a49e82d5d4e417d, 0xcfa7d9bd0f3130a0});
}

TEST_CASE("more super-features do not change the first ones") {
  const Bytes chunk = RandomBytes(7, 8192);
  const auto three = FeaturesOf(Make(), chunk);
  const auto ten = FeaturesOf(Make({.super_features = 10}), chunk);
  REQUIRE(ten.size() == 10);
  CHECK(std::equal(three.begin(), three.end(), ten.begin()));
  CHECK(std::ranges::count(ten, ten[0]) == 1);
}

TEST_CASE("chunks without a sample have no super-features") {
  const Resemblance resemblance = Make();
  std::vector<uint64_t> features = {5, 6, 7};
  CHECK_FALSE(resemblance.FeaturesOf(Bytes(63, 1), features));
  CHECK_FALSE(resemblance.FeaturesOf(Bytes(65536, 0), features));
  CHECK_FALSE(resemblance.FeaturesOf({}, features));
  CHECK(features == std::vector<uint64_t>{5, 6, 7});
}

TEST_CASE("shapes out of range are refused") {
  auto tables = ChunkerTables::Create(TestParameters(2048, 8192, 65536));
  REQUIRE_OK(tables);
  for (const ResemblanceShape shape : {ResemblanceShape{0, 4}, ResemblanceShape{11, 4},
                                       ResemblanceShape{3, 0}, ResemblanceShape{3, 9}}) {
    REQUIRE_CODE(Resemblance::Create(*tables, shape), kInvalidArgument);
  }
}

TEST_CASE("chunks share a super-feature as often as their resemblance says") {
  // One range of the second chunk is new, also in another place, so r = 1 - share / (1 + share).
  const double share = GENERATE(0.02, 0.1, 0.3);
  const unsigned features = GENERATE(1U, 2U, 4U);
  const Resemblance resemblance = Make({.super_features = 3, .features = features});
  constexpr int kChunks = 400;
  int pairs = 0;
  for (int i = 0; i < kChunks; ++i) {
    const Bytes old = RandomBytes(static_cast<uint64_t>(i) + 1000, 16384);
    Bytes changed = old;
    Random random(static_cast<uint64_t>(i));
    const auto length = static_cast<size_t>(share * static_cast<double>(old.size()));
    const size_t at = random.Below(old.size() - length);
    random.Fill(MutableByteView(changed).subspan(at, length));
    changed.insert(changed.begin(), 3, 9);  // all places move
    const auto a = FeaturesOf(resemblance, old);
    const auto b = FeaturesOf(resemblance, changed);
    bool same = false;
    for (size_t super = 0; super < a.size(); ++super) same = same || a[super] == b[super];
    pairs += same ? 1 : 0;
  }
  const double r = (1 - share) / (1 + share);
  const double expected = 1 - std::pow(1 - std::pow(r, features), 3);
  INFO("resemblance " << r << ", expected " << expected);
  CHECK(static_cast<double>(pairs) / kChunks == Approx(expected).margin(0.08));
}

}  // namespace siltfs::testing
