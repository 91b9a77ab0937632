// SortedStores (SILT, section 3.3).
#include "index/silt/sorted_store.h"

#include "index/silt/verify.h"
#include "store/env/files.h"
#include "store_maker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

std::optional<IndexEntry> Find(const StoreMaker& maker, const SortedStore& store,
                               const ChunkName& name) {
  const auto [number, last] = store.index()->PagesOf(maker.Key(name));
  REQUIRE(number == last);
  REQUIRE(number < store.file().info().pages);
  alignas(kPageSize) std::array<uint8_t, kPageSize> page{};
  REQUIRE_OK(store.file().file().Read(number * kPageSize, page));
  return FindInPage(kChunkSlots, maker.Key(name), page);
}

// Finds a name without the trie; counts the pages read.
std::optional<IndexEntry> Search(const StoreMaker& maker, const SortedStore& store,
                                 const ChunkName& name, uint64_t& reads) {
  SortedSearch search(store, StoreMaker::kNameHash, maker.Key(name));
  while (const auto page = search.NextPage()) {
    REQUIRE(*page < store.file().info().pages);
    ++reads;
    alignas(kPageSize) std::array<uint8_t, kPageSize> bytes{};
    REQUIRE_OK(store.file().file().Read(*page * kPageSize, bytes));
    if (search.Take(*page, bytes)) return FindInPage(kChunkSlots, maker.Key(name), bytes);
  }
  return std::nullopt;
}

// Returns the next item; nothing at the end.
const std::optional<SortedCursor::Item>& Next(SortedCursor& cursor) {
  REQUIRE_OK(cursor.Next());
  return cursor.item();
}

}  // namespace

TEST_CASE(
    "every entry of a SortedStore is in the page that its index returns, absent names are not") {
  const uint64_t count = GENERATE(1, 2, 203, 204, 205, 1000, 20'000);
  StoreMaker maker;
  maker.page_index = GENERATE(PageIndexKind::kTrie, PageIndexKind::kBounds);
  const auto store = maker.Sorted(NumberedEntries(0, count));
  CHECK(store->entries() == count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto found = Find(maker, *store, NameOf(i));
    REQUIRE(found.has_value());
    REQUIRE(found->location == NumberedEntry(i).location);
  }
  for (uint64_t i = 1'000'000; i < 1'002'000; ++i) {
    REQUIRE_FALSE(Find(maker, *store, NameOf(i)).has_value());
  }
  PartitionVersion version;
  version.sorted = store;
  REQUIRE_OK(VerifyPartition(version, {.name_hash = {StoreMaker::kSecret}},
                             [](const IndexFinding& finding) { FAIL(finding.text); }));
}

TEST_CASE("without its index every entry of a SortedStore is found in a few reads") {
  const uint64_t count = GENERATE(1, 2, 203, 204, 205, 1000, 200'000);
  StoreMaker maker;
  maker.page_index = GENERATE(PageIndexKind::kTrie, PageIndexKind::kBounds);
  const auto store = maker.Sorted(NumberedEntries(0, count))->WithoutIndex();
  REQUIRE(store->index() == nullptr);
  CHECK(store->Stats().memory_bytes == 0);
  const uint64_t step = count / 1000 + 1;
  uint64_t reads = 0;
  uint64_t names = 0;
  for (uint64_t i = 0; i < count; i += step, ++names) {
    const auto found = Search(maker, *store, NameOf(i), reads);
    REQUIRE(found.has_value());
    REQUIRE(found->location == NumberedEntry(i).location);
  }
  CHECK(reads >= names);
  CHECK(static_cast<double>(reads) / static_cast<double>(names) < 2.6);
  for (uint64_t i = 1'000'000; i < 1'001'000; ++i) {
    REQUIRE_FALSE(Search(maker, *store, NameOf(i), reads).has_value());
  }
}

// The names' hashes are far from uniform. So the search cannot guess the page from the hash, and
// bisection must bound the number of reads.
TEST_CASE("a search without an index takes at most twice log2(pages) reads for any keys") {
  StoreMaker maker;
  std::vector<IndexEntry> entries;
  for (uint64_t i = 0; entries.size() < 40'000; ++i) {
    // Nearly all hashes are in a 16th of the range.
    if (maker.Hash(i) >> 60 == 7 || i % 997 == 0) entries.push_back(NumberedEntry(i));
  }
  const auto store = maker.Sorted(entries)->WithoutIndex();
  uint64_t most = 0;
  for (size_t i = 0; i < entries.size(); i += 37) {
    uint64_t reads = 0;
    REQUIRE(Search(maker, *store, entries[i].name, reads).has_value());
    most = std::max(most, reads);
  }
  CHECK(most > 2);
  CHECK(most <= 4 + 2 * 9);  // the store has 197 pages
}

TEST_CASE("a search over arbitrary pages ends") {
  StoreMaker maker;
  const auto store =
      maker.Sorted(NumberedEntries(0, 100 * kChunkSlots.slots_per_page()))->WithoutIndex();
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const ChunkName name = NameOf(static_cast<uint64_t>(round));
    SortedSearch search(*store, StoreMaker::kNameHash, maker.Key(name));
    std::vector<bool> seen(store->file().info().pages);
    while (const auto page = search.NextPage()) {
      REQUIRE(*page < seen.size());
      REQUIRE_FALSE(seen[*page]);
      seen[*page] = true;
      std::array<uint8_t, kPageSize> bytes;
      random.Fill(bytes);
      if (search.Take(*page, bytes)) break;
    }
  }
}

TEST_CASE("a SortedStore takes half a bit of memory per entry, and a constant") {
  StoreMaker maker;
  maker.page_index = PageIndexKind::kTrie;
  const auto trie = maker.Sorted(NumberedEntries(0, 100'000));
  CHECK(trie->index()->memory_bytes() < 100'000 / 16 + 500);
  maker.page_index = PageIndexKind::kBounds;
  const auto bounds = maker.Sorted(NumberedEntries(0, 100'000));
  CHECK(bounds->index()->memory_bytes() < 100'000 / 140 + 100);  // 11 bits a page
}

TEST_CASE("a cursor goes through a SortedStore in order") {
  const uint64_t count = GENERATE(1, 204, 205, 64 * 204 + 3);
  StoreMaker maker;
  const auto store = maker.Sorted(NumberedEntries(0, count));
  SortedCursor cursor(&store->file(), StoreMaker::kNameHash);
  CHECK_FALSE(cursor.item().has_value());
  std::optional<OrderKey> last;
  uint64_t seen = 0;
  while (Next(cursor)) {
    const auto& item = *cursor.item();
    REQUIRE(item.key == maker.Key(NameOf(item.entry.location.segment - 1)));
    if (last) REQUIRE(*last < item.key);
    last = item.key;
    ++seen;
  }
  CHECK(seen == count);
  REQUIRE_OK(cursor.Next());
  CHECK_FALSE(cursor.item().has_value());
  CHECK(cursor.damaged_pages() == 0);
}

TEST_CASE("a cursor over no store is at its end") {
  SortedCursor cursor(nullptr, {});
  REQUIRE_OK(cursor.Next());
  CHECK_FALSE(cursor.item().has_value());
}

TEST_CASE("a cursor skips the entries of damaged pages, and counts the pages") {
  StoreMaker maker;
  constexpr size_t kEntries = 204 * 4 + 10;
  const auto store = maker.Sorted(NumberedEntries(0, kEntries));
  REQUIRE(store->file().info().pages == 5);
  const std::string path = maker.PathOf(store->file_id());
  uint64_t missing = 0;
  uint64_t damaged = 0;
  for (const uint32_t page : {1U, 4U, 0U, 2U, 3U}) {
    missing += maker.EntriesIn(store->file(), page);
    FlipByte(maker.env, path, page * kPageSize + 5);
    SortedCursor cursor(&store->file(), StoreMaker::kNameHash);
    uint64_t seen = 0;
    while (Next(cursor)) ++seen;
    CHECK(seen == kEntries - missing);
    CHECK(cursor.damaged_pages() == ++damaged);
  }
}

TEST_CASE("a SortedStore with a trie for other entries is refused") {
  StoreMaker maker;
  const auto small = maker.Sorted(NumberedEntries(0, 100));
  const auto large = maker.Sorted(NumberedEntries(0, 1000));
  auto trie = large->file().ReadPayload();
  REQUIRE_OK(trie);
  const StoreFileId id{StoreKind::kSorted, 0, 77};
  auto writer = FrozenFileWriter::Create(maker.env, "/", id, maker.throttle);
  REQUIRE_OK(writer);
  REQUIRE_OK((*writer)->Append(NumberedEntry(1)));
  FrozenFileInfo info;
  info.entries = 1;
  REQUIRE_OK((*writer)->Finish(info, *trie));
  REQUIRE_OK((*writer)->Sync());
  REQUIRE_CODE(SortedStore::Open(maker.env, "/", id, 0), kCorruption);
  REQUIRE_CODE(SortedStore::Open(maker.env, "/", small->file_id(), 1), kCorruption);
  REQUIRE_OK(SortedStore::Open(maker.env, "/", small->file_id(), 0));
}

TEST_CASE("a SortedStore is synced before it is reported written") {
  StoreMaker maker;
  const auto store = maker.Sorted(NumberedEntries(0, 300));
  REQUIRE_OK(maker.env.SyncDirectory("/"));
  maker.env.PowerCut();
  auto again = SortedStore::Open(maker.env, "/", store->file_id(), 0);
  REQUIRE_OK(again);
  CHECK(Find(maker, **again, NameOf(3)).has_value());
}

}  // namespace siltfs::testing
