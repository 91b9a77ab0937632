// The parts of SliceHash and the order of a batch's lookups, as pure computations.
#include <algorithm>
#include <numeric>
#include <set>

#include "index/flash/channel_order.h"
#include "index/slice_hash/slice_placement.h"
#include "index/slice_hash/slice_shape.h"
#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

FlashEntry RandomEntry(Random& random) {
  return {.hash = random.Next() | 1, .location = {.segment = 1, .ordinal = 2, .block_offset = 3}};
}

// REQUIREs that each entry is in one of its buckets, and that no bucket has more than `slots`.
// Returns the share of the entries that are in their first bucket.
double CheckPlaced(const SlicePlacement& placement, uint32_t buckets, uint32_t slots) {
  std::vector<bool> seen(placement.entries().size());
  uint64_t first = 0;
  for (uint32_t bucket = 0; bucket < buckets; ++bucket) {
    REQUIRE(placement.Members(bucket).size() <= slots);
    for (const uint32_t number : placement.Members(bucket)) {
      REQUIRE_FALSE(seen[number]);
      seen[number] = true;
      const auto both =
          EntryTable::Shape{.buckets = buckets}.BucketsOf(placement.entries()[number].hash);
      REQUIRE((both[0] == bucket || both[1] == bucket));
      if (both[0] == bucket) ++first;
    }
  }
  REQUIRE(std::ranges::count(seen, true) == static_cast<ptrdiff_t>(seen.size()));
  return static_cast<double>(first) / static_cast<double>(seen.size());
}

}  // namespace

TEST_CASE("Each slice of a slicetable has slots of its own, and enough of them") {
  for (const size_t record : {20U, 33U, 64U}) {
    for (const uint32_t most : {1U, 3U, 16U, 32U, 48U, 63U}) {
      for (const uint32_t buckets : {1U, 2U, 4U, 64U, 1024U}) {
        const SliceShape shape{
            .layout = RecordLayout(record), .buckets = buckets, .most_incarnations = most};
        for (uint32_t i = 1; i <= most; ++i) {
          INFO(record << " " << most << " " << buckets << " " << i);
          REQUIRE(shape.SlotsOfSlice(i) >= i * shape.ways());
          std::set<std::pair<uint32_t, uint32_t>> slots;
          for (uint32_t b = 0; b < buckets; ++b) {
            const uint32_t first = shape.FirstSlot(i, b);
            REQUIRE(shape.PageOf(i, b) < shape.Pages(i));
            REQUIRE(first + shape.SlotsOfSlice(i) <= shape.layout.per_page());
            REQUIRE(first % shape.SlotsOfSlice(i) == 0);
            REQUIRE(slots.emplace(shape.PageOf(i, b), first).second);
          }
        }
        REQUIRE(shape.SlicesPerPage(most) >= 1);
      }
    }
  }
}

TEST_CASE("Slicetables have the ways of the paper's numbers of incarnations") {
  const auto ways = [](uint32_t incarnations) {
    return SliceShape{.layout = RecordLayout(), .most_incarnations = incarnations}.ways();
  };
  CHECK(ways(16) == 12);
  CHECK(ways(32) == 6);
  CHECK(ways(48) == 4);
  CHECK(ways(64) == 3);
}

TEST_CASE("Nearly all entries of a full slicetable are placed in their first bucket") {
  for (const uint32_t slots : {60U, 102U, 192U}) {
    Random random(slots);
    SlicePlacement placement(256);
    for (uint64_t i = 0; i < 256 * slots * 99 / 100; ++i) placement.Add(RandomEntry(random));
    REQUIRE(placement.Place(slots));
    CHECK(CheckPlaced(placement, 256, slots) > 0.93);
    REQUIRE(placement.Place(slots + 20));
    CHECK(CheckPlaced(placement, 256, slots + 20) > 0.97);
  }
}

TEST_CASE("A placement is found whenever there is one") {
  // A cuckoo table that took the entries is a placement.
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const auto buckets = static_cast<uint32_t>(1 + random.Below(12));
    const auto ways = static_cast<uint32_t>(1 + random.Below(4));
    EntryTable table({.buckets = buckets, .ways = ways});
    SlicePlacement placement(buckets);
    for (int refused = 0; refused < 30;) {
      const FlashEntry entry = RandomEntry(random);
      if (table.Insert(entry)) {
        placement.Add(entry);
      } else {
        ++refused;
      }
    }
    INFO(buckets << " buckets, " << ways << " ways, " << table.size() << " entries");
    REQUIRE(placement.Place(ways));
    CheckPlaced(placement, buckets, ways);
  }
}

TEST_CASE("A placement is refused if there is none") {
  SlicePlacement placement(4);
  Random random(1);
  // Three entries with the same two buckets have room, five have none in two slots each.
  const EntryTable::Shape shape{.buckets = 4};
  for (int same = 0; same < 5;) {
    const FlashEntry entry = RandomEntry(random);
    if (shape.BucketsOf(entry.hash) != std::array<uint32_t, 2>{1, 2}) continue;
    placement.Add(entry);
    ++same;
    REQUIRE(placement.Place(2) == (same <= 4));
  }
  REQUIRE(placement.Place(3));
  CHECK_FALSE(placement.Place(1));
}

TEST_CASE("Each pass over the lookups of a batch takes at most one of each channel") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const auto channels = static_cast<uint32_t>(1 + random.Below(40));
    std::vector<uint32_t> requests;
    for (uint64_t i = random.Below(300); i-- > 0;) {
      const uint64_t skewed = random.OneIn(3) ? 0 : random.Below(channels);
      requests.push_back(random.OneIn(10) ? kNoChannel : static_cast<uint32_t>(skewed));
    }
    const std::vector<uint32_t> order = SpreadOverChannels(requests, channels);
    REQUIRE(order.size() == requests.size());
    std::vector<uint32_t> sorted = order;
    std::ranges::sort(sorted);
    std::vector<uint32_t> all(requests.size());
    std::iota(all.begin(), all.end(), 0);
    REQUIRE(sorted == all);
    // The depth of a request's channel is the pass that took it; passes follow one another.
    std::vector<uint32_t> depth(channels);
    std::vector<int64_t> last(channels, -1);
    uint32_t pass = 0;
    for (const uint32_t number : order) {
      const uint32_t channel = requests[number];
      if (channel == kNoChannel) {
        REQUIRE(pass == 0);
        continue;
      }
      REQUIRE(++depth[channel] >= pass);
      pass = depth[channel];
      REQUIRE(last[channel] < int64_t{number});
      last[channel] = number;
    }
  }
}

TEST_CASE("Lookups that come channel by channel are spread over all channels") {
  // The paper's workload Ordered (section 7.3) with K = 16.
  std::vector<uint32_t> requests;
  for (uint32_t i = 0; i < 512; ++i) requests.push_back(i / 16);
  const auto order = SpreadOverChannels(requests, 32);
  for (size_t i = 0; i < order.size(); ++i) CHECK(requests[order[i]] == i % 32);
}

}  // namespace siltfs::testing
