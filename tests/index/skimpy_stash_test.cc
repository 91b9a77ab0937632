// The mechanisms of SkimpyStash: chains, two buckets of a hash, the collector, and recovery.
#include <algorithm>
#include <set>

#include "skimpy_stash_fixture.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs::testing {
namespace {

// Puts, updates and deletes at random, and keeps what each number must answer.
struct Oracle {
  std::map<uint64_t, uint32_t> versions;  // 0: deleted
  uint32_t next = 1;

  void Change(ChainFixture& fixture, Random& random, uint64_t numbers) {
    const uint64_t number = random.Below(numbers);
    const bool put = !random.OneIn(4);
    // An index deletes only names that it has.
    if (!put && (versions.count(number) == 0 || versions[number] == 0)) return;
    versions[number] = put ? ++next : 0;
    fixture.Put(put ? EntryOf(number, next) : TombstoneOf(number));
  }
  void Check(const ChainFixture& fixture) const {
    uint64_t present = 0;
    for (const auto& [number, version] : versions) {
      const auto found = fixture.Get(HashOf(number)).found;
      INFO("number " << number);
      REQUIRE(found.has_value() == (version != 0));
      if (!found) continue;
      REQUIRE(*found == EntryOf(number, version));
      ++present;
    }
    const std::vector<FlashEntry> listed = fixture.List();
    REQUIRE(listed.size() == present);
    for (const FlashEntry& entry : listed) {
      REQUIRE(entry == fixture.Get(entry.hash).found);
    }
  }
};

// The hashes that have records in both buckets.
uint64_t HashesInBothBuckets(const ChainFixture& fixture) {
  const PageFiles::FilePin pin = fixture.files->Pin();
  std::multiset<uint64_t> hashes;
  uint64_t damaged = 0;
  REQUIRE_OK(fixture.partition->TakeSnapshot().version->Collect(
      [&](const FlashEntry& entry) { hashes.insert(entry.hash); }, damaged));
  uint64_t twice = 0;
  for (auto it = hashes.begin(); it != hashes.end(); it = hashes.upper_bound(*it)) {
    twice += hashes.count(*it) > 1 ? 1 : 0;
  }
  return twice;
}

}  // namespace

TEST_CASE("Updates and deletions are right while chains are collected, whatever the filters say") {
  // With one byte of filter for some entries, lookups and puts often ask the wrong bucket.
  const uint64_t per_bucket = GENERATE(1, 2, 8);
  const uint64_t enhanced = GENERATE(0, 1);
  const uint64_t garbage = GENERATE(1, 4, 0);
  ChainFixture fixture({{"capacity_bits", 10},
                        {"entries_per_bucket", per_bucket},
                        {"enhanced", enhanced},
                        {"garbage", garbage}},
                       4);
  Random random(per_bucket + 100 * garbage);
  Oracle oracle;
  uint64_t twice = 0;
  uint64_t pages = 0;
  for (int round = 0; round < 12 && !fixture.partition->WantsRewrite(); ++round) {
    for (int i = 0; i < 400 && !fixture.partition->WantsRewrite(); ++i) {
      oracle.Change(fixture, random, 300);
    }
    // Filters come and go as the memory limit changes.
    if (round % 4 == 1) fixture.partition->DropFilters();
    if (round % 4 == 2 && fixture.partition->HasDroppedFilters()) {
      REQUIRE_OK(fixture.partition->LoadFilters());
    }
    oracle.Check(fixture);
    REQUIRE(fixture.Faults() == 0);
    twice = std::max(twice, HashesInBothBuckets(fixture));
    if (round % 3 == 2) {
      fixture.Flush();
      pages += fixture.partition->tally().pages_written;
      fixture.Reopen();
      oracle.Check(fixture);
    }
  }
  CHECK(pages > 4);
  if (enhanced == 1 && garbage > 0) CHECK(twice > 0);
}

TEST_CASE("The first bucket wins, even after the chain of the second one was written again") {
  ChainFixture fixture({{"capacity_bits", 8}, {"entries_per_bucket", 2}, {"garbage", 1}}, 4);
  // Without filters, a put goes into the first bucket.
  fixture.PutNumbers(0, 128);
  fixture.Flush();
  fixture.partition->DropFilters();
  fixture.PutNumbers(0, 128, 2);
  fixture.Flush();
  REQUIRE(HashesInBothBuckets(fixture) > 20);
  REQUIRE_OK(fixture.partition->LoadFilters());
  // Updates of other entries let the collector write all old chains again.
  for (uint32_t round = 3; round < 30; ++round) {
    fixture.PutNumbers(100, 28, round);
    fixture.Flush();
  }
  REQUIRE(fixture.partition->tally().collected_chains > 100);
  for (uint64_t i = 0; i < 100; ++i) {
    REQUIRE(fixture.Get(HashOf(i)).found == EntryOf(i, 2));
  }
  REQUIRE(fixture.Faults() == 0);
}

TEST_CASE("A chain whose entries were all deleted does not come back after recovery") {
  ChainFixture fixture({{"capacity_bits", 9}, {"entries_per_bucket", 4}, {"garbage", 1}}, 4);
  fixture.PutNumbers(0, 200);
  for (uint64_t i = 0; i < 200; ++i) fixture.Put(TombstoneOf(i));
  fixture.Flush();
  const uint64_t before = fixture.partition->tally().collected_chains;
  fixture.PutNumbers(1000, 100);
  for (uint32_t round = 2; round < 6; ++round) {
    fixture.PutNumbers(1000, 100, round);
    fixture.Flush();
  }
  CHECK(fixture.partition->tally().collected_chains > before);
  for (int life = 0; life < 2; ++life) {
    for (uint64_t i = 0; i < 200; ++i) REQUIRE_FALSE(fixture.Get(HashOf(i)).found);
    REQUIRE(fixture.List().size() == 100);
    REQUIRE(fixture.Faults() == 0);
    fixture.Reopen();
  }
}

TEST_CASE("The log's head advances: files with orphans only are released") {
  ChainFixture fixture({{"capacity_bits", 12}, {"entries_per_bucket", 8}, {"garbage", 4}}, 4);
  fixture.PutNumbers(0, 2000);
  uint64_t most_pages = 0;
  for (uint32_t round = 2; round < 40; ++round) {
    fixture.PutNumbers(0, 2000, round);
    most_pages = std::max(most_pages, fixture.files->live_pages(0));
  }
  const auto tally = fixture.partition->tally();
  CHECK(tally.released_files > 50);
  CHECK(tally.pages_written > 460);
  CHECK(most_pages < 60);  // 12 pages would hold the entries
  for (uint64_t i = 0; i < 2000; ++i) REQUIRE(fixture.Get(HashOf(i)).found == EntryOf(i, 39));
  REQUIRE(fixture.Faults() == 0);
}

TEST_CASE("A forged count of obsolete records lets the collector do little") {
  ChainFixture fixture({{"capacity_bits", 12}, {"garbage", 8}});
  fixture.PutNumbers(0, 2000);
  fixture.Flush();
  std::string state = fixture.partition->Encode();
  const int64_t forged = GENERATE(INT64_MAX, INT64_MAX / 2, INT64_MIN);
  Encoder garbage;
  garbage.I64(forged);
  state.replace(16, 8, garbage.Take());
  fixture.Reopen(state);
  REQUIRE_OK(fixture.partition->LoadFilters());
  // The third page of updates pays for a collection if the count is right.
  for (uint32_t round = 2; round < 6; ++round) fixture.PutNumbers(0, 2000, round);
  fixture.Flush();
  const auto tally = fixture.partition->tally();
  CHECK(tally.pages_written < 150);  // 48 for the updates
  for (uint64_t i = 0; i < 2000; ++i) REQUIRE(fixture.Get(HashOf(i)).found == EntryOf(i, 5));
  CHECK(fixture.Faults() == 0);
}

TEST_CASE("A buffer that is old is written at the next put") {
  constexpr int64_t kMs = 1'000'000;
  const uint64_t limit = GENERATE(0, 500);
  ChainFixture fixture({{"capacity_bits", 12}, {"coalesce_ms", limit}});
  fixture.PutNumbers(0, 10);
  fixture.env.AdvanceClock(499 * kMs);
  fixture.PutNumbers(10, 1);
  CHECK(fixture.partition->tally().pages_written == 0);
  fixture.env.AdvanceClock(2 * kMs);
  fixture.PutNumbers(0, 1, 2);
  CHECK(fixture.partition->tally().pages_written == (limit == 0 ? 0 : 1));
  // The new buffer is young.
  fixture.env.AdvanceClock(400 * kMs);
  fixture.PutNumbers(20, 5);
  CHECK(fixture.partition->tally().pages_written == (limit == 0 ? 0 : 1));
  CHECK(fixture.Get(HashOf(0)).found == EntryOf(0, 2));
  for (uint64_t i = 1; i < 11; ++i) REQUIRE(fixture.Get(HashOf(i)).found == EntryOf(i));
}

TEST_CASE("Chains that would take much memory are refused") {
  const auto plan = [](uint64_t partition_bits, uint64_t capacity_bits) {
    return kSkimpyStashEngine
        .plan(
            {.entries = 1,
             .parameters = {{"partition_bits", partition_bits}, {"capacity_bits", capacity_bits}}})
        .status();
  };
  REQUIRE_OK(plan(14, 17));
  REQUIRE_OK(plan(7, 24));
  CHECK(plan(8, 24).Is(StatusCode::kInvalidArgument));
  // A forged index may have any number of partitions.
  ChainFixture fixture({{"capacity_bits", 12}});
  fixture.PutNumbers(0, 2000);
  fixture.Flush();
  fixture.Reopen();
  MemoryShare others(fixture.context->table_bytes);
  others.Set(SkimpyStashShape::kMostNewHeads + fixture.files->flash_bytes());
  REQUIRE_CODE(SkimpyStashPartition::Open(*fixture.context, 1, HashPrefix(), fixture.shape,
                                          AsBytes(fixture.partition->Encode())),
               kCorruption);
}

TEST_CASE("Puts of new names read nothing from flash") {
  ChainFixture fixture({{"capacity_bits", 15}, {"garbage", 0}});
  const uint64_t before = fixture.env.Calls(SimCall::kRead);
  fixture.PutNumbers(0, 30'000);
  CHECK(fixture.env.Calls(SimCall::kRead) == before);
  CHECK(fixture.partition->tally().pages_written == 176);
}

TEST_CASE("Filters that are loaded from flash are as they were") {
  ChainFixture fixture({{"capacity_bits", 13}, {"garbage", 2}});
  fixture.PutNumbers(0, 6000);
  fixture.PutNumbers(1000, 2000, 2);
  const auto counts = fixture.partition->counts();
  const uint64_t memory = fixture.context->filter_bytes;
  REQUIRE(fixture.partition->tally().directory_pages > 0);
  REQUIRE_FALSE(counts.empty());
  fixture.partition->DropFilters();
  CHECK(fixture.partition->HasDroppedFilters());
  CHECK(fixture.context->filter_bytes == 0);
  CHECK(memory > 4096);
  CHECK(fixture.context->table_bytes >= 4 * 1024);  // the heads
  REQUIRE_OK(fixture.partition->LoadFilters());
  CHECK_FALSE(fixture.partition->HasDroppedFilters());
  CHECK(fixture.context->filter_bytes == memory);
  CHECK(fixture.partition->counts() == counts);
  CHECK(fixture.Faults() == 0);
}

TEST_CASE("Opening reads the directory, and the pages of the log that are newer") {
  ChainFixture fixture({{"capacity_bits", 15}});
  fixture.PutNumbers(0, 32'000);
  fixture.Flush();
  const auto tally = fixture.partition->tally();
  const uint64_t directory = 4 * 4096 / 4080 + 1;
  CHECK(tally.directory_pages == 14);  // 4096 buckets of 13 bytes, once
  const uint64_t newer = tally.pages_written - 8 * 14;
  fixture.Reopen();
  // Pages are read in runs of at most 64, and a file has 16.
  const uint64_t before = fixture.env.Calls(SimCall::kRead);
  fixture.Reopen();
  const uint64_t reads = fixture.env.Calls(SimCall::kRead) - before;
  CHECK(reads <= directory / 16 + 1 + newer / 16 + 2);
  CHECK(reads < tally.pages_written / 16);
  for (uint64_t i = 0; i < 32'000; i += 7) REQUIRE(fixture.Get(HashOf(i)).found == EntryOf(i));
}

TEST_CASE("Without its directory on flash, a partition is recovered from its log") {
  ChainFixture fixture({{"capacity_bits", 13}, {"garbage", 2}});
  fixture.PutNumbers(0, 6000);
  for (uint32_t round = 2; round < 4; ++round) fixture.PutNumbers(0, 1500, round);
  fixture.Flush();
  fixture.Reopen();
  REQUIRE_OK(fixture.partition->LoadFilters());
  const auto counts = fixture.partition->counts();
  // The directory is the only file that is no log: its pages have another kind.
  uint64_t damaged = 0;
  auto names = fixture.env.ListDirectory(ChainFixture::kDirectory);
  REQUIRE_OK(names);
  for (const DirectoryEntry& name : *names) {
    const std::string path = JoinPath(ChainFixture::kDirectory, name.name);
    auto file = fixture.env.OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    std::array<uint8_t, kPageSize> page;
    REQUIRE_OK((*file)->Read(0, page));
    if (PageKindOf(page) != SkimpyStashShape::kDirectoryPage) continue;
    page[100] ^= 1;
    REQUIRE_OK((*file)->Write(0, page));
    ++damaged;
  }
  REQUIRE(damaged == 1);
  fixture.Reopen();
  CHECK(fixture.context->damaged_filters == 1);
  REQUIRE_OK(fixture.partition->LoadFilters());
  CHECK(fixture.partition->counts() == counts);
  CHECK(fixture.Faults() == 0);
  for (uint64_t i = 0; i < 6000; ++i) {
    REQUIRE(fixture.Get(HashOf(i)).found == EntryOf(i, i < 1500 ? 3 : 1));
  }
  // The next page replaces the damaged directory.
  fixture.PutNumbers(6000, 1);
  fixture.Flush();
  CHECK(fixture.partition->tally().directory_pages > 0);
}

TEST_CASE("Pointers that lead nowhere, upwards or in a circle end a lookup") {
  ChainFixture fixture({{"capacity_bits", 8}, {"enhanced", 0}, {"garbage", 0}});
  const uint64_t hash = HashOf(1);
  struct Case {
    std::array<uint32_t, 2> pointers;  // of the record in each of two pages
    uint32_t head;                     // the page that the directory leads to
  };
  const Case cases[] = {
      {{2, 1}, 0}, {{2, 1}, 1},  {{1, 2}, 1},  {{0, 3}, 1},
      {{3, 1}, 1}, {{77, 0}, 0}, {{0, 77}, 1}, {{ChainRecord::kMostPointer, 0}, 0}};
  for (const Case& wrong : cases) {
    AlignedBuffer pages(2 * kPageSize);
    for (uint32_t page = 0; page < 2; ++page) {
      const PageBytes bytes(pages.data() + page * kPageSize, kPageSize);
      FlashEntry other = EntryOf(2);
      other.hash = hash + (uint64_t{1} << 40);  // of the same bucket
      WriteChainRecord(fixture.shape.layout, bytes, 0,
                       {.entry = other, .pointer = wrong.pointers[page]});
      SetPageKind(bytes, SkimpyStashShape::kRecordPage, 1000);  // more than fit
    }
    auto first = fixture.files->Append(0, 5, pages.view());
    REQUIRE_OK(first);
    ChainLog log;
    log.Append(*first, 2);
    BucketDirectory directory(fixture.shape);
    directory.MakeHeads();
    directory.Apply({.entry = EntryOf(1)}, wrong.head);
    const SkimpyStashVersion version(*fixture.files, fixture.shape, log, directory);
    LookupState state;
    state.hash = hash;
    version.Begin(state, directory);
    int steps = 0;
    while (const auto address = version.NextPage(state)) {
      REQUIRE(++steps <= 2);
      std::optional<ConstPageBytes> page;
      const uint32_t number = address->page();
      if (fixture.files->Resolve(*address)) {
        page = ConstPageBytes(pages.data() + (number - first->page()) * kPageSize, kPageSize);
      }
      version.Take(state, page);
      REQUIRE_FALSE(state.found);
    }
    uint64_t damaged = 0;
    REQUIRE_OK(version.Collect([](const FlashEntry&) {}, damaged));
    REQUIRE_OK(version.Verify([](const std::string&, const std::string&) {}));
    ChainCollector collector(*fixture.files, fixture.shape);
    collector.Forget();
    REQUIRE_OK(collector.Gather(log, directory));
    fixture.files->EndFile(0, 5);
  }
}

}  // namespace siltfs::testing
