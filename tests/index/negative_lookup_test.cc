// Lookups of absent names under a limit that leaves room for SortedStores' filters. Only the few
// names that pass the filters' slices cost reads. Answers do not depend on the filters' state.
#include "index/silt/memory_plan.h"
#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kNames = FilledFixture::kNames;
constexpr uint64_t kAbsent = 1'000'000;
constexpr uint64_t kPlenty = 64U << 20;

double ReadsOfAbsent(ChunkIndex& index, uint64_t count = 4000) {
  const uint64_t before = index.stats().flash_reads;
  for (uint64_t i = 0; i < count; ++i) REQUIRE_FALSE(GetNumber(index, kAbsent + i));
  return static_cast<double>(index.stats().flash_reads - before) / static_cast<double>(count);
}

// All entries are merged into a SortedStore, so every read is a read of the SortedStore.
struct SortedFixture : FilledFixture {
  SortedFixture() {
    options.hash_store_share = 0.01;
    options.memory_limit = kPlenty;
  }
  StoreFileId Filter() {
    const auto files = Files(StoreKind::kFilter);
    REQUIRE(files.size() == 1);
    return files.at(0);
  }
  uint64_t SliceBytes() { return (Contents(Filter()).size() - 120) / kRibbonSlices; }
};

}  // namespace

TEST_CASE("an absent name costs almost no read with memory for filters, and one without") {
  SortedFixture fixture;
  auto index = fixture.Fill();
  CHECK(index->stats().load_backlog == 0);
  CHECK(ReadsOfAbsent(*index) < 0.01);
  CheckNumbers(*index, 0, kNames);

  REQUIRE_OK(index->SetMemoryLimit(kNoMemoryLimit));  // without a limit no slices are loaded
  const double without = ReadsOfAbsent(*index);
  CHECK(without > 0.9);
  CHECK(without < 1.1);
  CheckNumbers(*index, 0, kNames);

  REQUIRE_OK(index->SetMemoryLimit(kPlenty));
  CHECK(ReadsOfAbsent(*index) < 0.01);
  REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
}

TEST_CASE("merges write filters only if memory has room for them") {
  SortedFixture fixture;
  fixture.options.sorted_filters = std::nullopt;
  fixture.options.memory_limit = kNoMemoryLimit;
  auto index = fixture.Fill();
  CHECK(fixture.Files(StoreKind::kFilter).empty());
  REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
  REQUIRE_OK(index->Close());
  fixture.options.memory_limit = kPlenty;
  index = fixture.Open();
  CHECK(index->stats().damaged_filters == 0);  // the store has none to be damaged
  PutNumbers(*index, 50'000, 1000, 2);
  CHECK(fixture.Files(StoreKind::kFilter).size() == 1);
  CHECK(ReadsOfAbsent(*index) < 0.01);
  REQUIRE_OK(index->SetMemoryLimit(0));
  PutNumbers(*index, 60'000, 1000, 3);
  CHECK(fixture.Files(StoreKind::kFilter).empty());
  CheckNumbers(*index, 0, kNames);
}

TEST_CASE("batched lookups use the filters, too") {
  SortedFixture fixture;
  auto index = fixture.Fill();
  std::vector<ChunkName> names;
  for (uint64_t i = 0; i < 4000; ++i) names.push_back(NameOf(kAbsent + i));
  std::vector<Answer> answers(names.size());
  const uint64_t before = index->stats().flash_reads;
  REQUIRE_OK(index->Get(names, answers));
  CHECK(index->stats().flash_reads - before < 40);
}

TEST_CASE("every slice that memory allows halves the reads of absent names") {
  SortedFixture fixture;
  auto index = fixture.Fill();
  const uint64_t slice = fixture.SliceBytes();
  REQUIRE_OK(index->SetMemoryLimit(kNoMemoryLimit));
  const uint64_t silt = FiltersAndTries(*index);
  uint64_t slices = kRibbonSlices + 1;
  double last_reads = 0;
  for (uint64_t limit = 2U << 20; limit > 0 && slices > 0; limit -= 1U << 9) {
    REQUIRE_OK(index->SetMemoryLimit(limit));
    const uint64_t taken = FiltersAndTries(*index);
    REQUIRE(taken <=
            PlanMemory(limit, fixture.options, fixture.options.bucket_bits, 0).index_bytes);
    REQUIRE((taken - silt) % slice == 0);
    if ((taken - silt) / slice == slices) continue;
    slices = (taken - silt) / slice;
    const double reads = ReadsOfAbsent(*index);
    const double expected = 1.0 / static_cast<double>(1U << slices);
    INFO(slices << " slices, " << reads << " reads");
    CHECK(reads < 1.15 * expected + 0.005);
    CHECK(reads > 0.85 * expected - 0.005);
    CHECK(reads > last_reads);
    last_reads = reads;
    CheckNumbers(*index, 0, 2000);
  }
  CHECK(slices == 0);
  CHECK(last_reads > 0.9);
}

// If slices took all memory, each new HashStore would lack its filter until slices are dropped.
TEST_CASE("slices leave room for the filters of the next eight HashStores") {
  SortedFixture fixture;
  fixture.options.hash_store_share = 0.2;
  const auto plan = [&](uint64_t limit) { return PlanMemory(limit, fixture.options, 6, 0); };
  // A limit so low that some slices find no room.
  uint64_t limit = 1U << 20;
  while (plan(limit).index_bytes < 33'000) limit += 1000;
  fixture.options.memory_limit = limit;
  auto index = fixture.Open();
  bool some = false;
  for (uint64_t part = 0; part < 80; ++part) {
    PutNumbers(*index, part * 250, 250, part + 1);
    const IndexStats stats = index->stats();
    const uint64_t stores = StoresOfKind(stats, "hash_store") + StoresOfKind(stats, "sorted_store");
    const uint64_t taken = FiltersAndTries(*index) + stores * 1024;
    REQUIRE(taken <= plan(limit).index_bytes);
    if (fixture.Files(StoreKind::kFilter).empty()) continue;
    const uint64_t slice = fixture.SliceBytes();
    const bool has_slices = MemoryOf(index->stats(), "sorted_store") >= slice;
    some = some || has_slices;
    // Requires room for seven of the eight filters, because a trie may need more memory than its
    // bytes on flash.
    if (has_slices) REQUIRE(taken + 7 * 512 <= plan(limit).index_bytes);
  }
  CHECK(some);
  CHECK(ReadsOfAbsent(*index) > 0.01);  // not all slices are loaded
  CHECK(ReadsOfAbsent(*index) < 0.6);
}

TEST_CASE("a missing filter is counted, lookups work without it, and the next merge makes one") {
  SortedFixture fixture;
  fixture.Fill().reset();
  const StoreFileId filter = fixture.Filter();
  REQUIRE_OK(RemoveStoreFile(fixture.env, SiltFixture::kDirectory, filter));
  auto index = fixture.Open();
  CHECK(ReadsOfAbsent(*index) > 0.9);
  CheckNumbers(*index, 0, kNames);
  CHECK(index->stats().damaged_pages == 0);
  CHECK(index->stats().damaged_filters == 1);
  std::vector<std::string> found;
  REQUIRE_OK(index->Verify([&](const IndexFinding& finding) { found.push_back(finding.path); }));
  CHECK(found == std::vector{fixture.PathOf(filter)});
  const uint64_t merges = index->stats().merges;
  PutNumbers(*index, kNames, 2000, 2);
  REQUIRE(index->stats().merges > merges);
  CHECK(ReadsOfAbsent(*index) < 0.01);
  CheckNumbers(*index, 0, kNames + 2000);
}

TEST_CASE("a filter that is damaged, cut short or another store's is counted and not used") {
  SortedFixture fixture;
  fixture.Fill().reset();
  const StoreFileId filter = fixture.Filter();
  const std::string whole = fixture.Contents(filter);
  const size_t kind = GENERATE(0, 1, 2, 3, 4);
  std::string changed = whole;
  if (kind == 0) changed[5] ^= 1;                     // the first slice
  if (kind == 1) changed[changed.size() - 130] ^= 1;  // the last slice
  if (kind == 2) changed[changed.size() - 50] ^= 1;   // the footer
  if (kind == 3) changed.resize(changed.size() / 2);
  if (kind == 4) {  // an undamaged filter, but of a store with the same file name in another index
    SortedFixture other;
    other.options.hash_secret = 100;
    other.Fill().reset();
    REQUIRE(other.Filter() == filter);
    changed = other.Contents(filter);
  }
  REQUIRE(changed != whole);
  fixture.Restore(filter, changed);
  auto index = fixture.Open();
  CheckNumbers(*index, 0, kNames);
  CHECK(ReadsOfAbsent(*index) > 0.9);
  CHECK(index->stats().damaged_filters == 1);
  CHECK(index->stats().damaged_pages == 0);  // no entry is lost
  CHECK(index->stats().load_backlog == 0);
  uint64_t findings = 0;
  REQUIRE_OK(index->Verify([&](const IndexFinding& finding) {
    CHECK(finding.code == "store-index");
    CHECK(finding.path == fixture.PathOf(filter));
    ++findings;
  }));
  CHECK(findings == 1);
  // Changes of the limit do not make the index read a damaged filter again.
  REQUIRE_OK(index->SetMemoryLimit(kNoMemoryLimit));
  REQUIRE_OK(index->SetMemoryLimit(kPlenty));
  CHECK(index->stats().damaged_filters == 1);
  PutNumbers(*index, kNames, 2000, 2);
  CHECK(ReadsOfAbsent(*index) < 0.01);  // the merge wrote a new filter
  CheckNumbers(*index, 0, kNames + 2000);
}

// A store of one page has the same page index for any entries, so only the filter's fingerprint
// tells the two stores apart.
TEST_CASE("the filter of another store is not used, even if both stores have one page") {
  struct OnePage : SortedFixture {
    explicit OnePage(uint64_t first) {
      options.bucket_bits = 8;
      options.max_log_pages = 1;
      options.write_batch_pages = 1;
      options.hash_store_share = 0.01;
      auto index = Open();
      PutNumbers(*index, first, LogSlotsPerPage(kChunkSlots) + 1, 1);
      REQUIRE_OK(index->Close());
      REQUIRE(Files(StoreKind::kSorted).size() == 1);
    }
  };
  OnePage fixture(0);
  OnePage other(5000);
  const StoreFileId filter = fixture.Filter();
  REQUIRE(other.Filter() == filter);
  fixture.Restore(filter, other.Contents(filter));
  auto index = fixture.Open();
  CheckNumbers(*index, 0, LogSlotsPerPage(kChunkSlots));
  CHECK(index->stats().damaged_filters == 1);
}

TEST_CASE("lookups work without a filter that can't be read") {
  SortedFixture fixture;
  fixture.Fill().reset();
  fixture.env.FailCall({.calls = SimCall::kRead, .sticky = true, .path_part = ".filter"});
  auto index = fixture.Open();
  CheckNumbers(*index, 0, kNames);
  CHECK(ReadsOfAbsent(*index) > 0.9);
  CHECK(index->stats().damaged_filters == 0);
}

TEST_CASE("a SortedStore whose filter could not be written is gone after a power cut") {
  SortedFixture fixture;
  fixture.Fill().reset();
  // All changes of filters' files fail. So the merge fails before it writes the manifest that would
  // list the new SortedStore.
  fixture.env.FailCall({.calls = SimCall::kMutating, .sticky = true, .path_part = ".filter"});
  const auto before = fixture.Files(StoreKind::kSorted);
  {
    auto index = fixture.Open();
    const Status put = index->Put(NumberedEntries(kNames, 4000, 0), 2);
    CHECK_FALSE(put.ok());  // a failed write is returned
  }
  fixture.env.ClearFaults();
  fixture.env.PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = 5});
  auto index = fixture.Open();
  CHECK(fixture.Files(StoreKind::kSorted) == before);
  CHECK(fixture.Files(StoreKind::kFilter).size() == 1);
  CheckNumbers(*index, 0, kNames);
  CHECK(ReadsOfAbsent(*index) < 1.1);
  CHECK(index->stats().damaged_filters == 0);
}

TEST_CASE("replaced SortedStores are removed together with their filters") {
  SortedFixture fixture;
  auto index = fixture.Open();
  for (uint64_t part = 0; part < 20; ++part) {
    PutNumbers(*index, part * 1000, 1000, part + 1);
    CHECK(fixture.Files(StoreKind::kFilter).size() == fixture.Files(StoreKind::kSorted).size());
  }
  REQUIRE(index->stats().merges > 3);
}

}  // namespace siltfs::testing
