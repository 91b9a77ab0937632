// Guarantees of the SILT engine beyond the interface.
#include "index/silt/silt_index.h"

#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "index/flash/cuckoo_table.h"
#include "silt_fixture.h"

namespace siltfs::testing {

// Entries of a log page.
constexpr uint64_t kLogPage = LogSlotsPerPage(kChunkSlots);

TEST_CASE("entries move from the LogStore through HashStores into the SortedStore") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;  // 64 entries
  auto index = fixture.Open();
  PutNumbers(*index, 0, 50, 1);
  CHECK(StoresOfKind(index->stats(), "log_store") == 1);
  CHECK(index->stats().conversions == 0);
  for (uint64_t sequence = 2; sequence <= 100; ++sequence) {
    PutNumbers(*index, (sequence - 1) * 50, 50, sequence);
  }
  const IndexStats stats = index->stats();
  CHECK(StoresOfKind(stats, "sorted_store") == 1);
  CHECK(StoresOfKind(stats, "hash_store") > 3);
  CHECK(stats.conversions >= 5000 / (64 + CuckooTable::kStashSize) - 1);
  CHECK(stats.merges > 5);
  CHECK(stats.entries == 5000);
  for (const auto& store : stats.stores) {
    if (store.kind == "hash_store") CHECK(store.occupancy >= 0.93);
  }
  CheckNumbers(*index, 0, 5000);
  // There are as many files as stores, so no file is left behind.
  CHECK(fixture.Files().size() == FilesOf(stats));
  REQUIRE_OK(index->Close());
  index = fixture.Open();
  CheckNumbers(*index, 0, 5000);
}

TEST_CASE("converted entries are durable up to the previous sequence, without a flush") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  auto index = fixture.Open();
  for (uint64_t sequence = 1; sequence <= 30; ++sequence) {
    PutNumbers(*index, (sequence - 1) * 10, 10, sequence);
  }
  REQUIRE(index->stats().conversions >= 3);
  const uint64_t converted = index->stats().conversions;
  index.reset();
  fixture.env.PowerCut();
  index = fixture.Open();
  CHECK(index->durable_sequence() >= converted * 60 / 10 - 1);
  CHECK(index->durable_sequence() < 30);
  CheckNumbers(*index, 0, index->durable_sequence() * 10);
}

TEST_CASE("a tombstone is no entry, before and after it is replayed") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 90, 1);
  const auto log_entries = [&] {
    for (const auto& store : index->stats().stores) {
      if (store.kind == "log_store") return store.entries;
    }
    return uint64_t{0};
  };
  REQUIRE(index->stats().stores.size() == 2);
  const uint64_t in_log = log_entries();
  REQUIRE(in_log > 1);
  // Deletes a name in the older store: the LogStore has only the tombstone.
  REQUIRE_OK(index->Delete(NameOf(0)));
  REQUIRE_OK(index->Flush());
  CHECK(log_entries() == in_log);
  index.reset();
  index = fixture.Open();
  CHECK(log_entries() == in_log);
  // Deletes a name in the LogStore itself.
  REQUIRE_OK(index->Delete(NameOf(89)));
  REQUIRE_OK(index->Flush());
  CHECK(log_entries() == in_log - 1);
  index.reset();
  index = fixture.Open();
  CHECK(log_entries() == in_log - 1);
}

TEST_CASE("unsynced writes of a killed process are made durable before they count") {
  SiltFixture fixture;
  fixture.options.write_batch_pages = 1;
  auto index = fixture.Open();
  REQUIRE_OK(index->Flush());
  for (uint64_t sequence = 1; sequence <= 10; ++sequence) {
    PutNumbers(*index, (sequence - 1) * kLogPage, kLogPage, sequence);
  }
  REQUIRE(index->stats().stores[0].flash_bytes > 0);
  index.reset();  // like a kill: nothing is flushed
  index = fixture.Open();
  const uint64_t durable = index->durable_sequence();
  REQUIRE(durable > 0);
  index.reset();
  fixture.env.PowerCut();
  index = fixture.Open();
  CHECK(index->durable_sequence() >= durable);
  CheckNumbers(*index, 0, durable * kLogPage);
}

TEST_CASE("names that are put repeatedly fill the log but not the table") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.max_log_pages = 10;
  fixture.options.write_batch_pages = 2;
  auto index = fixture.Open();
  for (uint64_t sequence = 1; sequence <= kLogPage * 9; ++sequence) {
    PutNumbers(*index, sequence % 8, 1, sequence);
  }
  CHECK(index->stats().conversions == 0);
  CHECK(index->stats().entries == 8);
  for (uint64_t sequence = kLogPage * 9 + 1; sequence <= kLogPage * 21; ++sequence) {
    PutNumbers(*index, sequence % 8, 1, sequence);
  }
  for (const auto& store : index->stats().stores) {
    if (store.kind == "log_store") CHECK(store.flash_bytes <= 10 * 4096);
  }
  REQUIRE_OK(index->Flush());
  CHECK(index->stats().conversions == 2);  // each log is frozen at ten pages
  CHECK(index->stats().entries <= 24);
}

TEST_CASE("pages are written when a batch is full, with one write") {
  SiltFixture fixture;
  fixture.options.write_batch_pages = 16;
  auto index = fixture.Open();
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  PutNumbers(*index, 0, kLogPage * 16, 1);
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);
  PutNumbers(*index, kLogPage * 16, 1, 1);
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls + 1);
  CHECK(index->stats().stores[0].flash_bytes == 16 * 4096);
}

TEST_CASE("a lookup costs one flash read, also for an absent name, and none for the tail") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 8;
  fixture.options.write_batch_pages = 1;
  fixture.options.hash_store_share = 0.5;
  auto index = fixture.Open();
  constexpr uint64_t kNames = 20'000;
  PutNumbers(*index, 0, kNames, 1);
  REQUIRE_OK(index->Flush());
  const IndexStats before = index->stats();
  const uint64_t filters = StoresOfKind(before, "hash_store") + 1;
  REQUIRE(filters > 2);
  REQUIRE(before.merges > 0);
  for (uint64_t i = 0; i < kNames; ++i) REQUIRE(index->Get(NameOf(i)).ok());
  CHECK(index->stats().ReadAmplification() > 0.99);
  CHECK(index->stats().ReadAmplification() < 1.01);
  const uint64_t reads = index->stats().flash_reads;
  for (uint64_t i = 0; i < kNames; ++i) REQUIRE(index->Get(NameOf(1'000'000 + i)).ok());
  const double absent = static_cast<double>(index->stats().flash_reads - reads) / kNames;
  CHECK(absent >= 1);
  CHECK(absent < 1 + 2 * static_cast<double>(filters) / 4096);

  PutNumbers(*index, 500'000, 1, 2);
  const uint64_t tail = index->stats().flash_reads;
  REQUIRE(index->Get(NameOf(500'000)).ok());
  CHECK(index->stats().flash_reads == tail);
  CHECK(index->stats().flash_pages_read == tail);  // each read is of one page
}

// Section 5, equation 4. The index grows from empty, so less is rewritten than in the equation.
TEST_CASE("entries are written only as often as merges require") {
  SiltFixture fixture;
  fixture.options.partition_bits = 3;
  fixture.options.bucket_bits = 7;
  fixture.options.hash_store_share = 0.18;
  auto index = fixture.Open();
  for (uint64_t i = 0; i < 100'000; i += 100) PutNumbers(*index, i, 100, i + 1);
  REQUIRE_OK(index->Close());
  const double written = index->stats().WriteAmplification();
  INFO(written);
  CHECK(written > 2);  // log, HashStore, and merges
  CHECK(written < 2.2 + (1 + 0.18) / (2 * 0.18));
}

TEST_CASE("deleting an absent name writes nothing") {
  SiltFixture fixture;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 10, 1);
  REQUIRE_OK(index->Flush());
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  REQUIRE_OK(index->Delete(NameOf(99)));
  REQUIRE_OK(index->Delete(NameOf(98)));
  REQUIRE_OK(index->Flush());
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);
}

TEST_CASE("a deletion hides the entry in any store, and a merge removes both") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 3;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 200, 1);
  REQUIRE(index->stats().merges > 0);
  for (uint64_t i = 0; i < 200; i += 2) REQUIRE_OK(index->Delete(NameOf(i)));
  const auto check = [&](uint64_t count) {
    for (uint64_t i = 0; i < 200; ++i) {
      REQUIRE(GetNumber(*index, i).has_value() == (i % 2 == 1));
    }
    size_t shown = 0;
    REQUIRE_OK(index->ForEach([&](const OrderedEntry&) {
      ++shown;
      return Status::Ok();
    }));
    CHECK(shown == count);
  };
  check(100);
  REQUIRE_OK(index->Close());
  index = fixture.Open();
  check(100);
  // Merges until no tombstone remains: the SortedStore then holds all entries.
  PutNumbers(*index, 1000, 2000, 3);
  check(2100);
  uint64_t sorted = 0, others = 0;
  for (const auto& store : index->stats().stores) {
    (store.kind == "sorted_store" ? sorted : others) += store.entries;
  }
  CHECK(sorted + others == 2100);
}

TEST_CASE("LogStores of the partitions become full one after another") {
  SiltFixture fixture;
  fixture.options.partition_bits = 5;
  fixture.options.bucket_bits = 6;
  auto index = fixture.Open();
  constexpr double kPlaces = 256;
  constexpr double kTaken = 0.95 * kPlaces;  // a table is full
  constexpr uint64_t kStep = 32 * 16;
  for (uint64_t step = 1; step <= 48; ++step) {
    PutNumbers(*index, step * kStep, kStep, step);
    const double entries = static_cast<double>(step) * kStep / 32;  // in each partition
    double expected = 0;
    for (double first = kPlaces / 32; first <= kPlaces; first += kPlaces / 32) {
      if (entries >= first) expected += 1 + std::floor((entries - first) / kTaken);
    }
    INFO("step " << step << ", expected " << expected);
    CHECK(std::abs(static_cast<double>(index->stats().conversions) - expected) <= 9);
  }
}

TEST_CASE("opening and closing an index writes no page and makes no store") {
  SiltFixture fixture;
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 10, 1);
    REQUIRE_OK(index->Close());
  }
  for (int i = 0; i < 5; ++i) {
    const uint64_t writes = fixture.env.Calls(SimCall::kWrite);
    auto index = fixture.Open();
    REQUIRE_OK(index->Close());
    CHECK(fixture.env.Calls(SimCall::kWrite) == writes);
  }
  CHECK(fixture.Files().size() == 1);
}

TEST_CASE("a page damaged after opening is counted, and only its entries are missing") {
  SiltFixture fixture;
  fixture.options.write_batch_pages = 1;
  auto index = fixture.Open();
  PutNumbers(*index, 0, kLogPage * 3, 1);
  REQUIRE_OK(index->Flush());
  FlipByte(fixture.env, fixture.PathOf(fixture.Files().at(0)), 4096 + 2000);
  for (uint64_t i = 0; i < kLogPage * 3; ++i) {
    REQUIRE(GetNumber(*index, i).has_value() == (i / kLogPage != 1));
  }
  CHECK(index->stats().damaged_pages > 0);
}

TEST_CASE("after a failed sync nothing more is written") {
  SiltFixture fixture;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 10, 1);
  fixture.env.FailCall({.calls = SimCall::kSync, .nth = 1, .path_part = ""});
  REQUIRE_CODE(index->Flush(), kIoError);
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  const IndexEntry entry = NumberedEntry(11);
  REQUIRE_CODE(index->Put({&entry, 1}, 2), kIoError);
  REQUIRE_CODE(index->Delete(NameOf(1)), kIoError);
  REQUIRE_CODE(index->Flush(), kIoError);
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);
  CHECK(index->durable_sequence() == 0);
  CheckNumbers(*index, 0, 10);
  REQUIRE_CODE(index->Close(), kIoError);
}

TEST_CASE("an index keeps its partitions and table sizes if the options differ") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 3;
  fixture.options.partition_bits = 2;
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 100, 1);
    REQUIRE_OK(index->Close());
  }
  fixture.options.bucket_bits = 9;
  fixture.options.partition_bits = 0;
  fixture.options.hash_secret = 1;
  auto index = fixture.Open();
  PutNumbers(*index, 100, 1000, 2);
  std::set<uint32_t> partitions;
  for (const auto& store : index->stats().stores) {
    if (store.kind == "log_store") partitions.insert(store.partition);
  }
  CHECK(partitions == std::set<uint32_t>{0, 1, 2, 3});
  CHECK(index->stats().conversions > 20);
  CheckNumbers(*index, 0, 1100);
}

TEST_CASE("invalid options are refused") {
  SiltFixture fixture;
  auto with = [&](auto change) {
    SiltIndexOptions options = fixture.options;
    change(options);
    return OpenSiltIndex(fixture.env, options);
  };
  REQUIRE_CODE(with([](auto& o) { o.bucket_bits = 0; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.bucket_bits = 16; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.partition_bits = 13; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.write_batch_pages = 0; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.max_log_pages = o.write_batch_pages - 1; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.max_log_pages = 1U << 25; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.hash_store_share = 0; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.hash_store_share = 1; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.hash_store_share = std::nan(""); }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.max_hash_stores = 0; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.max_frozen_logs = 0; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.read_depth = 0; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.read_depth = 1025; }), kInvalidArgument);
  CHECK(fixture.Files().empty());
  REQUIRE_OK(with([](auto&) {}));
}

TEST_CASE("lookups run beside puts, deletions, freezes, conversions and merges") {
  SiltFixture fixture;
  fixture.options.partition_bits = 1;
  fixture.options.bucket_bits = 5;
  fixture.options.write_batch_pages = 1;
  fixture.options.sort_memory_bytes = 20'000;
  fixture.options.background = GENERATE(true, false);
  auto index = fixture.Open();
  constexpr uint64_t kNames = 6000;
  std::atomic<uint64_t> put{0};  // names below this one are put
  std::atomic<int> wrong{0};
  auto read = [&](uint64_t seed) {
    Random random(seed);
    while (put.load(std::memory_order_acquire) < kNames) {
      const uint64_t there = put.load(std::memory_order_acquire);
      std::array<ChunkName, 8> names;
      std::array<uint64_t, 8> numbers{};
      std::array<Answer, 8> answers;
      for (size_t i = 0; i < 8; ++i) {
        numbers[i] = random.Below(kNames);
        names[i] = NameOf(numbers[i]);
      }
      if (!index->Get(names, answers).ok()) ++wrong;
      for (size_t i = 0; i < 8; ++i) {
        const bool deleted_some_time = numbers[i] % 50 == 0;
        if (answers[i] && *answers[i] != NumberedEntry(numbers[i]).location) ++wrong;
        if (!answers[i] && numbers[i] < there && !deleted_some_time) ++wrong;
      }
    }
  };
  auto scan = [&] {
    while (put.load(std::memory_order_acquire) < kNames) {
      const uint64_t there = put.load(std::memory_order_acquire);
      uint64_t shown = 0;
      const Status scanned = index->ForEach([&](const OrderedEntry&) {
        ++shown;
        return Status::Ok();
      });
      if (!scanned.ok() || shown + kNames / 50 < there) ++wrong;
      if (index->stats().entries + kNames / 50 < there) ++wrong;
      const Status verified = index->Verify([&](const IndexFinding&) { ++wrong; });
      if (!verified.ok()) ++wrong;
    }
  };
  std::thread first(read, 1), second(read, 2), third(scan);
  for (uint64_t i = 0; i < kNames; i += 10) {
    PutNumbers(*index, i, 10, i + 1);
    put.store(i + 10, std::memory_order_release);
    if (i % 50 == 0) REQUIRE_OK(index->Delete(NameOf(i)));
    if (i % 500 == 0) REQUIRE_OK(index->Flush());
  }
  first.join();
  second.join();
  third.join();
  CHECK(wrong == 0);
  CHECK(index->stats().conversions > 0);
  CHECK(index->stats().damaged_pages == 0);
  REQUIRE_OK(index->Close());
}

}  // namespace siltfs::testing
