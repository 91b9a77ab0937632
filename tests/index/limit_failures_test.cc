// Memory limits together with full disks, failures and damage. The tested guarantees hold at every
// limit.
#include <chrono>
#include <set>
#include <thread>

#include "index/silt/memory_plan.h"
#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

void FillDisk(SimEnv& env, uint64_t free_pages = 0) {
  const auto space = env.GetDiskSpace(SiltFixture::kDirectory);
  REQUIRE_OK(space);
  env.SetCapacity(space->total_bytes - space->free_bytes + free_pages * kPageSize);
}

}  // namespace

// A damaged page loses its own entries. Without an index of the pages, it must not hide the entries
// of other pages.
TEST_CASE("a damaged page of a SortedStore hides no entries of other pages, even without a trie") {
  FilledFixture fixture;
  fixture.options.page_index = GENERATE(PageIndexKind::kTrie, PageIndexKind::kBounds);
  fixture.options.hash_store_share = 0.05;
  fixture.Fill().reset();
  const StoreFileId file = fixture.Files(StoreKind::kSorted).at(0);
  const uint64_t pages = fixture.Contents(file).size() / kPageSize;
  REQUIRE(pages > 60);
  // Flips a byte of the first and of the last slot of eight pages.
  for (uint64_t page = 10; page < 50; page += 5) {
    FlipByte(fixture.env, fixture.PathOf(file), page * kPageSize + kPageHeaderSize);
    FlipByte(fixture.env, fixture.PathOf(file), (page + 1) * kPageSize - kHashedSlotSize);
  }
  fixture.options.memory_limit = GENERATE(UINT64_MAX, uint64_t{0});
  auto index = fixture.Open();
  uint64_t missing = 0;
  for (uint64_t i = 0; i < FilledFixture::kNames; ++i) missing += GetNumber(*index, i) ? 0 : 1;
  INFO(missing << " missing, limit " << fixture.options.memory_limit);
  CHECK(missing > 0);
  CHECK(missing <= 8 * kChunkSlots.slots_per_page());
  CHECK(index->stats().damaged_pages > 0);
  // Fills the pages with zeros, as a device may return for a lost block.
  auto opened = fixture.env.OpenFile(fixture.PathOf(file), {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(opened);
  for (uint64_t page = 10; page < 50; page += 5) {
    REQUIRE_OK((*opened)->Write(page * kPageSize, Bytes(kPageSize)));
  }
  missing = 0;
  for (uint64_t i = 0; i < FilledFixture::kNames; ++i) missing += GetNumber(*index, i) ? 0 : 1;
  INFO(missing << " missing with a page of zeros");
  CHECK(missing <= 8 * kChunkSlots.slots_per_page());
}

TEST_CASE("an index that can no longer write still frees memory") {
  FilledFixture fixture;
  auto index = fixture.Fill();
  REQUIRE(FiltersAndTries(*index) > 0);
  fixture.env.FailCall({.calls = SimCall::kSync});
  PutNumbers(*index, 50'000, 5, 2);
  REQUIRE_CODE(index->Flush(), kIoError);
  fixture.env.ClearFaults();
  index->SetMemoryLimit(0).IgnoreError("logs may not fit");
  CHECK(FiltersAndTries(*index) == 0);
}

TEST_CASE("a lower limit drops filters even on a full disk") {
  FilledFixture fixture;
  fixture.options.bucket_bits = 9;
  auto index = fixture.Fill();
  REQUIRE(FiltersAndTries(*index) > 0);
  PutNumbers(*index, 50'000, 5, 2);
  FillDisk(fixture.env);
  REQUIRE_OK(index->SetMemoryLimit(0));  // logs are not converted until there is room
  CHECK(FiltersAndTries(*index) == 0);
  fixture.env.SetCapacity(SimEnv::kUnlimited);
  REQUIRE_OK(index->WaitUntilOpen());
  CHECK(FiltersAndTries(*index) == 0);
}

TEST_CASE("an index opens on a full disk at any limit") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 11;
  fixture.options.partition_bits = 2;
  fixture.options.background = GENERATE(false, true);
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 20'000, 1);
    REQUIRE_OK(index->Close());
  }
  FillDisk(fixture.env);
  fixture.options.memory_limit = GENERATE(UINT64_MAX, uint64_t{0});
  auto index = OpenSiltIndex(fixture.env, fixture.options);
  INFO(index.status().ToString());
  CHECK(index.ok());
}

// The limit is the same in both runs, but the disk is full when the index is opened again.
TEST_CASE("an index closed under a limit opens under the same limit on a full disk") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 11;
  fixture.options.partition_bits = 2;
  fixture.options.memory_limit = 0;
  {
    auto index = fixture.Open();
    // The tables have 4 * 1024 places. The first LogStores of all partitions but the last one take
    // fewer entries, so there are LogStores and HashStores.
    PutNumbers(*index, 0, 3800, 1);
    REQUIRE_OK(index->Close());
    REQUIRE(index->stats().conversions == 3);
  }
  FillDisk(fixture.env);
  auto index = OpenSiltIndex(fixture.env, fixture.options);
  INFO(index.status().ToString());
  CHECK(index.ok());
}

TEST_CASE("a flush that fits on the disk succeeds at any limit") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 11;
  fixture.options.background = true;
  fixture.options.partition_bits = 1;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 5000, 1);
  REQUIRE_OK(index->Flush());
  PutNumbers(*index, 5000, 10, 2);
  FillDisk(fixture.env, 4);  // room for a page of the log and the manifest
  if (GENERATE(false, true)) {
    index->SetMemoryLimit(0).IgnoreError("the disk is full");
  }
  const Status flushed = index->Flush();
  INFO(flushed.ToString());
  CHECK(flushed.ok());
  const Status closed = index->Close();
  CHECK(closed.ok());
}

TEST_CASE("filters are loaded even if the disk is too full to merge or convert") {
  FilledFixture fixture;
  fixture.options.hash_store_share = 0.9;
  fixture.Fill().reset();
  fixture.options.hash_store_share = 0.05;  // so small a share requires a merge
  fixture.options.background = GENERATE(false, true);
  FillDisk(fixture.env, 3);
  fixture.options.read_only = GENERATE(false, true);
  auto index = fixture.Open();
  for (int i = 0; i < 200 && index->stats().load_backlog > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(index->stats().load_backlog == 0);
  CHECK(MemoryOf(index->stats(), "hash_store") > 0);
}

TEST_CASE("tries keep to the limit even if there are many small ones") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.partition_bits = 6;
  fixture.options.hash_store_share = 0.05;
  fixture.options.page_index = PageIndexKind::kTrie;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 20'000, 1);
  REQUIRE(index->stats().merges > 0);
  uint64_t most_over = 0;
  for (uint64_t limit = 0; limit < 2U << 20; limit += 4096) {
    REQUIRE_OK(index->SetMemoryLimit(limit));
    const uint64_t room = PlanMemory(limit, fixture.options, 4, 6).index_bytes;
    const uint64_t taken = FiltersAndTries(*index);
    if (taken > room) most_over = std::max(most_over, taken - room);
  }
  CHECK(most_over == 0);
}

TEST_CASE("constantly changing limits lose no entries") {
  const unsigned partition_bits = GENERATE(0, 2);
  const unsigned bucket_bits = GENERATE(1, 4, 9);
  const bool background = GENERATE(false, true);
  SiltFixture fixture;
  fixture.options.partition_bits = partition_bits;
  fixture.options.bucket_bits = bucket_bits;
  fixture.options.background = background;
  fixture.options.max_hash_stores = 5;
  fixture.options.sort_memory_bytes = 4000;
  fixture.options.max_log_pages = 40;
  Random random(bucket_bits + 10 * partition_bits);
  std::map<uint64_t, std::optional<uint32_t>> truth;
  auto index = fixture.Open();
  uint64_t sequence = 1;
  const uint64_t names = 3000;
  for (int round = 0; round < 150; ++round) {
    const uint64_t limits[] = {0, kNoMemoryLimit, 300'000 + random.Below(400'000),
                               random.Below(1U << 21)};
    if (random.OneIn(2)) REQUIRE_OK(index->SetMemoryLimit(limits[random.Below(4)]));
    std::vector<IndexEntry> entries;
    for (uint64_t n = random.Below(200); n > 0; --n) {
      const uint64_t number = random.Below(names);
      const auto version = static_cast<uint32_t>(random.Below(5));
      entries.push_back(NumberedEntry(number, version));
      truth[number] = version;
    }
    REQUIRE_OK(index->Put(entries, sequence++));
    for (uint64_t n = random.Below(30); n > 0; --n) {
      const uint64_t number = random.Below(names);
      REQUIRE_OK(index->Delete(NameOf(number)));
      truth[number] = std::nullopt;
    }
    std::vector<ChunkName> asked;
    std::vector<Answer> answers(400);
    std::vector<uint64_t> numbers;
    for (size_t i = 0; i < answers.size(); ++i) {
      numbers.push_back(random.Below(names + 100));
      asked.push_back(NameOf(numbers.back()));
    }
    REQUIRE_OK(index->Get(asked, answers));
    for (size_t i = 0; i < answers.size(); ++i) {
      const auto found = truth.find(numbers[i]);
      const Answer should = found == truth.end() || !found->second
                                ? Answer()
                                : Answer(NumberedEntry(numbers[i], *found->second).location);
      REQUIRE(answers[i] == should);
    }
    if (random.OneIn(12)) {
      if (random.OneIn(2)) REQUIRE_OK(index->Close());
      const bool closed = !index->Flush().ok();
      index.reset();
      (void)closed;
      fixture.options.serve_early = random.OneIn(2);
      fixture.options.memory_limit = limits[random.Below(4)];
      index = fixture.Open();
      if (!closed) sequence = std::max(sequence, index->durable_sequence() + 1);
    }
  }
  REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
}

// A filter is optional. If the index cannot read back a filter that it has just written, it works
// without the filter.
TEST_CASE("a failing read while a HashStore is installed does not end writing") {
  FilledFixture fixture;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 1000, 1);
  fixture.env.FailCall({.calls = SimCall::kRead, .nth = 2, .path_part = ".hash"});
  uint64_t failed = 0;
  for (uint64_t part = 0; part < 10; ++part) {
    const Status put = index->Put(NumberedEntries(1000 + part * 100, 100), part + 2);
    if (!put.ok()) ++failed;
    put.IgnoreError("counted");
  }
  CHECK(failed == 0);
}

TEST_CASE("an index that was opened early on a full disk must be opened again") {
  FilledFixture fixture;
  fixture.Fill().reset();
  fixture.options.serve_early = true;
  FillDisk(fixture.env);
  // Removes the logs. So recovery must create a log, or record that a partition has all entries
  // only up to a lower sequence. Both need space.
  for (const StoreFileId& file : fixture.Files(StoreKind::kLog)) {
    REQUIRE_OK(fixture.env.RemoveFile(fixture.PathOf(file)));
  }
  FillDisk(fixture.env);
  auto index = fixture.Open();
  index->Flush().IgnoreError("the disk is full");
  REQUIRE_CODE(index->Put(NumberedEntries(50'000, 1), 100), kNoSpace);
  fixture.env.SetCapacity(SimEnv::kUnlimited);
  REQUIRE_CODE(index->Put(NumberedEntries(50'000, 1), 101), kNoSpace);
  index = fixture.Open();
  PutNumbers(*index, 50'000, 1, 102);
}

TEST_CASE("limits are kept when logs with repeated names are converted") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 8;
  fixture.options.memory_limit = 0;
  auto index = fixture.Open();
  uint64_t most_log = 0;
  for (uint64_t sequence = 1; sequence < 400; ++sequence) {
    PutNumbers(*index, 0, 500, sequence);
    for (const auto& store : index->stats().stores) {
      if (store.kind == "log_store") most_log = std::max(most_log, store.flash_bytes);
    }
  }
  // A conversion reads the whole log into memory, so the limit also bounds the length of a log.
  CHECK(most_log < 2'700'000);
}

}  // namespace siltfs::testing
