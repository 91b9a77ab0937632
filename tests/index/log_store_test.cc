#include "index/silt/log_store.h"

#include "history.h"
#include "index/silt/log_files.h"
#include "index/silt/slot_reads.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr LogStore::Config kConfig{.id = 7, .bucket_bits = 5, .hash_secret = 99};

std::shared_ptr<File> NewFile(SimEnv& env) {
  auto file = CreateLogFile(env, "/", kConfig.id);
  REQUIRE_OK(file);
  return *file;
}

IndexEntry EntryOf(uint64_t number) {
  return {NameOf(number),
          {.segment = static_cast<SegmentId>(number + 1), .ordinal = 5, .block_offset = 6}};
}

uint64_t HashOf(uint64_t number) { return LogStore::HashOf(NameOf(number), kConfig.hash_secret); }

std::optional<IndexEntry> Find(const LogStore& store, uint64_t number) {
  for (uint32_t slot : store.Find(HashOf(number))) {
    if (store.InTail(slot)) {
      if (store.TailEntry(slot).name == NameOf(number)) return store.TailEntry(slot);
      continue;
    }
    SlotRead read{.store = &store, .slot = slot};
    const SlotReadsResult result = ReadSlots({&read, 1});
    REQUIRE_OK(result.status);
    if (read.outcome == SlotRead::Outcome::kRead && read.entry.name == NameOf(number)) {
      return read.entry;
    }
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a page says what it is, and nothing else passes for it") {
  std::array<uint8_t, kLogPageSize> page{};
  for (size_t i = 0; i < 5; ++i) EncodeLogSlot(page, i, EntryOf(i));
  SealLogPage(page, {.log_id = 3, .complete_sequence = 44, .page_number = 8, .count = 5});
  const auto header = CheckLogPage(page, 3, 8);
  REQUIRE(header.has_value());
  CHECK(header->complete_sequence == 44);
  CHECK(header->count == 5);
  CHECK(DecodeLogSlot(page, 4).name == NameOf(4));
  CHECK(DecodeLogSlot(page, 4).location == EntryOf(4).location);

  CHECK_FALSE(CheckLogPage(page, 4, 8).has_value());
  CHECK_FALSE(CheckLogPage(page, 3, 9).has_value());
  for (size_t i = 0; i < kLogPageSize; ++i) {
    page[i] ^= 1;
    REQUIRE_FALSE(CheckLogPage(page, 3, 8).has_value());
    page[i] ^= 1;
  }
  SealLogPage(page, {.log_id = 3, .page_number = 8, .count = kLogSlotsPerPage + 1});
  CHECK_FALSE(CheckLogPage(page, 3, 8).has_value());
  page.fill(0);
  CHECK_FALSE(CheckLogPage(page, 0, 0).has_value());
}

TEST_CASE("entries are found in the tail and on flash") {
  SimEnv env;
  LogStore store(kConfig, NewFile(env));
  for (uint64_t i = 0; i < 100; ++i) REQUIRE(store.Insert(HashOf(i), EntryOf(i), 0));
  store.SealPage(0);
  REQUIRE_OK(store.WriteOut());
  store.DropWritten();
  for (uint64_t i = 100; i < 110; ++i) REQUIRE(store.Insert(HashOf(i), EntryOf(i), 0));
  for (uint64_t i = 0; i < 110; ++i) REQUIRE(Find(store, i)->location == EntryOf(i).location);
  CHECK_FALSE(Find(store, 110).has_value());
  CHECK(store.Stats().entries == 110);
  CHECK(store.Stats().flash_bytes == kLogPageSize);
  CHECK(store.Stats().flash_reads >= 100);
}

TEST_CASE("a log replays to the table it was written with") {
  SimEnv env;
  auto file = NewFile(env);
  LogStore store(kConfig, file);
  Random random(2);
  uint64_t number = 0;
  for (;; ++number) {
    if (number > 10 && random.OneIn(5)) {  // again, or deleted
      const uint64_t old = random.Below(number);
      IndexEntry entry = EntryOf(old);
      if (random.OneIn(2)) entry.location = {};
      for (uint32_t slot : store.Find(HashOf(old))) {
        if (store.TailEntry(slot).name != entry.name) continue;
        const LogStore::Resident resident{slot, IsTombstone(store.TailEntry(slot))};
        REQUIRE(store.Replace(HashOf(old), resident, entry, number));
        break;
      }
    }
    if (!store.Insert(HashOf(number), EntryOf(number), number)) break;
  }
  store.SealPage(1000);
  REQUIRE_OK(store.WriteOut());
  store.DropWritten();

  LogStore again(kConfig, file);
  auto replayed = again.Replay({});
  REQUIRE_OK(replayed);
  CHECK(replayed->complete_sequence == 1000);
  CHECK(replayed->valid_pages == store.sealed_pages());
  CHECK_FALSE(replayed->undamaged_sequence.has_value());
  CHECK(again.Stats().entries == store.Stats().entries);
  for (uint64_t i = 0; i < number; ++i) {
    REQUIRE(again.Find(HashOf(i))[0] == store.Find(HashOf(i))[0]);
  }
  CHECK_FALSE(again.Insert(HashOf(number), EntryOf(number), 0));
}

TEST_CASE("a snapshot stays as it was") {
  SimEnv env;
  LogStore store(kConfig, NewFile(env));
  REQUIRE(store.Insert(HashOf(1), EntryOf(1), 0));
  const auto snapshot = store.Snapshot();
  REQUIRE(store.Insert(HashOf(2), EntryOf(2), 0));
  store.SealPage(0);
  REQUIRE_OK(store.WriteOut());
  store.DropWritten();
  CHECK(Find(*snapshot, 1).has_value());
  CHECK_FALSE(Find(*snapshot, 2).has_value());
  CHECK(Find(store, 2).has_value());
}

TEST_CASE("several lookups in one page cost one read") {
  SimEnv env;
  LogStore store(kConfig, NewFile(env));
  for (uint64_t i = 0; i < 20; ++i) REQUIRE(store.Insert(HashOf(i), EntryOf(i), 0));
  store.SealPage(0);
  REQUIRE_OK(store.WriteOut());
  store.DropWritten();
  std::vector<SlotRead> reads;
  for (size_t i = 0; i < 20; ++i)
    reads.push_back({.store = &store, .slot = LogSlotNumber(0, 19 - i)});
  const SlotReadsResult result = ReadSlots(reads);
  REQUIRE_OK(result.status);
  CHECK(result.pages_read == 1);
  for (size_t i = 0; i < 20; ++i) CHECK(reads[i].entry.name == NameOf(19 - i));
}

TEST_CASE("the buckets of names depend on the index's secret") {
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    same += LogStore::HashOf(NameOf(i), 1) % 32768 == LogStore::HashOf(NameOf(i), 2) % 32768;
  }
  CHECK(same < 5);
}

}  // namespace siltfs::testing
