#include "index/flash/cuckoo_filter.h"

#include <algorithm>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

// Fills the table and its stash. Returns the hashes of the entries. The value of each entry is the
// index of its hash in this list.
std::vector<uint64_t> Fill(CuckooTable& table, uint64_t seed) {
  Random random(seed);
  std::vector<uint64_t> hashes;
  for (;;) {
    const uint64_t hash = random.Next();
    if (!table.Insert(hash, static_cast<uint32_t>(hashes.size()))) return hashes;
    hashes.push_back(hash);
  }
}

// Returns the value of each slot of a filter made from the table.
std::vector<uint32_t> ValuesBySlot(const CuckooTable& table) {
  std::vector<uint32_t> values(table.capacity(), UINT32_MAX);
  table.ForEachPlace([&](size_t place, uint16_t, uint32_t value) { values[place] = value; });
  table.ForEachStashed([&](const CuckooPlace&, uint32_t value) { values.push_back(value); });
  return values;
}

}  // namespace

TEST_CASE("a filter has the candidates of the table it was made from") {
  const unsigned bits = GENERATE(1, 2, 5, 9, 15);
  CuckooTable table(bits);
  const auto hashes = Fill(table, bits);
  const CuckooFilter filter(table);
  const auto values = ValuesBySlot(table);
  REQUIRE(filter.slots() == values.size());
  REQUIRE(filter.slots() > filter.places());  // there is a stash
  const auto same = [&](uint64_t hash) {
    std::vector<uint32_t> found;
    for (const uint32_t slot : filter.Find(hash)) {
      REQUIRE(filter.Occupied(slot));
      REQUIRE(filter.Finds(hash, slot));
      found.push_back(values[slot]);
    }
    std::sort(found.begin(), found.end(), std::greater<>());
    const auto expected = table.Find(hash);
    REQUIRE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
  };
  for (const uint64_t hash : hashes) same(hash);
  Random random(3);
  for (int i = 0; i < 20'000; ++i) same(random.Next());
}

TEST_CASE("the slots of a filter are occupied where the table has entries") {
  CuckooTable table(6);
  Fill(table, 4);
  const CuckooFilter filter(table);
  const auto values = ValuesBySlot(table);
  size_t occupied = 0;
  for (size_t slot = 0; slot < filter.slots(); ++slot) {
    REQUIRE(filter.Occupied(slot) == (values[slot] != UINT32_MAX));
    occupied += filter.Occupied(slot);
  }
  CHECK(occupied == table.size());
  CHECK_FALSE(filter.Occupied(filter.slots()));
}

TEST_CASE("a filter reads as it was written") {
  const unsigned bits = GENERATE(1, 4, 11);
  const bool empty = GENERATE(true, false);
  CuckooTable table(bits);
  if (!empty) Fill(table, 5);
  const CuckooFilter filter(table);
  const std::string bytes = filter.Encode();
  CHECK(bytes.size() == 8 + 12 * (filter.slots() - filter.places()) + 2 * filter.places());
  auto read = CuckooFilter::Decode(bits, AsBytes(bytes));
  REQUIRE_OK(read);
  CHECK(*read == filter);
}

TEST_CASE("a filter of another length, or for another table, is refused") {
  CuckooTable table(4);
  Fill(table, 6);
  const std::string bytes = CuckooFilter(table).Encode();
  for (size_t length = 0; length < bytes.size(); ++length) {
    REQUIRE_CODE(CuckooFilter::Decode(4, AsBytes(bytes.substr(0, length))), kCorruption);
  }
  REQUIRE_CODE(CuckooFilter::Decode(4, AsBytes(bytes + '\0')), kCorruption);
  for (const unsigned bits : {0U, 3U, 5U, 15U, 16U, 40U, 255U}) {
    REQUIRE_CODE(CuckooFilter::Decode(bits, AsBytes(bytes)), kCorruption);
  }
}

TEST_CASE("bytes accepted as a filter encode to the same bytes and are safe to look up in") {
  CuckooTable table(3);
  Fill(table, 7);
  const std::string good = CuckooFilter(table).Encode();
  Random random(8);
  int passed = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = good;
    for (uint64_t flips = 1 + random.Below(3); flips-- > 0;) {
      bad[random.Below(bad.size())] = static_cast<char>(random.Next());
    }
    auto filter = CuckooFilter::Decode(3, AsBytes(bad));
    if (!filter.ok()) continue;
    ++passed;
    REQUIRE(filter->Encode() == bad);
    for (int lookup = 0; lookup < 10; ++lookup) {
      for (const uint32_t slot : filter->Find(random.Next())) REQUIRE(filter->Occupied(slot));
    }
  }
  CHECK(passed > 100);
}

TEST_CASE("a filter takes 2 bytes per place") {
  CHECK(CuckooFilter(CuckooTable(15)).memory_bytes() == 2 * 4 * 32768);
}

}  // namespace siltfs
