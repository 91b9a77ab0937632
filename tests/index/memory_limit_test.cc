// SILT, section 4, "Fail-Graceful Indexing": with less memory lookups need more reads, but nothing
// else changes.
#include "index/silt/memory_plan.h"
#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kNames = FilledFixture::kNames;

void RequireAllKinds(const ChunkIndex& index) {
  REQUIRE(StoresOfKind(index.stats(), "sorted_store") == 1);
  REQUIRE(StoresOfKind(index.stats(), "hash_store") > 4);
}

double ReadsOf(ChunkIndex& index, uint64_t first, uint64_t count) {
  const uint64_t before = index.stats().flash_reads;
  for (uint64_t i = first; i < first + count; ++i) REQUIRE(index.Get(NameOf(i)).ok());
  return static_cast<double>(index.stats().flash_reads - before) / static_cast<double>(count);
}

}  // namespace

TEST_CASE("without memory an absent name costs two reads per HashStore and a few per SortedStore") {
  FilledFixture fixture;
  auto index = fixture.Fill();
  RequireAllKinds(*index);
  const auto stores = static_cast<double>(StoresOfKind(index->stats(), "hash_store"));
  CHECK(FiltersAndTries(*index) > 0);
  CHECK(ReadsOf(*index, 1'000'000, 2000) < 1.1);

  REQUIRE_OK(index->SetMemoryLimit(0));
  CHECK(FiltersAndTries(*index) == 0);
  CheckNumbers(*index, 0, kNames);
  // Each HashStore takes about two reads. It takes fewer if the two buckets of a name share a page,
  // and more if the store has entries in its stash.
  const double reads = ReadsOf(*index, 1'000'000, 2000);
  CHECK(reads > stores);
  CHECK(reads < 3 * stores + 4);

  REQUIRE_OK(index->SetMemoryLimit(kNoMemoryLimit));
  CHECK(index->stats().load_backlog == 0);
  CHECK(ReadsOf(*index, 1'000'000, 2000) < 1.1);
  CHECK(ReadsOf(*index, 0, 2000) < 1.01);
}

TEST_CASE("page boundaries stay in memory whatever its limit is, and lookups take one read there") {
  FilledFixture fixture;
  fixture.options.page_index = PageIndexKind::kBounds;
  fixture.options.hash_store_share = 0.01;  // all entries are in SortedStores
  auto index = fixture.Fill();
  const uint64_t bounds = MemoryOf(index->stats(), "sorted_store");
  REQUIRE(bounds > 0);
  REQUIRE_OK(index->SetMemoryLimit(0));
  CHECK(MemoryOf(index->stats(), "sorted_store") == bounds);
  CHECK(ReadsOf(*index, 0, 2000) < 1.01);
  REQUIRE_OK(index->Close());
  fixture.options.memory_limit = 0;
  index = fixture.Open();
  CHECK(MemoryOf(index->stats(), "sorted_store") == bounds);
  CHECK(ReadsOf(*index, 0, 2000) < 1.01);
}

TEST_CASE("filters of HashStores are kept first, then tries, then slices, as far as they fit") {
  FilledFixture fixture;
  auto index = fixture.Fill();
  RequireAllKinds(*index);
  const uint64_t all = FiltersAndTries(*index);
  const uint64_t filters = MemoryOf(index->stats(), "hash_store");
  const uint64_t slices = fixture.Contents(fixture.Files(StoreKind::kFilter).at(0)).size() - 120;
  uint64_t last = 0;
  bool some_but_not_all = false;
  // The first limit leaves no room for filters or tries. The last limit has room for all filters,
  // tries and slices.
  const uint64_t most = 2U << 20;
  for (uint64_t limit = 0; limit <= most; limit += most / 512) {
    REQUIRE_OK(index->SetMemoryLimit(limit));
    const uint64_t room = PlanMemory(limit, fixture.options, 6, 0).index_bytes;
    const uint64_t taken = FiltersAndTries(*index);
    REQUIRE(taken <= room);
    REQUIRE(taken >= last);
    some_but_not_all = some_but_not_all || (taken > 0 && taken < filters);
    if (MemoryOf(index->stats(), "sorted_store") > 0) {
      REQUIRE(MemoryOf(index->stats(), "hash_store") == filters);
    }
    last = taken;
  }
  CHECK(some_but_not_all);
  CHECK(last == all + slices);
}

TEST_CASE(
    "an index is filled, converted and merged under a limit, and opened again under another") {
  FilledFixture fixture;
  fixture.options.memory_limit = GENERATE(uint64_t{0}, uint64_t{800'000}, kNoMemoryLimit);
  {
    auto index = fixture.Open();
    for (uint64_t part = 0; part < 40; ++part) {
      PutNumbers(*index, part * 500, 500, part + 1);
      const uint64_t room =
          PlanMemory(fixture.options.memory_limit, fixture.options, 6, 0).index_bytes;
      REQUIRE(FiltersAndTries(*index) <= room);
    }
    CheckNumbers(*index, 0, kNames);
    REQUIRE_OK(index->Close());
  }
  fixture.options.memory_limit = fixture.options.memory_limit == 0 ? kNoMemoryLimit : 0;
  auto index = fixture.Open();
  CHECK((FiltersAndTries(*index) == 0) == (fixture.options.memory_limit == 0));
  CheckNumbers(*index, 0, kNames);
  REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
}

TEST_CASE("without room for filters, partitions are merged before they have many HashStores") {
  FilledFixture fixture;
  fixture.options.memory_limit = 0;
  fixture.options.hash_store_share = 0.9;
  auto index = fixture.Open();
  const MemoryPlan plan = PlanMemory(0, fixture.options, 6, 0);
  for (uint64_t part = 0; part < 80; ++part) {
    PutNumbers(*index, part * 250, 250, part + 1);
    REQUIRE(StoresOfKind(index->stats(), "hash_store") <= plan.max_unfiltered_stores + 2);
  }
  CHECK(index->stats().merges > 2);
}

TEST_CASE("a log with a table too large for the limit is converted") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 11;
  fixture.options.partition_bits = 2;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 1000, 1);
  const uint64_t before = MemoryOf(index->stats(), "log_store");
  REQUIRE(before >= 4 * 48U << 10);
  REQUIRE_OK(index->SetMemoryLimit(0));
  CHECK(MemoryOf(index->stats(), "log_store") <= 4 * (6U << 10) + 4 * 3 * kPageSize);
  CheckNumbers(*index, 0, 1000);
  PutNumbers(*index, 1000, 5000, 2);
  CheckNumbers(*index, 0, 6000);
  REQUIRE_OK(index->Close());

  // If there is no room for a large table, a log written with a small table is replayed into a
  // small one.
  fixture.options.memory_limit = 0;
  const uint64_t conversions = index->stats().conversions;
  index = fixture.Open();
  CHECK(index->stats().conversions == 0);
  CHECK(conversions > 4);
  CheckNumbers(*index, 0, 6000);
  REQUIRE_OK(index->SetMemoryLimit(kNoMemoryLimit));
  PutNumbers(*index, 6000, 5000, 3);
  CheckNumbers(*index, 0, 11'000);
}

TEST_CASE("a log too long for a small table is replayed into a large one, then converted") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 11;
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 6000, 1);
    REQUIRE_OK(index->Close());
    REQUIRE(index->stats().conversions == 0);
  }
  fixture.options.memory_limit = 0;
  auto index = fixture.Open();
  CheckNumbers(*index, 0, 6000);
  PutNumbers(*index, 6000, 1, 2);
  REQUIRE_OK(index->Flush());  // converts the log, because there is no background thread
  CHECK(MemoryOf(index->stats(), "log_store") < 48U << 10);
  CheckNumbers(*index, 0, 6001);
}

TEST_CASE("an index works without a damaged filter or trie, and a merge replaces it") {
  FilledFixture fixture;
  RequireAllKinds(*fixture.Fill());
  const StoreKind kind = GENERATE(StoreKind::kHash, StoreKind::kSorted);
  const StoreFileId file = fixture.Files(kind).at(0);
  const uint64_t size = fixture.Contents(file).size();
  FlipByte(fixture.env, fixture.PathOf(file), size - 100);  // the end of the filter or trie
  auto index = fixture.Open();
  CHECK(index->stats().damaged_pages == 1);
  CheckNumbers(*index, 0, kNames);
  CHECK(FindingsOf(*index) == "store-index ");
  PutNumbers(*index, kNames, kNames, 2);
  REQUIRE(index->stats().merges > 0);
  CHECK(FindingsOf(*index).empty());
  CheckNumbers(*index, 0, 2 * kNames);
}

TEST_CASE("a filter that can't be read is left out") {
  FilledFixture fixture;
  auto index = fixture.Fill();
  RequireAllKinds(*index);
  REQUIRE_OK(index->SetMemoryLimit(0));
  fixture.env.FailCall({.calls = SimCall::kRead, .sticky = true, .path_part = ".hash"});
  REQUIRE_OK(index->SetMemoryLimit(kNoMemoryLimit));
  fixture.env.ClearFaults();
  CHECK(MemoryOf(index->stats(), "hash_store") == 0);
  CHECK(MemoryOf(index->stats(), "sorted_store") > 0);
  CHECK(index->stats().damaged_pages == 0);
  CheckNumbers(*index, 0, kNames);
  PutNumbers(*index, kNames, 1000, 2);
}

TEST_CASE("a read-only index obeys the limit, and writes nothing for it") {
  FilledFixture fixture;
  RequireAllKinds(*fixture.Fill());
  fixture.options.read_only = true;
  fixture.options.memory_limit = GENERATE(uint64_t{0}, kNoMemoryLimit);
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  auto index = fixture.Open();
  CHECK((FiltersAndTries(*index) == 0) == (fixture.options.memory_limit == 0));
  REQUIRE_OK(index->SetMemoryLimit(0));
  CHECK(FiltersAndTries(*index) == 0);
  CheckNumbers(*index, 0, kNames);
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);
}

TEST_CASE("a plan keeps to the limit, and shrinks LogStores last") {
  SiltIndexOptions options;
  const unsigned partition_bits = GENERATE(0, 3, 6);
  MemoryPlan last;
  for (uint64_t limit = 0; limit <= 256U << 20; limit += 64U << 10) {
    const MemoryPlan plan = PlanMemory(limit, options, 11, partition_bits);
    REQUIRE(plan.bucket_bits >= 8);
    REQUIRE(plan.bucket_bits <= 11);
    REQUIRE(plan.max_frozen_logs >= 1);
    REQUIRE(plan.max_frozen_logs <= options.max_frozen_logs);
    REQUIRE(plan.sort_memory_bytes <= options.sort_memory_bytes);
    REQUIRE(plan.bucket_bits >= last.bucket_bits);  // more memory never gives smaller tables
    REQUIRE(plan.sort_memory_bytes >= last.sort_memory_bytes);
    const uint64_t tables = (4U << plan.bucket_bits) * 6;
    const uint64_t used = (tables << partition_bits) + plan.max_frozen_logs * tables +
                          plan.sort_memory_bytes + plan.index_bytes;
    REQUIRE((plan.index_bytes == 0 || used <= limit));
    last = plan;
  }
  CHECK(last.bucket_bits == 11);
  CHECK(last.sort_memory_bytes == options.sort_memory_bytes);
  CHECK(last.index_bytes > 200U << 20);
  CHECK(PlanMemory(kNoMemoryLimit, options, 11, 6).index_bytes == kNoMemoryLimit);
  CHECK(PlanMemory(0, options, 3, 6).bucket_bits == 3);  // the value the index was made with
}

}  // namespace siltfs::testing
