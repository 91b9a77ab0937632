// What the SILT engine promises beyond the interface.
#include "index/silt/silt_index.h"

#include <atomic>
#include <thread>

#include "history.h"
#include "index/silt/log_files.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";

struct Fixture {
  Fixture() {
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    REQUIRE_OK(env.SyncDirectory("/"));
    options.directory = kDirectory;
  }
  std::unique_ptr<ChunkIndex> Open() {
    auto index = OpenSiltIndex(env, options);
    REQUIRE_OK(index);
    return std::move(*index);
  }
  size_t Logs() {
    auto entries = env.ListDirectory(kDirectory);
    REQUIRE_OK(entries);
    size_t logs = 0;
    for (const auto& entry : *entries) logs += ParseLogFileName(entry.name).has_value();
    return logs;
  }
  SimEnv env;
  SiltIndexOptions options;
};

IndexEntry EntryOf(uint64_t number) {
  return {NameOf(number), {.segment = static_cast<SegmentId>(number + 1)}};
}

void PutNew(ChunkIndex& index, uint64_t first, uint64_t count, uint64_t sequence) {
  std::vector<IndexEntry> entries;
  for (uint64_t i = first; i < first + count; ++i) entries.push_back(EntryOf(i));
  REQUIRE_OK(index.Put(entries, sequence));
}

}  // namespace

TEST_CASE("a full LogStore is frozen, and what it holds is durable up to the sequence before") {
  Fixture fixture;
  fixture.options.bucket_bits = 4;  // 64 entries
  auto index = fixture.Open();
  uint64_t put = 0;
  for (uint64_t sequence = 1; sequence <= 30; ++sequence, put += 10) {
    PutNew(*index, put, 10, sequence);
    const size_t stores = index->stats().stores.size();
    if (stores > 1) {
      CHECK(index->durable_sequence() > 0);
      CHECK(index->durable_sequence() < sequence);
    }
  }
  const IndexStats stats = index->stats();
  REQUIRE(stats.stores.size() >= 4);
  for (size_t i = 0; i + 1 < stats.stores.size(); ++i) {
    CHECK(stats.stores[i].occupancy >= 0.93);
    CHECK(stats.stores[i].kind == "log_store");
  }
  CHECK(stats.entries == put);
  const uint64_t durable = index->durable_sequence();
  fixture.env.PowerCut();
  index = fixture.Open();
  CHECK(index->durable_sequence() >= durable);
  for (uint64_t i = 0; i < durable * 10; ++i) {
    auto got = index->Get(NameOf(i));
    REQUIRE_OK(got);
    REQUIRE(*got == EntryOf(i).location);
  }
}

TEST_CASE("a tombstone is no entry, before and after it is replayed") {
  Fixture fixture;
  fixture.options.bucket_bits = 4;
  auto index = fixture.Open();
  PutNew(*index, 0, 100, 1);
  REQUIRE(index->stats().stores.size() == 2);
  // Of a name in the frozen store: the tombstone stands alone in the active one.
  REQUIRE_OK(index->Delete(NameOf(0)));
  REQUIRE_OK(index->Flush());
  const uint64_t active = index->stats().stores.back().entries;
  index.reset();
  index = fixture.Open();
  CHECK(index->stats().stores.back().entries == active);
  // And of one in the active store itself.
  REQUIRE_OK(index->Delete(NameOf(99)));
  REQUIRE_OK(index->Flush());
  CHECK(index->stats().stores.back().entries == active - 1);
  index.reset();
  index = fixture.Open();
  CHECK(index->stats().stores.back().entries == active - 1);
}

TEST_CASE("what a killed process had written but not synced is made durable before it counts") {
  Fixture fixture;
  fixture.options.write_batch_pages = 1;
  auto index = fixture.Open();
  REQUIRE_OK(index->Flush());
  for (uint64_t sequence = 1; sequence <= 10; ++sequence) {
    PutNew(*index, (sequence - 1) * 127, 127, sequence);
  }
  REQUIRE(index->stats().stores[0].flash_bytes > 0);
  index.reset();  // as by a kill: nothing is flushed
  index = fixture.Open();
  const uint64_t durable = index->durable_sequence();
  REQUIRE(durable > 0);
  fixture.env.PowerCut();
  index = fixture.Open();
  CHECK(index->durable_sequence() >= durable);
  for (uint64_t i = 0; i < durable * 127; ++i) {
    auto got = index->Get(NameOf(i));
    REQUIRE_OK(got);
    REQUIRE(*got == EntryOf(i).location);
  }
}

TEST_CASE("names put again and again fill the log but not the table") {
  Fixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.max_log_pages = 10;
  fixture.options.write_batch_pages = 2;
  auto index = fixture.Open();
  for (uint64_t sequence = 1; sequence <= 127 * 9; ++sequence) {
    PutNew(*index, sequence % 8, 1, sequence);
  }
  IndexStats stats = index->stats();
  CHECK(stats.stores.size() == 1);
  CHECK(stats.entries == 8);
  for (uint64_t sequence = 127 * 9 + 1; sequence <= 127 * 21; ++sequence) {
    PutNew(*index, sequence % 8, 1, sequence);
  }
  stats = index->stats();
  CHECK(stats.stores.size() == 3);  // frozen at ten pages each
  CHECK(stats.entries == 24);       // each of them has all eight
  for (const auto& store : stats.stores) CHECK(store.flash_bytes <= 10 * 4096);
}

TEST_CASE("nothing is written until a batch of pages is full, then one write takes all of it") {
  Fixture fixture;
  fixture.options.write_batch_pages = 16;
  auto index = fixture.Open();
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  PutNew(*index, 0, 127 * 16, 1);
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);
  PutNew(*index, 127 * 16, 1, 1);
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls + 1);
  CHECK(fixture.env.Calls(SimCall::kWrite) >= 1);
  CHECK(index->stats().stores[0].flash_bytes == 16 * 4096);
}

TEST_CASE("a lookup costs one read of flash, an absent name almost none, the tail none") {
  Fixture fixture;
  fixture.options.bucket_bits = 8;
  fixture.options.write_batch_pages = 1;
  auto index = fixture.Open();
  constexpr uint64_t kNames = 20'000;
  PutNew(*index, 0, kNames, 1);
  REQUIRE_OK(index->Flush());
  const size_t stores = index->stats().stores.size();
  REQUIRE(stores > 15);
  for (uint64_t i = 0; i < kNames; ++i) REQUIRE(index->Get(NameOf(i)).ok());
  CHECK(index->stats().ReadAmplification() > 0.99);
  CHECK(index->stats().ReadAmplification() < 1.01);
  const uint64_t reads = index->stats().flash_reads;
  for (uint64_t i = 0; i < kNames; ++i) REQUIRE(index->Get(NameOf(1'000'000 + i)).ok());
  const double absent = static_cast<double>(index->stats().flash_reads - reads) / kNames;
  const double expected = static_cast<double>(stores) / 4096;
  CHECK(absent < 1.5 * expected);
  CHECK(absent > 0.5 * expected);

  PutNew(*index, 500'000, 1, 2);
  const uint64_t before = index->stats().flash_reads;
  REQUIRE(index->Get(NameOf(500'000)).ok());
  CHECK(index->stats().flash_reads == before);
}

TEST_CASE("pages are written about once") {
  Fixture fixture;
  fixture.options.bucket_bits = 8;
  auto index = fixture.Open();
  PutNew(*index, 0, 20'000, 1);
  REQUIRE_OK(index->Close());
  CHECK(index->stats().WriteAmplification() > 1);
  CHECK(index->stats().WriteAmplification() < 1.1);
}

TEST_CASE("the deletion of a name that is nowhere writes nothing") {
  Fixture fixture;
  auto index = fixture.Open();
  PutNew(*index, 0, 10, 1);
  REQUIRE_OK(index->Flush());
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  REQUIRE_OK(index->Delete(NameOf(99)));
  REQUIRE_OK(index->Delete(NameOf(98)));
  REQUIRE_OK(index->Flush());
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);
}

TEST_CASE("a deletion hides an entry of a frozen LogStore, and finds room in a full one") {
  Fixture fixture;
  fixture.options.bucket_bits = 3;
  auto index = fixture.Open();
  PutNew(*index, 0, 200, 1);
  for (uint64_t i = 0; i < 200; i += 2) REQUIRE_OK(index->Delete(NameOf(i)));
  REQUIRE_OK(index->Close());
  index = fixture.Open();
  for (uint64_t i = 0; i < 200; ++i) {
    auto got = index->Get(NameOf(i));
    REQUIRE_OK(got);
    REQUIRE(got->has_value() == (i % 2 == 1));
  }
  size_t shown = 0;
  REQUIRE_OK(index->ForEach([&](const IndexEntry&) {
    ++shown;
    return Status::Ok();
  }));
  CHECK(shown == 100);
}

TEST_CASE("an index that is opened and closed writes no page and makes no log") {
  Fixture fixture;
  {
    auto index = fixture.Open();
    PutNew(*index, 0, 10, 1);
    REQUIRE_OK(index->Close());
  }
  for (int i = 0; i < 5; ++i) {
    const uint64_t writes = fixture.env.Calls(SimCall::kWrite);
    auto index = fixture.Open();
    REQUIRE_OK(index->Close());
    CHECK(fixture.env.Calls(SimCall::kWrite) == writes);
  }
  CHECK(fixture.Logs() == 1);
}

TEST_CASE("a log that no manifest lists is removed") {
  Fixture fixture;
  fixture.Open().reset();
  auto file =
      fixture.env.OpenFile(JoinPath(kDirectory, LogFileName(2)), {.mode = OpenMode::kCreate});
  REQUIRE_OK(file);
  CHECK(fixture.Logs() == 2);
  fixture.Open().reset();
  CHECK(fixture.Logs() == 1);
}

TEST_CASE("a page damaged after opening is counted, its entries are missing, others are not") {
  Fixture fixture;
  fixture.options.write_batch_pages = 1;
  auto index = fixture.Open();
  PutNew(*index, 0, 127 * 3, 1);
  REQUIRE_OK(index->Flush());
  {
    auto file =
        fixture.env.OpenFile(JoinPath(kDirectory, LogFileName(1)), {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    const uint8_t rot[1] = {0xab};
    REQUIRE_OK((*file)->Write(4096 + 2000, rot));
  }
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 127 * 3; ++i) {
      auto got = index->Get(NameOf(i));
      REQUIRE_OK(got);
      REQUIRE(got->has_value() == (i / 127 != 1));
    }
  }
  CHECK(index->stats().damaged_pages == 1);
}

TEST_CASE("damage in a frozen log is counted at the opening that finds it, and not again") {
  Fixture fixture;
  fixture.options.bucket_bits = 6;  // two pages and a bit each
  {
    auto index = fixture.Open();
    for (uint64_t s = 1; s <= 100; ++s) PutNew(*index, s * 10, 10, s);
    REQUIRE_OK(index->Close());
  }
  {
    auto file =
        fixture.env.OpenFile(JoinPath(kDirectory, LogFileName(2)), {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    const uint8_t rot[1] = {0xab};
    REQUIRE_OK((*file)->Write(4096 + 2000, rot));
  }
  uint64_t durable = 0;
  {
    auto index = fixture.Open();
    CHECK(index->stats().damaged_pages == 1);
    durable = index->durable_sequence();
    CHECK(durable > 24);  // log 1 and a page of log 2
    CHECK(durable < 50);
    int missing = 0;
    for (uint64_t i = 10; i < 1010; ++i) {
      auto got = index->Get(NameOf(i));
      REQUIRE_OK(got);
      missing += !got->has_value();
    }
    CHECK(missing > 0);
    CHECK(missing <= 127);
  }
  auto index = fixture.Open();
  CHECK(index->stats().damaged_pages == 0);
  CHECK(index->durable_sequence() == durable);
}

TEST_CASE("after a failed sync nothing is written any more") {
  Fixture fixture;
  auto index = fixture.Open();
  PutNew(*index, 0, 10, 1);
  fixture.env.FailCall({.calls = SimCall::kSync, .nth = 1, .path_part = ""});
  REQUIRE_CODE(index->Flush(), kIoError);
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  const IndexEntry entry = EntryOf(11);
  REQUIRE_CODE(index->Put({&entry, 1}, 2), kIoError);
  REQUIRE_CODE(index->Delete(NameOf(1)), kIoError);
  REQUIRE_CODE(index->Flush(), kIoError);
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);
  CHECK(index->durable_sequence() == 0);
  for (uint64_t i = 0; i < 10; ++i) {
    auto got = index->Get(NameOf(i));
    REQUIRE_OK(got);
    CHECK(*got == EntryOf(i).location);
  }
  REQUIRE_CODE(index->Close(), kIoError);
}

TEST_CASE("tables of another size than the options' are kept and used") {
  Fixture fixture;
  fixture.options.bucket_bits = 3;
  {
    auto index = fixture.Open();
    PutNew(*index, 0, 100, 1);
    REQUIRE_OK(index->Close());
  }
  fixture.options.bucket_bits = 9;
  auto index = fixture.Open();
  PutNew(*index, 100, 1000, 2);
  CHECK(index->stats().stores.size() > 3);
  for (uint64_t i = 0; i < 1100; ++i) {
    auto got = index->Get(NameOf(i));
    REQUIRE_OK(got);
    REQUIRE(*got == EntryOf(i).location);
  }
}

TEST_CASE("options that make no sense are refused") {
  Fixture fixture;
  auto with = [&](auto change) {
    SiltIndexOptions options = fixture.options;
    change(options);
    return OpenSiltIndex(fixture.env, options);
  };
  REQUIRE_CODE(with([](auto& o) { o.bucket_bits = 0; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.bucket_bits = 16; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.write_batch_pages = 0; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.max_log_pages = 3; }), kInvalidArgument);
  REQUIRE_CODE(with([](auto& o) { o.max_log_pages = 1U << 25; }), kInvalidArgument);
}

TEST_CASE("lookups run beside puts, flushes, deletions and freezes, and see what was put before") {
  Fixture fixture;
  fixture.options.bucket_bits = 6;
  fixture.options.write_batch_pages = 1;
  auto index = fixture.Open();
  constexpr uint64_t kNames = 6000;
  std::atomic<uint64_t> put{0};  // names below it are in
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
        if (answers[i] && *answers[i] != EntryOf(numbers[i]).location) ++wrong;
        if (!answers[i] && numbers[i] < there && !deleted_some_time) ++wrong;
      }
    }
  };
  auto scan = [&] {
    while (put.load(std::memory_order_acquire) < kNames) {
      const uint64_t there = put.load(std::memory_order_acquire);
      uint64_t shown = 0;
      const Status scanned = index->ForEach([&](const IndexEntry&) {
        ++shown;
        return Status::Ok();
      });
      if (!scanned.ok() || shown + kNames / 50 < there) ++wrong;
      if (index->stats().entries + kNames / 50 < there) ++wrong;
    }
  };
  std::thread first(read, 1), second(read, 2), third(scan);
  for (uint64_t i = 0; i < kNames; i += 10) {
    PutNew(*index, i, 10, i + 1);
    put.store(i + 10, std::memory_order_release);
    if (i % 50 == 0) REQUIRE_OK(index->Delete(NameOf(i)));
    if (i % 500 == 0) REQUIRE_OK(index->Flush());
  }
  first.join();
  second.join();
  third.join();
  CHECK(wrong == 0);
}

}  // namespace siltfs::testing
