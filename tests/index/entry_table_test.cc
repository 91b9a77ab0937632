#include "index/flash/entry_table.h"

#include <map>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

FlashEntry EntryOf(uint64_t hash, uint32_t number) {
  return {.hash = hash, .location = {.segment = number + 1, .ordinal = number % 1000}};
}

// Fills a table until it refuses a hash; returns its entries.
std::map<uint64_t, FlashEntry> Fill(EntryTable& table, uint64_t seed) {
  Random random(seed);
  std::map<uint64_t, FlashEntry> entries;
  for (uint32_t i = 0;; ++i) {
    const FlashEntry entry = EntryOf(random.Next() | 1, i);
    if (!table.Insert(entry)) return entries;
    entries[entry.hash] = entry;
  }
}

}  // namespace

TEST_CASE("a table takes nearly as many entries as it has places, and finds them") {
  struct Case {
    EntryTable::Shape shape;
    double least_load;
  };
  for (const Case& one :
       {Case{{.buckets = 512, .ways = 4}, 0.95}, Case{{.buckets = 1024, .ways = 6}, 0.97},
        Case{{.buckets = 2048, .ways = 3}, 0.88}}) {
    CAPTURE(one.shape.buckets, one.shape.ways);
    EntryTable table(one.shape);
    CHECK(table.memory_bytes() == 0);
    const auto entries = Fill(table, 1);
    CHECK(static_cast<double>(table.size()) >=
          one.least_load * static_cast<double>(one.shape.places()));
    CHECK(table.size() == entries.size());
    CHECK(table.memory_bytes() == EntryTable::MemoryFor(one.shape));
    for (const auto& [hash, entry] : entries) REQUIRE(table.Find(hash) == entry);
    Random random(2);
    for (int i = 0; i < 1000; ++i) REQUIRE_FALSE(table.Find(random.Next() | 1).has_value());
    std::map<uint64_t, FlashEntry> visited;
    table.ForEach([&](const FlashEntry& entry) { visited[entry.hash] = entry; });
    CHECK((visited == entries));
    table.Clear();
    CHECK(table.size() == 0);
    CHECK(table.memory_bytes() == 0);
  }
}

TEST_CASE("an entry lies in one of its two buckets, mostly the first") {
  EntryTable table({.buckets = 1024, .ways = 6});
  Random random(3);
  for (uint32_t i = 0; i < 1024 * 6 * 86 / 100; ++i) {
    REQUIRE(table.Insert(EntryOf(random.Next() | 1, i)));
  }
  size_t first = 0;
  size_t all = 0;
  for (uint32_t bucket = 0; bucket < 1024; ++bucket) {
    for (uint32_t way = 0; way < 6; ++way) {
      const auto entry = table.At(bucket, way);
      if (!entry) continue;
      const auto buckets = table.shape().BucketsOf(entry->hash);
      REQUIRE((buckets[0] == bucket || buckets[1] == bucket));
      ++all;
      first += buckets[0] == bucket ? 1 : 0;
    }
  }
  CHECK(all == table.size());
  CHECK(first > all * 8 / 10);
}

TEST_CASE("a put of a present hash replaces its location") {
  EntryTable table({.buckets = 2, .ways = 2});
  auto entries = Fill(table, 4);
  for (auto& [hash, entry] : entries) {
    entry = EntryOf(hash, 77);
    REQUIRE(table.Insert(entry));
  }
  for (const auto& [hash, entry] : entries) REQUIRE(table.Find(hash) == entry);
  CHECK(table.size() == entries.size());
}

TEST_CASE("a full table takes replayed entries, and is refused further ones until it is cleared") {
  EntryTable table({.buckets = 2, .ways = 2});
  auto entries = Fill(table, 5);
  for (uint32_t i = 0; i < 10; ++i) {
    const FlashEntry entry = EntryOf(1000 + i, i);
    table.InsertAnyway(entry);
    entries[entry.hash] = entry;
  }
  for (const auto& [hash, entry] : entries) REQUIRE(table.Find(hash) == entry);
  CHECK(table.size() == entries.size());
  CHECK_FALSE(table.Insert(EntryOf(5000, 1)));
  REQUIRE(table.Insert(EntryOf(1003, 99)));
  CHECK(table.Find(1003) == EntryOf(1003, 99));
  table.Clear();
  CHECK(table.overflow().empty());
  CHECK(table.Insert(EntryOf(5000, 1)));
}

}  // namespace siltfs::testing
