#include "index/silt/log_store.h"

#include "index/silt/lookup.h"
#include "store_maker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kSecret = 99;
constexpr LogStore::Config kConfig{
    .partition = 2, .id = 7, .first_page = 1000, .bucket_bits = 5, .name_hash = {kSecret}};

std::shared_ptr<File> NewFile(SimEnv& env) {
  auto file = CreateStoreFile(env, "/", {StoreKind::kLog, kConfig.partition, kConfig.id});
  REQUIRE_OK(file);
  return *file;
}

uint64_t HashOfNumber(uint64_t number) { return NameHash{kSecret}.Of(NameOf(number)); }

bool Insert(LogStore& store, uint64_t number, uint64_t complete = 0) {
  return store.Insert(HashOfNumber(number), NumberedEntry(number), complete);
}

std::optional<IndexEntry> Find(const LogStore& store, uint64_t number) {
  Lookup lookup(NameHash{kSecret}.KeyOf(kChunkSlots, NameOf(number)));
  lookup.Begin(store, nullptr);
  FinishLookup(lookup);
  REQUIRE_OK(lookup.status());
  return lookup.found();
}

void WriteAllOut(LogStore& store) {
  REQUIRE_OK(store.WriteOut());
  store.DropWritten();
}

}  // namespace

TEST_CASE("a page is accepted only for its log and number, and only with unchanged bytes") {
  std::array<uint8_t, kPageSize> page{};
  for (size_t i = 0; i < 5; ++i)
    EncodeLogSlot(kChunkSlots, page, i, StoreMaker().Stored(NumberedEntry(i)));
  SealLogPage(page, {.log_id = 3, .complete_sequence = 44, .page_number = 8, .count = 5});
  const auto header = CheckLogPage(kChunkSlots, page, 3, 8);
  REQUIRE(header.has_value());
  CHECK(header->complete_sequence == 44);
  CHECK(header->count == 5);
  CHECK(DecodeLogSlot(kChunkSlots, page, 4).hash == HashOfNumber(4));
  CHECK(DecodeLogSlot(kChunkSlots, page, 4).location == NumberedEntry(4).location);

  CHECK_FALSE(CheckLogPage(kChunkSlots, page, 4, 8).has_value());
  CHECK_FALSE(CheckLogPage(kChunkSlots, page, 3, 9).has_value());
  for (size_t i = 0; i < kPageSize; ++i) {
    page[i] ^= 1;
    REQUIRE_FALSE(CheckLogPage(kChunkSlots, page, 3, 8).has_value());
    page[i] ^= 1;
  }
  SealLogPage(page, {.log_id = 3, .page_number = 8, .count = LogSlotsPerPage(kChunkSlots) + 1});
  CHECK_FALSE(CheckLogPage(kChunkSlots, page, 3, 8).has_value());
  page.fill(0);
  CHECK_FALSE(CheckLogPage(kChunkSlots, page, 0, 0).has_value());
}

TEST_CASE("entries are found in the tail and on flash") {
  SimEnv env;
  LogStore store(kConfig, NewFile(env));
  for (uint64_t i = 0; i < 100; ++i) REQUIRE(Insert(store, i));
  store.SealPage(0);
  WriteAllOut(store);
  for (uint64_t i = 100; i < 110; ++i) REQUIRE(Insert(store, i));
  for (uint64_t i = 0; i < 110; ++i) {
    REQUIRE(Find(store, i).value().location == NumberedEntry(i).location);
  }
  CHECK_FALSE(Find(store, 110).has_value());
  CHECK(store.Stats().entries == 110);
  CHECK(store.Stats().flash_bytes == kPageSize);
  CHECK(store.Stats().flash_reads >= 100);
}

TEST_CASE("page numbers continue from the previous log") {
  SimEnv env;
  LogStore store(kConfig, NewFile(env));
  CHECK(store.end_page() == kConfig.first_page);
  REQUIRE(Insert(store, 1));
  store.SealPage(3);
  REQUIRE(Insert(store, 2));
  store.SealPage(4);
  CHECK(store.end_page() == kConfig.first_page + 2);
  WriteAllOut(store);
  std::array<uint8_t, kPageSize> page;
  REQUIRE_OK(store.file()->Read(kPageSize, page));
  CHECK(CheckLogPage(kChunkSlots, page, kConfig.id, kConfig.first_page + 1).has_value());

  // A log that expects another page number accepts none of the pages.
  LogStore::Config other = kConfig;
  ++other.first_page;
  auto file = OpenStoreFile(env, "/", store.file_id(), OpenMode::kRead, false);
  REQUIRE_OK(file);
  LogStore wrong(other, *file);
  auto replayed = wrong.Replay();
  REQUIRE_OK(replayed);
  CHECK(replayed->valid_pages == 0);
  CHECK_FALSE(replayed->all_valid);
}

TEST_CASE("a log replays to the table it was written with") {
  SimEnv env;
  auto file = NewFile(env);
  LogStore store(kConfig, file);
  Random random(2);
  uint64_t number = 0;
  for (;; ++number) {
    if (number > 10 && random.OneIn(5)) {  // put again, or deleted
      const uint64_t old = random.Below(number);
      IndexEntry entry = NumberedEntry(old, 1);
      if (random.OneIn(2)) entry.location = {};
      for (uint32_t slot : store.Find(HashOfNumber(old))) {
        if (store.TailEntry(slot).name != entry.name) continue;
        const LogStore::Resident resident{slot, IsTombstone(store.TailEntry(slot))};
        REQUIRE(store.Replace(HashOfNumber(old), resident, entry, number));
        break;
      }
    }
    if (!Insert(store, number, number)) break;
  }
  store.SealPage(1000);
  WriteAllOut(store);

  LogStore again(kConfig, file);
  auto replayed = again.Replay();
  REQUIRE_OK(replayed);
  CHECK(again.complete_sequence() == 1000);
  CHECK(replayed->valid_pages == store.sealed_pages());
  CHECK(replayed->all_valid);
  CHECK(again.Stats().entries == store.Stats().entries);
  CHECK(again.table() == store.table());
  CHECK_FALSE(Insert(again, number));
}

TEST_CASE("a log replays up to the first page that has changed since it was sealed") {
  SimEnv env;
  auto file = NewFile(env);
  LogStore store(kConfig, file);
  for (uint64_t page = 0; page < 5; ++page) {
    for (uint64_t i = 0; i < 10; ++i) REQUIRE(Insert(store, page * 10 + i));
    store.SealPage(100 + page);
  }
  WriteAllOut(store);
  FlipByte(env, file->path(), 3 * kPageSize + 77);
  {
    LogStore again(kConfig, file);
    auto replayed = again.Replay();
    REQUIRE_OK(replayed);
    CHECK(replayed->valid_pages == 3);
    CHECK_FALSE(replayed->all_valid);
    CHECK(again.complete_sequence() == 102);
    CHECK(Find(again, 29).has_value());
    CHECK_FALSE(Find(again, 30).has_value());
  }
  REQUIRE_OK(file->Truncate(2 * kPageSize + 5));
  LogStore cut(kConfig, file);
  auto replayed = cut.Replay();
  REQUIRE_OK(replayed);
  CHECK(replayed->valid_pages == 2);
  CHECK_FALSE(replayed->all_valid);
  CHECK(cut.complete_sequence() == 101);
}

TEST_CASE("a replayed log continues at its end") {
  SimEnv env;
  auto file = NewFile(env);
  {
    LogStore store(kConfig, file);
    REQUIRE(Insert(store, 1));
    store.SealPage(1);
    WriteAllOut(store);
  }
  LogStore again(kConfig, file);
  REQUIRE_OK(again.Replay());
  REQUIRE(Insert(again, 2));
  again.SealPage(2);
  WriteAllOut(again);
  LogStore third(kConfig, file);
  REQUIRE_OK(third.Replay());
  CHECK(third.sealed_pages() == 2);
  CHECK(Find(third, 1).has_value());
  CHECK(Find(third, 2).has_value());
}

TEST_CASE("a snapshot does not change") {
  SimEnv env;
  LogStore store(kConfig, NewFile(env));
  REQUIRE(Insert(store, 1));
  const auto snapshot = store.Snapshot();
  REQUIRE(Insert(store, 2));
  store.SealPage(0);
  WriteAllOut(store);
  CHECK(Find(*snapshot, 1).has_value());
  CHECK_FALSE(Find(*snapshot, 2).has_value());
  CHECK(Find(store, 2).has_value());
}

TEST_CASE("a log is read as a whole: flash, sealed pages and the page being filled") {
  SimEnv env;
  LogStore store(kConfig, NewFile(env));
  for (uint64_t i = 0; i < 30; ++i) {
    REQUIRE(Insert(store, i));
    if (i % 10 == 9) store.SealPage(0);
    if (i == 19) WriteAllOut(store);
  }
  REQUIRE(Insert(store, 30));
  const auto check = [&](uint64_t damaged_from, uint64_t damaged_to) {
    auto contents = store.ReadAll();
    REQUIRE_OK(contents);
    for (uint64_t i = 0; i <= 30; ++i) {
      const auto entry = contents->Entry(
          LogSlotNumber(kChunkSlots, static_cast<uint32_t>(i / 10), static_cast<size_t>(i % 10)));
      REQUIRE(entry.has_value() == (i < damaged_from || i >= damaged_to));
      if (entry) REQUIRE(entry->hash == HashOfNumber(i));
    }
    return contents->damaged_pages;
  };
  CHECK(check(0, 0) == 0);
  FlipByte(env, store.file()->path(), kPageSize + 2000);
  CHECK(check(10, 20) == 1);
}

TEST_CASE("a deletion takes a slot but is no entry") {
  SimEnv env;
  LogStore store(kConfig, NewFile(env));
  REQUIRE(Insert(store, 1));
  REQUIRE(store.Insert(HashOfNumber(2), NumberedTombstone(2), 0));
  CHECK(store.Stats().entries == 1);
  CHECK(store.table().size() == 2);
  CHECK(IsTombstone(*Find(store, 2)));
}

TEST_CASE("the buckets of names depend on the index's secret") {
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    same += NameHash{1}.Of(NameOf(i)) % 32768 == NameHash{2}.Of(NameOf(i)) % 32768;
  }
  CHECK(same < 5);
}

}  // namespace siltfs::testing
