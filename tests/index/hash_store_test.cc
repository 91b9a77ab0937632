// SILT, section 3.2: a LogStore becomes a HashStore.
#include "index/silt/hash_store.h"

#include "index/silt/verify.h"
#include "store_maker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Returns a store's entry of a name, found by its filter and the pages the filter leads to.
std::optional<IndexEntry> Find(const HashStore& store, const ChunkName& name, uint64_t hash) {
  for (const uint32_t slot : store.filter()->Find(hash)) {
    alignas(kPageSize) std::array<uint8_t, kPageSize> page{};
    REQUIRE_OK(store.file().file().Read(slot / kChunkSlots.slots_per_page() * kPageSize, page));
    const SlotEntry entry = store.EntryInPage(slot, page);
    if (IsEntryOf(StoreMaker::kNameHash.KeyOf(kChunkSlots, name), kChunkSlots, entry)) return entry;
  }
  return std::nullopt;
}

// Like Find, but without the filter.
std::optional<IndexEntry> FindWithoutFilter(const HashStore& store, const ChunkName& name,
                                            uint64_t hash) {
  for (const uint32_t page : store.PagesOf(hash)) {
    REQUIRE(page < store.file().info().pages);
    alignas(kPageSize) std::array<uint8_t, kPageSize> bytes{};
    REQUIRE_OK(store.file().file().Read(page * kPageSize, bytes));
    if (auto entry =
            FindInPage(store.layout(), StoreMaker::kNameHash.KeyOf(store.layout(), name), bytes))
      return entry;
  }
  return std::nullopt;
}

std::shared_ptr<const HashStore> Unfiltered(const HashStore& store) {
  return std::static_pointer_cast<const HashStore>(store.WithoutFilter());
}

// Returns as many entries as a table takes.
std::vector<IndexEntry> FullTable(unsigned bucket_bits) {
  CuckooTable table(bucket_bits);
  std::vector<IndexEntry> entries;
  while (table.Insert(StoreMaker::kNameHash.Of(NameOf(entries.size())), 0)) {
    entries.push_back(NumberedEntry(entries.size()));
  }
  return entries;
}

// Opens a store of one page with one entry and this filter.
Result<std::shared_ptr<const HashStore>> OpenOfOneEntry(unsigned bucket_bits, ByteView filter) {
  StoreMaker maker;
  const StoreFileId id{StoreKind::kHash, 0, 1};
  auto writer = FrozenFileWriter::Create(maker.env, "/", id, maker.throttle);
  REQUIRE_OK(writer);
  REQUIRE_OK((*writer)->Append(maker.Stored(NumberedEntry(1))));
  FrozenFileInfo info;
  info.entries = 1;
  info.bucket_bits = bucket_bits;
  REQUIRE_OK((*writer)->Finish(info, filter));
  REQUIRE_OK((*writer)->Sync());
  return HashStore::Open(maker.env, "/", id);
}

}  // namespace

TEST_CASE("the HashStore's filter leads to every entry of the LogStore") {
  StoreMaker maker;
  maker.bucket_bits = GENERATE(1, 3, 6, 9);
  const auto entries = FullTable(maker.bucket_bits);
  const auto store = maker.HashStoreOf(entries);
  CHECK(store->entries() == entries.size());
  CHECK(store->Stats().entries == entries.size());
  CHECK(store->Stats().occupancy > 0.9);
  CHECK(store->filter()->slots() > store->filter()->places());  // some in the stash
  for (const IndexEntry& entry : entries) {
    const auto found = Find(*store, entry.name, maker.Hash(entry.name));
    REQUIRE(found.has_value());
    REQUIRE(found->location == entry.location);
  }
  for (uint64_t i = 1'000'000; i < 1'001'000; ++i) {
    REQUIRE_FALSE(Find(*store, NameOf(i), maker.Hash(i)).has_value());
  }
  PartitionVersion version;
  version.hashes.push_back(store);
  REQUIRE_OK(VerifyPartition(version, {.name_hash = {StoreMaker::kSecret}},
                             [](const IndexFinding& finding) { FAIL(finding.text); }));
}

TEST_CASE("without the filter every entry is in a page of its buckets or of the stash") {
  StoreMaker maker;
  maker.bucket_bits = GENERATE(1, 3, 5, 6, 9);
  const auto entries = FullTable(maker.bucket_bits);
  const auto whole = maker.HashStoreOf(entries);
  const auto store = Unfiltered(*whole);
  CHECK(store->filter() == nullptr);
  CHECK(store->Stats().memory_bytes == 0);
  CHECK(store->Stats().occupancy == whole->Stats().occupancy);
  for (const IndexEntry& entry : entries) {
    REQUIRE(store->PagesOf(maker.Hash(entry.name)).size() <= 3);
    const auto found = FindWithoutFilter(*store, entry.name, maker.Hash(entry.name));
    REQUIRE(found.has_value());
    REQUIRE(found->location == entry.location);
  }
  auto again = store->WithFilter();
  REQUIRE_OK(again);
  CHECK(*std::static_pointer_cast<const HashStore>(*again)->filter() == *whole->filter());
}

TEST_CASE("a conversion keeps the last entry of a name, and deletions") {
  StoreMaker maker;
  auto log = maker.Log(NumberedEntries(0, 50));
  const auto replace = [&](const IndexEntry& entry) {
    for (const uint32_t slot : log->Find(maker.Hash(entry.name))) {
      auto contents = log->ReadAll();
      REQUIRE_OK(contents);
      if (contents->Entry(slot)->hash != maker.Hash(entry.name)) continue;
      REQUIRE(log->Replace(maker.Hash(entry.name), {.slot = slot, .tombstone = false}, entry, 0));
      return;
    }
    FAIL("the entry is missing");
  };
  replace(NumberedEntry(7, 1));
  replace(NumberedTombstone(8));
  log->SealPage(0);
  REQUIRE_OK(log->WriteOut());
  log->DropWritten();
  const StoreFileId id{StoreKind::kHash, 0, maker.next_id++};
  auto written = HashStore::WriteFrom(*log, maker.env, "/", id, maker.throttle);
  REQUIRE_OK(written);
  REQUIRE_OK(written->file->Sync());
  auto store = HashStore::Open(maker.env, "/", id);
  REQUIRE_OK(store);
  CHECK((*store)->entries() == 50);
  CHECK((*store)->Stats().entries == 49);
  CHECK(Find(**store, NameOf(7), maker.Hash(7))->location == NumberedEntry(7, 1).location);
  CHECK(IsTombstone(*Find(**store, NameOf(8), maker.Hash(8))));
  CHECK(Find(**store, NameOf(9), maker.Hash(9))->location == NumberedEntry(9).location);
}

TEST_CASE("a damaged page of a log is counted, and its entries are not in the HashStore") {
  StoreMaker maker;
  const size_t in_page = LogSlotsPerPage(kChunkSlots);
  const auto entries = NumberedEntries(0, 230);  // two pages
  const auto log = maker.Log(entries);
  FlipByte(maker.env, maker.PathOf(log->file_id()), 100);
  const StoreFileId id{StoreKind::kHash, 0, maker.next_id++};
  auto written = HashStore::WriteFrom(*log, maker.env, "/", id, maker.throttle);
  REQUIRE_OK(written);
  CHECK(written->damaged_pages == 1);
  REQUIRE_OK(written->file->Sync());
  auto store = HashStore::Open(maker.env, "/", id);
  REQUIRE_OK(store);
  CHECK((*store)->entries() == 230 - in_page);
  for (uint64_t i = 0; i < 230; ++i) {
    REQUIRE(Find(**store, NameOf(i), maker.Hash(i)).has_value() == (i >= in_page));
  }
}

TEST_CASE("a HashStore with a filter for another number of slots is refused") {
  // 256 places need two pages, but the store has one.
  const std::string filter = CuckooFilter(CuckooTable(6)).Encode();
  const auto opened = OpenOfOneEntry(6, AsBytes(filter));
  REQUIRE_CODE(opened, kCorruption);
}

TEST_CASE("a HashStore with a filter larger than its entries is refused before it is read") {
  const auto opened = OpenOfOneEntry(4, Bytes(1 << 20));
  REQUIRE_CODE(opened, kCorruption);
  CHECK(opened.status().cause().find("invalid size") != std::string::npos);
}

TEST_CASE("a synced HashStore survives a power cut, and an unsynced one is absent") {
  StoreMaker maker;
  const auto log = maker.Log(NumberedEntries(0, 50));
  const StoreFileId id{StoreKind::kHash, 0, maker.next_id++};
  {
    auto unsynced = HashStore::WriteFrom(*log, maker.env, "/", id, maker.throttle);
    REQUIRE_OK(unsynced);
  }
  REQUIRE_CODE(HashStore::Open(maker.env, "/", id), kNotFound);
  const auto store = maker.HashStoreOf(NumberedEntries(0, 50));
  REQUIRE_OK(maker.env.SyncDirectory("/"));
  maker.env.PowerCut();
  auto again = HashStore::Open(maker.env, "/", store->file_id());
  REQUIRE_OK(again);
  CHECK(*(*again)->filter() == *store->filter());
  CHECK(Find(**again, NameOf(3), maker.Hash(3)).has_value());
}

TEST_CASE("every entry is in one of its bucket's pages if a bucket takes several") {
  StoreMaker maker;
  maker.layout = SlotLayout::Named(SlotLayout::kMostBits);
  maker.bucket_bits = 5;
  // As many entries as the table takes, so that some are in its stash.
  CuckooTable table(maker.bucket_bits);
  uint64_t count = 0;
  while (table.Insert(maker.Hash(count), static_cast<uint32_t>(count))) ++count;
  const std::vector<IndexEntry> entries = NumberedEntries(0, count);
  const auto store = Unfiltered(*maker.HashStoreOf(entries));
  REQUIRE(store->file().info().pages > maker.layout.PagesFor(table.capacity()) + 1);
  for (const IndexEntry& entry : entries) {
    const auto found = FindWithoutFilter(*store, entry.name, maker.Hash(entry.name));
    REQUIRE(found.has_value());
    REQUIRE(found->location == entry.location);
  }
}

}  // namespace siltfs::testing
