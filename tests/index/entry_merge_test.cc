// Tests which entries of several stores a merge puts into a new SortedStore (SILT, section 3.3 and
// table 3).
#include "index/silt/entry_merge.h"

#include "store_maker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Merged {
  std::vector<IndexEntry> entries;
  uint64_t damaged_pages = 0;
  uint64_t dropped = 0;
  size_t sort_memory = 0;
};

// Runs a merge, and REQUIREs that the merge visits the keys in ascending order.
Merged Merge(const PartitionVersion& version, size_t sort_memory_bytes = 4U << 20) {
  EntryMerge merge(version, {.name_hash = {StoreMaker::kSecret},
                             .partition_bits = 0,
                             .partition = 0,
                             .sort_memory_bytes = sort_memory_bytes});
  Merged merged;
  std::optional<OrderKey> last;
  REQUIRE_OK(merge.Run([&](const OrderKey& key, const SlotEntry& entry) {
    // NumberedEntry(number) lies in segment number + 1.
    const ChunkName name = NameOf(entry.location.segment - 1);
    REQUIRE(key == StoreMaker().Key(name));
    REQUIRE(key.hash == entry.hash);
    if (last) REQUIRE(*last < key);
    last = key;
    merged.entries.push_back({name, entry.location});
    return Status::Ok();
  }));
  merged.damaged_pages = merge.damaged_pages();
  merged.dropped = merge.entries_dropped();
  merged.sort_memory = merge.sort_memory_bytes();
  return merged;
}

std::map<ChunkName, Location> AsMap(const std::vector<IndexEntry>& entries) {
  std::map<ChunkName, Location> map;
  for (const IndexEntry& entry : entries) map.emplace(entry.name, entry.location);
  return map;
}

enum class Held { kNothing, kEntry, kTombstone };

}  // namespace

TEST_CASE("the newest entry of a name counts, and a tombstone removes all older ones") {
  // The stores, oldest first: the SortedStore (no tombstones), three HashStores, a frozen LogStore.
  // A store has an entry, a tombstone or nothing for a name. Each of the 2 * 3^4 combinations has a
  // name of its own.
  constexpr size_t kStores = 5;
  std::array<std::vector<IndexEntry>, kStores> stores;
  std::map<ChunkName, Location> expected;
  uint64_t held_in_all = 0;
  uint64_t number = 0;
  for (uint64_t combination = 0; combination < 2 * 81; ++combination, ++number) {
    std::optional<IndexEntry> newest;
    uint64_t rest = combination;
    for (uint32_t age = 0; age < kStores; ++age) {
      const uint64_t kinds = age == 0 ? 2 : 3;
      const auto held = static_cast<Held>(rest % kinds);
      rest /= kinds;
      if (held == Held::kNothing) continue;
      newest = held == Held::kEntry ? NumberedEntry(number, age + 1) : NumberedTombstone(number);
      stores[age].push_back(*newest);
      ++held_in_all;
    }
    if (newest && !IsTombstone(*newest)) expected.emplace(newest->name, newest->location);
  }
  StoreMaker maker;
  maker.bucket_bits = 6;
  PartitionVersion version;
  version.sorted = maker.Sorted(stores[0]);
  for (size_t age = 1; age < 4; ++age) version.hashes.push_back(maker.HashStoreOf(stores[age]));
  version.logs.push_back(maker.Log(stores[4]));
  const size_t sort_memory = GENERATE(1U, 500U, 4U << 20);
  const Merged merged = Merge(version, sort_memory);
  CHECK(merged.entries.size() == expected.size());
  CHECK(AsMap(merged.entries) == expected);
  CHECK(merged.damaged_pages == 0);
  CHECK(merged.dropped == held_in_all - expected.size());
}

TEST_CASE("the last of several LogStores is the newest") {
  StoreMaker maker;
  PartitionVersion version;
  const std::vector<IndexEntry> older = {NumberedEntry(1, 1), NumberedTombstone(2),
                                         NumberedEntry(3, 1)};
  const std::vector<IndexEntry> newer = {NumberedEntry(1, 2), NumberedEntry(2, 2),
                                         NumberedTombstone(3)};
  version.logs = {maker.Log(older), maker.Log(newer)};
  const auto merged = AsMap(Merge(version).entries);
  CHECK(merged == AsMap({NumberedEntry(1, 2), NumberedEntry(2, 2)}));
}

TEST_CASE("many passes with little memory give the same result as one pass") {
  StoreMaker maker;
  maker.bucket_bits = 8;
  PartitionVersion version;
  version.sorted = maker.Sorted(NumberedEntries(0, 3000, 1));
  for (uint32_t i = 0; i < 4; ++i) {
    auto entries = NumberedEntries(2500 + i * 400, 600, 2 + i);
    for (size_t k = 0; k < entries.size(); k += 10) entries[k].location = {};
    version.hashes.push_back(maker.HashStoreOf(entries));
  }
  version.logs.push_back(maker.Log(NumberedEntries(2000, 600, 9)));
  const Merged once = Merge(version);
  CHECK(once.entries.size() > 4000);
  for (const size_t memory : {1U, 3000U, 48'000U}) {
    INFO(memory << " bytes to sort in");
    const Merged merged = Merge(version, memory);
    REQUIRE(merged.entries.size() == once.entries.size());
    for (size_t i = 0; i < once.entries.size(); ++i) {
      REQUIRE(merged.entries[i].name == once.entries[i].name);
      REQUIRE(merged.entries[i].location == once.entries[i].location);
    }
    CHECK(merged.dropped == once.dropped);
    // With little memory a pass has few entries. Their number varies so much from pass to pass that
    // some passes may take more than the limit.
    if (memory > 10'000) CHECK(merged.sort_memory <= memory);
  }
}

TEST_CASE("a merge covers only its partition's range of hashes") {
  StoreMaker maker;
  constexpr unsigned kBits = 3;
  std::vector<IndexEntry> all;
  for (uint32_t p = 0; p < 8; ++p) {
    std::vector<IndexEntry> mine;
    for (const IndexEntry& entry : NumberedEntries(0, 800)) {
      if (PartitionOf(maker.Hash(entry.name), kBits) == p) mine.push_back(entry);
    }
    PartitionVersion version;
    version.hashes.push_back(maker.HashStoreOf(mine));
    EntryMerge merge(version, {.name_hash = {StoreMaker::kSecret},
                               .partition_bits = kBits,
                               .partition = p,
                               .sort_memory_bytes = 1000});
    REQUIRE_OK(merge.Run([&](const OrderKey&, const SlotEntry& entry) {
      all.push_back({NameOf(entry.location.segment - 1), entry.location});
      return Status::Ok();
    }));
  }
  CHECK(all.size() == 800);
  CHECK(AsMap(all) == AsMap(NumberedEntries(0, 800)));
}

TEST_CASE("entries of damaged pages are left out, and each page is counted once") {
  StoreMaker maker;
  maker.bucket_bits = 7;
  PartitionVersion version;
  version.sorted = maker.Sorted(NumberedEntries(0, 400));
  version.hashes.push_back(maker.HashStoreOf(NumberedEntries(1000, 400)));
  version.logs.push_back(maker.Log(NumberedEntries(2000, 400)));
  const size_t in_sorted_page = maker.EntriesIn(version.sorted->file(), 1);
  const size_t in_hash_page = maker.EntriesIn(version.hashes[0]->file(), 2);
  const size_t in_log_page = 400 - LogSlotsPerPage(kChunkSlots);
  FlipByte(maker.env, maker.PathOf(version.sorted->file_id()), kPageSize + 9);
  FlipByte(maker.env, maker.PathOf(version.hashes[0]->file_id()), 2 * kPageSize + 9);
  FlipByte(maker.env, maker.PathOf(version.logs[0]->file_id()), kPageSize + 99);
  const size_t memory = GENERATE(2000U, 1U << 20);  // several passes, or one
  const Merged merged = Merge(version, memory);
  CHECK(merged.damaged_pages == 3);
  CHECK(merged.entries.size() == 1200 - in_sorted_page - in_log_page - in_hash_page);
}

TEST_CASE("a merge of empty stores visits no entry") {
  const Merged merged = Merge(PartitionVersion());
  CHECK(merged.entries.empty());
  StoreMaker maker;
  PartitionVersion gone;
  gone.sorted = maker.Sorted(NumberedEntries(0, 5));
  std::vector<IndexEntry> tombstones;
  for (uint64_t i = 0; i < 5; ++i) tombstones.push_back(NumberedTombstone(i));
  gone.hashes.push_back(maker.HashStoreOf(tombstones));
  CHECK(Merge(gone).entries.empty());
}

TEST_CASE("a merge stops at the first failure of its visitor") {
  StoreMaker maker;
  PartitionVersion version;
  version.sorted = maker.Sorted(NumberedEntries(0, 5));
  version.hashes.push_back(maker.HashStoreOf(NumberedEntries(10, 5)));
  EntryMerge merge(version, {.name_hash = {StoreMaker::kSecret}});
  int visits = 0;
  REQUIRE_CODE(merge.Run([&](const OrderKey&, const IndexEntry&) -> Status {
    if (++visits == 7) return {StatusCode::kInterrupted, "enough"};
    return Status::Ok();
  }),
               kInterrupted);
  CHECK(visits == 7);
}

TEST_CASE("a read that fails ends a merge") {
  StoreMaker maker;
  PartitionVersion version;
  version.sorted = maker.Sorted(NumberedEntries(0, 5));
  version.hashes.push_back(maker.HashStoreOf(NumberedEntries(10, 5)));
  version.logs.push_back(maker.Log(NumberedEntries(20, 5)));
  for (const char* part : {".sorted", ".hash", ".log"}) {
    maker.env.FailCall({.calls = SimCall::kRead, .nth = 1, .path_part = part});
    EntryMerge merge(version, {.name_hash = {StoreMaker::kSecret}});
    REQUIRE_CODE(merge.Run([](const OrderKey&, const IndexEntry&) { return Status::Ok(); }),
                 kIoError);
    maker.env.ClearFaults();
  }
}

}  // namespace siltfs::testing
