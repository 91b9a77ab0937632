// The cuckoo table (SILT, section 3.1): its occupancy, how a refused insertion is undone, false
// positives, and keys with the same two buckets.
#include "index/flash/cuckoo_table.h"

#include <map>
#include <set>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

bool Has(const CuckooTable& table, uint64_t hash, uint32_t value) {
  const auto candidates = table.Find(hash);
  return std::find(candidates.begin(), candidates.end(), value) != candidates.end();
}

// Fills the table until it refuses a hash. Returns all hashes; the last one is the refused one.
std::vector<uint64_t> Fill(CuckooTable& table, Random& random) {
  std::vector<uint64_t> hashes;
  do {
    hashes.push_back(random.Next());
  } while (table.Insert(hashes.back(), static_cast<uint32_t>(hashes.size())));
  return hashes;
}

}  // namespace

TEST_CASE("a table refuses no key below 93 % occupancy") {
  const unsigned bits = GENERATE(10, 12, 15);
  const uint64_t seed = GENERATE(range(1, 9));
  CuckooTable table(bits);
  Random random(seed);
  Fill(table, random);
  INFO("2^" << bits << " buckets, seed " << seed << ", occupancy " << table.occupancy());
  CHECK(table.occupancy() >= 0.93);
}

TEST_CASE("a refused key leaves the table as it was") {
  const unsigned bits = GENERATE(1, 3, 8, 12);
  CuckooTable table(bits);
  Random random(bits);
  Fill(table, random);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    const CuckooTable before = table;
    if (table.Insert(random.Next(), 0xffffffff)) continue;  // some keys still fit
    ++refused;
    REQUIRE(table == before);
  }
  CHECK(refused > 10);
}

TEST_CASE("every accepted key is found after any later moves") {
  const unsigned bits = GENERATE(1, 2, 5, 9, 14, 15);
  CuckooTable table(bits);
  Random random(bits + 100);
  const auto hashes = Fill(table, random);
  REQUIRE(table.size() == hashes.size() - 1);
  for (size_t i = 0; i + 1 < hashes.size(); ++i) {
    REQUIRE(Has(table, hashes[i], static_cast<uint32_t>(i + 1)));
  }
  std::vector<uint32_t> values;
  table.ForEachPlace([&](size_t, uint16_t, uint32_t value) { values.push_back(value); });
  table.ForEachStashed([&](const CuckooPlace&, uint32_t value) { values.push_back(value); });
  REQUIRE(values.size() == table.size());
  REQUIRE(std::set<uint32_t>(values.begin(), values.end()).size() == values.size());
}

TEST_CASE("candidates come newest first") {
  CuckooTable table(8);
  for (uint32_t value : {3U, 9U, 1U, 7U}) REQUIRE(table.Insert(42, value));
  const auto found = table.Find(42);
  REQUIRE(std::vector<uint32_t>(found.begin(), found.end()) == std::vector<uint32_t>{9, 7, 3, 1});
}

TEST_CASE("Replace changes the value of a key's entry in place") {
  CuckooTable table(4);
  Random random(5);
  auto hashes = Fill(table, random);
  hashes.pop_back();
  for (size_t i = 0; i < hashes.size(); ++i) {
    const auto value = static_cast<uint32_t>(i + 1);
    REQUIRE_FALSE(table.Replace(hashes[i], value + 5000, 1));
    REQUIRE(table.Replace(hashes[i], value, value + 1000));
    REQUIRE(Has(table, hashes[i], value + 1000));
    REQUIRE_FALSE(Has(table, hashes[i], value));
  }
  CHECK(table.size() == hashes.size());
}

// SILT, section 5: a lookup tests eight places. Each of them holds the tag of an absent key with
// probability 2^-15.
TEST_CASE("an absent key has 8 / 2^15 candidates in a full table of any size") {
  const unsigned bits = GENERATE(4, 8, 11, 15);
  CuckooTable table(bits);
  Random random(bits + 200);
  Fill(table, random);
  constexpr int kLookups = 1'000'000;
  uint64_t candidates = 0;
  for (int i = 0; i < kLookups; ++i) candidates += table.Find(random.Next()).size();
  const double rate = static_cast<double>(candidates) / kLookups;
  const double expected = 8.0 / (1U << kTagBits) * table.occupancy();
  INFO("2^" << bits << " buckets: " << rate << " candidates per lookup, " << expected
            << " expected");
  CHECK(rate > 0.8 * expected);
  CHECK(rate < 1.2 * expected);
}

TEST_CASE("keys that share both buckets are refused once these and the stash are full") {
  constexpr unsigned kBits = 10;
  CuckooTable table(kBits);
  // All hashes lead to the same two buckets, and differ in their other bits.
  auto ground = [](uint64_t i) { return uint64_t{0x155} | uint64_t{0x2aa} << kBits | i << 20; };
  constexpr uint32_t kRoom = 2 * CuckooTable::kWays + CuckooTable::kStashSize;
  for (uint32_t i = 0; i < kRoom; ++i) REQUIRE(table.Insert(ground(i), i));
  const CuckooTable before = table;
  REQUIRE_FALSE(table.Insert(ground(kRoom), kRoom));
  REQUIRE(table == before);
  for (uint32_t i = 0; i < kRoom; ++i) REQUIRE(Has(table, ground(i), i));

  Random random(3);
  for (uint32_t i = 0; i < 2000; ++i) REQUIRE(table.Insert(random.Next(), 1000 + i));
  for (uint32_t i = 0; i < kRoom; ++i) REQUIRE(Has(table, ground(i), i));
}

TEST_CASE("keys with the same buckets and tag are all candidates") {
  CuckooTable table(6);
  constexpr uint32_t kRoom = 2 * CuckooTable::kWays + CuckooTable::kStashSize;
  for (uint32_t i = 0; i < kRoom; ++i) REQUIRE(table.Insert(77, i));
  CHECK(table.Find(77).size() == kRoom);
  CHECK_FALSE(table.Insert(77, kRoom));
}

TEST_CASE("a key with two equal buckets works like any other") {
  CuckooTable table(4);
  const uint64_t hash = 0x5 | 0x5 << 4;
  for (uint32_t i = 0; i < CuckooTable::kWays; ++i)
    REQUIRE(table.Insert(hash | uint64_t{i} << 8, i));
  for (uint32_t i = 0; i < CuckooTable::kWays; ++i) {
    REQUIRE(table.Find(hash | uint64_t{i} << 8).size() == 1);
    REQUIRE(Has(table, hash | uint64_t{i} << 8, i));
  }
}

TEST_CASE("the same inserts give the same table, with or without refused ones") {
  CuckooTable one(6), other(6);
  Random random(8), others_random(8);
  const auto hashes = Fill(one, random);
  for (size_t i = 0; i + 1 < hashes.size(); ++i) {
    REQUIRE(other.Insert(hashes[i], static_cast<uint32_t>(i + 1)));
  }
  CHECK(one == other);
}

TEST_CASE("a place takes 6 bytes") {
  CuckooTable table(15);
  CHECK(table.memory_bytes() == 6 * 4 * 32768);
}

}  // namespace siltfs
