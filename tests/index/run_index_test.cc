// A whole index with sorted runs instead of HashStores.
#include "index/open_index.h"
#include "index/silt/memory_plan.h"
#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kNames = FilledFixture::kNames;

struct RunFixture : FilledFixture {
  RunFixture() {
    options.sorted_runs = true;
    options.page_index = PageIndexKind::kBounds;
  }
};

double ReadsOf(ChunkIndex& index, uint64_t first, uint64_t count) {
  const uint64_t before = index.stats().flash_reads;
  for (uint64_t i = first; i < first + count; ++i) REQUIRE(index.Get(NameOf(i)).ok());
  return static_cast<double>(index.stats().flash_reads - before) / static_cast<double>(count);
}

void RequireVerified(ChunkIndex& index) {
  REQUIRE_OK(index.Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
}

}  // namespace

TEST_CASE(
    "the engine parameter sorted_runs makes an index of runs, and ForEach lists it in order") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/index"));
  auto opened =
      OpenIndex(env, {.engine = IndexEngine::kSilt,
                      .directory = "/index",
                      .parameters = {{"partition_bits", 1}, {"bucket_bits", 6}, {"sorted_runs", 1}},
                      .background = false});
  REQUIRE_OK(opened);
  ChunkIndex& index = **opened;
  PutNumbers(index, 0, 20'000, 1);
  REQUIRE_OK(index.Delete(NameOf(17)));
  REQUIRE(StoresOfKind(index.stats(), "run_store") > 0);
  CHECK(StoresOfKind(index.stats(), "hash_store") == 0);
  uint64_t entries = 0;
  uint64_t last = 0;
  REQUIRE_OK(index.ForEach([&](const OrderedEntry& entry) {
    REQUIRE(entry.order > last);
    last = entry.order;
    ++entries;
    return Status::Ok();
  }));
  CHECK(entries == 19'999);
  CHECK_FALSE(GetNumber(index, 17).has_value());
  RequireVerified(index);
}

TEST_CASE("a partition may have HashStores and runs, and a merge takes both") {
  RunFixture fixture;
  fixture.options.hash_store_share = 0.9;  // no merge
  for (uint32_t part = 0; part < 6; ++part) {
    fixture.options.sorted_runs = part % 2 == 0;
    auto index = fixture.Open();
    PutNumbers(*index, part * 300, 1000, part + 1, part);
    REQUIRE_OK(index->Delete(NameOf(part * 300)));
    REQUIRE_OK(index->Close());
  }
  const auto check = [](ChunkIndex& index) {
    for (uint32_t part = 0; part < 6; ++part) {
      REQUIRE_FALSE(GetNumber(index, part * 300).has_value());
      CheckNumbers(index, part * 300 + 1, part == 5 ? 999 : 299, part);
    }
    RequireVerified(index);
  };
  auto index = fixture.Open();
  REQUIRE(StoresOfKind(index->stats(), "run_store") > 4);
  REQUIRE(StoresOfKind(index->stats(), "hash_store") > 4);
  check(*index);
  REQUIRE_OK(index->Close());
  fixture.options.hash_store_share = 0.01;
  index = fixture.Open();
  PutNumbers(*index, 50'000, 1000, 7);
  REQUIRE(index->stats().merges > 0);
  CHECK(StoresOfKind(index->stats(), "hash_store") == 0);
  check(*index);
}

TEST_CASE("without memory for filters a lookup takes one read for each run") {
  RunFixture fixture;
  auto index = fixture.Fill();
  const auto runs = static_cast<double>(StoresOfKind(index->stats(), "run_store"));
  REQUIRE(runs > 4);
  const uint64_t loaded = MemoryOf(index->stats(), "run_store");
  CHECK(ReadsOf(*index, 0, 4000) < 1.01);
  CHECK(ReadsOf(*index, 1'000'000, 4000) < 1.01);
  REQUIRE_OK(index->SetMemoryLimit(0));
  CHECK(MemoryOf(index->stats(), "run_store") < loaded / 10);
  CheckNumbers(*index, 0, kNames);
  const double reads = ReadsOf(*index, 1'000'000, 2000);
  CHECK(reads > runs);
  CHECK(reads < runs + 1.1);  // and one in the SortedStore
  REQUIRE_OK(index->SetMemoryLimit(kNoMemoryLimit));
  CHECK(index->stats().load_backlog == 0);
  CHECK(MemoryOf(index->stats(), "run_store") == loaded);
  CHECK(ReadsOf(*index, 0, 4000) < 1.01);
}

TEST_CASE("an index of runs keeps to its memory limit while it is filled") {
  RunFixture fixture;
  fixture.options.memory_limit = GENERATE(uint64_t{0}, uint64_t{900'000}, kNoMemoryLimit);
  const uint64_t room = PlanMemory(fixture.options.memory_limit, fixture.options, 6, 0).index_bytes;
  {
    auto index = fixture.Open();
    for (uint64_t part = 0; part < 40; ++part) {
      PutNumbers(*index, part * 500, 500, part + 1);
      const IndexStats stats = index->stats();
      // The boundaries of a run are in its kStoreBytes.
      REQUIRE(MemoryOf(stats, "run_store") <=
              std::min(room, kNoMemoryLimit / 2) + StoresOfKind(stats, "run_store") * kStoreBytes);
    }
    CheckNumbers(*index, 0, kNames);
    REQUIRE_OK(index->Close());
  }
  fixture.options.memory_limit = fixture.options.memory_limit == 0 ? kNoMemoryLimit : 0;
  fixture.options.serve_early = true;
  auto index = fixture.Open();
  CheckNumbers(*index, 0, kNames);
  RequireVerified(*index);
}

TEST_CASE("a run without a readable filter is searched, and the next merge replaces it") {
  RunFixture fixture;
  fixture.Fill();
  const StoreFileId file = fixture.Files(StoreKind::kHash).at(0);
  auto frozen = FrozenFile::Open(fixture.env, SiltFixture::kDirectory, file);
  REQUIRE_OK(frozen);
  FlipByte(fixture.env, fixture.PathOf(file), (*frozen)->payload_offset() + 40);
  auto index = fixture.Open();
  CHECK(index->stats().damaged_pages == 1);
  CheckNumbers(*index, 0, kNames);
  CHECK(FindingsOf(*index) == "store-index ");
  PutNumbers(*index, kNames, kNames, 2);
  RequireVerified(*index);
  CheckNumbers(*index, 0, 2 * kNames);
}

TEST_CASE("an index with damaged page boundaries of a run is refused") {
  RunFixture fixture;
  fixture.Fill();
  const StoreFileId file = fixture.Files(StoreKind::kHash).at(0);
  const uint64_t size = fixture.Contents(file).size();
  FlipByte(fixture.env, fixture.PathOf(file), size - 80 - 20);
  const auto opened = OpenSiltIndex(fixture.env, fixture.options);
  REQUIRE_CODE(opened, kCorruption);
  CHECK(opened.status().path() == fixture.PathOf(file));
  CHECK(opened.status().cause().find("page boundaries") != std::string::npos);
}

}  // namespace siltfs::testing
