#include "index/silt/trie_buckets.h"

#include <vector>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

using Start = TrieBuckets::Start;

// Makes starts with steps of at most `rank_step` keys and `bit_step` bits.
std::vector<Start> MakeStarts(size_t count, uint64_t rank_step, uint64_t bit_step) {
  Random random(count);
  std::vector<Start> starts(1);
  while (starts.size() < count) {
    const Start last = starts.back();
    starts.push_back({.rank = last.rank + static_cast<uint32_t>(random.Below(rank_step)),
                      .bit = last.bit + random.Below(bit_step)});
  }
  return starts;
}

TrieBuckets Make(const std::vector<Start>& starts) {
  TrieBuckets buckets;
  for (const Start& start : starts) buckets.Append(start);
  buckets.ShrinkToFit();
  return buckets;
}

std::string Encoded(const TrieBuckets& buckets) {
  Encoder out;
  buckets.Encode(out);
  return out.Take();
}

Result<TrieBuckets> Decoded(const std::string& bytes, uint64_t count, Start end) {
  Decoder in(AsBytes(bytes));
  return TrieBuckets::Decode(in, count, end);
}

}  // namespace

TEST_CASE("every bucket's start is kept, whether near its group's start or far from it") {
  const uint64_t rank_step = GENERATE(1, 300, 70'000);
  const uint64_t bit_step = GENERATE(1, 700, 70'000, 10'000'000'000);
  const size_t count = GENERATE(1, 31, 32, 33, 1000);
  const auto starts = MakeStarts(count, rank_step, bit_step);
  const TrieBuckets buckets = Make(starts);
  REQUIRE(buckets.size() == count);
  for (size_t i = 0; i < count; ++i) REQUIRE(buckets.At(i) == starts[i]);

  auto decoded = Decoded(Encoded(buckets), count, starts.back());
  REQUIRE_OK(decoded);
  for (size_t i = 0; i < count; ++i) REQUIRE(decoded->At(i) == starts[i]);
  CHECK(Encoded(*decoded) == Encoded(buckets));
}

TEST_CASE("distances of at most 16 bits are kept in 16 bits, larger ones are not") {
  for (const uint64_t distance : {uint64_t{65535}, uint64_t{65536}}) {
    const TrieBuckets by_bit = Make({{0, 0}, {1, distance}});
    CHECK(by_bit.At(1) == Start{1, distance});
    const TrieBuckets by_rank = Make({{0, 0}, {static_cast<uint32_t>(distance), 1}});
    CHECK(by_rank.At(1) == Start{static_cast<uint32_t>(distance), 1});
  }
  CHECK(Make({{0, 0}, {1, 65535}}).memory_bytes() < Make({{0, 0}, {1, 65536}}).memory_bytes());
}

TEST_CASE("a bucket of usual size takes 4.5 bytes") {
  const TrieBuckets buckets = Make(MakeStarts(32 * 100, 400, 1000));
  CHECK(buckets.memory_bytes() == 100 * (16 + 32 * 4));
}

TEST_CASE("starts that decrease or do not reach the end are damage") {
  const std::string good = Encoded(Make({{0, 0}, {5, 10}, {9, 20}}));
  REQUIRE_OK(Decoded(good, 3, {9, 20}));
  CHECK(Decoded(good, 3, {9, 21}).status().Is(StatusCode::kCorruption));
  CHECK(Decoded(good, 3, {8, 20}).status().Is(StatusCode::kCorruption));
  CHECK(Decoded(good, 4, {9, 20}).status().Is(StatusCode::kCorruption));
  CHECK(Decoded(good.substr(0, good.size() - 1), 3, {9, 20}).status().Is(StatusCode::kCorruption));
  CHECK(Decoded(good, UINT64_MAX, {9, 20}).status().Is(StatusCode::kCorruption));
  CHECK(Decoded(Encoded(Make({{0, 0}, {5, 10}, {4, 20}})), 3, {4, 20})
            .status()
            .Is(StatusCode::kCorruption));
  CHECK(Decoded(Encoded(Make({{1, 0}, {5, 10}})), 2, {5, 10}).status().Is(StatusCode::kCorruption));
}

}  // namespace siltfs
