// The costs of SkimpyStash beside the figures of its paper. docs/engines.md quotes the results.
#include <cmath>
#include <numeric>

#include "history.h"
#include "index/flash/flash_index.h"
#include "skimpy_stash_fixture.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kBits = 16;
constexpr uint64_t kCapacity = uint64_t{1} << kBits;
// A sixth of the numbers gives averages that are precise enough.
constexpr uint64_t kHitStride = 6;

EngineParameters With(uint64_t per_bucket, bool enhanced, uint64_t garbage = 0) {
  return {{"capacity_bits", kBits},
          {"entries_per_bucket", per_bucket},
          {"enhanced", enhanced ? 1U : 0U},
          {"garbage", garbage}};
}

// Standard deviation of the buckets' sizes, divided by the mean.
double Unevenness(const std::vector<double>& sizes) {
  const auto n = static_cast<double>(sizes.size());
  const double mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / n;
  double squares = 0;
  for (const double size : sizes) squares += (size - mean) * (size - mean);
  return std::sqrt(squares / n) / mean;
}

double UnevennessOf(const ChainFixture& fixture) {
  std::vector<double> sizes(fixture.shape.buckets());
  const PageFiles::FilePin pin = fixture.files->Pin();
  const auto snapshot = fixture.partition->TakeSnapshot();
  if (fixture.shape.enhanced) {
    const auto counts = fixture.partition->counts();
    return Unevenness({counts.begin(), counts.end()});
  }
  uint64_t damaged = 0;
  REQUIRE_OK(snapshot.version->Collect(
      [&](const FlashEntry& entry) { ++sizes[fixture.shape.BucketsOf(entry.hash)[0]]; }, damaged));
  return Unevenness(sizes);
}

void FillUp(ChainFixture& fixture) {
  fixture.PutNumbers(0, kCapacity);
  fixture.Flush();
}

}  // namespace

TEST_CASE("A full partition takes 4/k or 1 + 5/k bytes of memory for each entry") {
  const uint64_t per_bucket = GENERATE(1, 4, 8, 32);
  const bool enhanced = GENERATE(false, true);
  ChainFixture fixture(With(per_bucket, enhanced));
  FillUp(fixture);
  const double k = static_cast<double>(per_bucket);
  const double paper = enhanced ? 1 + 5 / k : 4 / k;
  const double bytes =
      static_cast<double>(fixture.context->filter_bytes + fixture.context->table_bytes) / kCapacity;
  INFO("k " << k << ", enhanced " << enhanced << ": " << bytes << " bytes");
  CHECK(bytes == Approx(paper).epsilon(0.01));
  fixture.partition->DropFilters();
  CHECK(fixture.context->filter_bytes == 0);
  CHECK(fixture.context->table_bytes / double{kCapacity} == Approx(4 / k).epsilon(0.01));
}

TEST_CASE("Two buckets make chains more even, and the gain grows with k") {
  const auto [per_bucket, least, most] =
      GENERATE(table<uint64_t, double, double>({{1, 1.2, 1.8}, {8, 2.0, 4.5}, {32, 4.0, 9.0}}));
  ChainFixture base(With(per_bucket, false));
  ChainFixture enhanced(With(per_bucket, true));
  FillUp(base);
  FillUp(enhanced);
  const double gain = UnevennessOf(base) / UnevennessOf(enhanced);
  INFO("k " << per_bucket << ": base " << UnevennessOf(base) << ", enhanced "
            << UnevennessOf(enhanced) << ", gain " << gain);
  CHECK(UnevennessOf(base) == Approx(1 / std::sqrt(per_bucket)).epsilon(0.05));  // Poisson
  CHECK(gain > least);
  CHECK(gain < most);
}

TEST_CASE("A hit reads about k/2 pages, and a miss none but for false positives") {
  const uint64_t per_bucket = GENERATE(4, 8, 16);
  const bool enhanced = GENERATE(false, true);
  ChainFixture fixture(With(per_bucket, enhanced));
  FillUp(fixture);
  const auto k = static_cast<double>(per_bucket);
  const double hit = fixture.Reads(0, kCapacity, kHitStride);
  constexpr uint64_t kMisses = 20'000;
  uint64_t reads = 0;
  uint64_t misses_that_read = 0;
  for (uint64_t i = 0; i < kMisses; ++i) {
    const uint32_t of_one = fixture.Get(HashOf(10'000'000 + i)).reads;
    reads += of_one;
    misses_that_read += of_one > 0 ? 1 : 0;
  }
  const double miss = static_cast<double>(reads) / double{kMisses};
  const double wrong = static_cast<double>(misses_that_read) / double{kMisses};
  INFO("k " << k << ", enhanced " << enhanced << ": hit " << hit << ", miss " << miss
            << ", misses that read " << wrong);
  if (enhanced) {
    CHECK(hit > k / 2);
    CHECK(hit < k / 2 + 1.2);
    // Two filters of 2.2 to 2.8 percent each; some buckets have more than k entries.
    CHECK(wrong < 0.065);
    CHECK(miss < 0.075 * k);
  } else {
    CHECK(hit > k / 2 + 0.5);
    CHECK(hit < k / 2 + 1.5);
    CHECK(miss == Approx(k).epsilon(0.05));
  }
}

TEST_CASE("The more often chains are collected, the fewer pages a lookup reads") {
  std::vector<double> reads;
  std::vector<double> written;  // records for each update
  for (const uint64_t garbage : {0U, 64U, 16U, 4U}) {
    ChainFixture fixture(With(8, true, garbage));
    fixture.PutNumbers(0, kCapacity / 2);
    const uint64_t before = fixture.partition->tally().pages_written;
    constexpr uint64_t kUpdates = kCapacity * 2;
    Random random(1);
    for (uint64_t i = 0; i < kUpdates; ++i) fixture.Put(EntryOf(random.Below(kCapacity / 2), 2));
    fixture.Flush();
    const auto tally = fixture.partition->tally();
    reads.push_back(fixture.Reads(0, kCapacity / 2, kHitStride));
    written.push_back(static_cast<double>((tally.pages_written - before) * 170) / kUpdates);
    INFO("g " << garbage << ": reads " << reads.back() << ", records written " << written.back()
              << ", chains collected " << tally.collected_chains << ", files released "
              << tally.released_files << ", collector's reads for an update "
              << static_cast<double>(tally.collector_reads) / kUpdates << ", pages of the log "
              << fixture.files->live_pages(0));
    if (garbage == 0) {
      CHECK(tally.collected_chains == 0);
      CHECK(written.back() == Approx(1).epsilon(0.01));
      continue;
    }
    CHECK(tally.collected_chains > 0);
    CHECK(reads.back() < reads[reads.size() - 2]);
    // One record for the update, and a chain of at most k/2 valid records for each g updates.
    const double model = 1 + 4.0 / static_cast<double>(garbage);
    CHECK(written.back() < model * 1.1);
    CHECK(written.back() > 1 + (model - 1) * 0.5);
    if (garbage == 4) CHECK(tally.released_files > 0);
  }
}

TEST_CASE("A put writes its record once; splits, the log of puts and directories add to it") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/index"));
  const EngineParameters parameters = {{"capacity_bits", 14}};
  auto opened = OpenFlashIndex(env, {.directory = "/index", .partition_bits = 0, .hash_secret = 7},
                               MakeSkimpyStashEngine(parameters));
  REQUIRE_OK(opened);
  ChunkIndex& index = **opened;
  constexpr uint64_t kPuts = 300'000;
  Random random(1);
  for (uint64_t i = 0; i < kPuts; ++i) {
    const IndexEntry entry{NameOf(i), RandomLocation(random)};
    REQUIRE_OK(index.Put({&entry, 1}, i + 1));
  }
  REQUIRE_OK(index.Flush());
  const IndexStats stats = index.stats();
  std::set<uint32_t> partitions;
  uint64_t engine = 0;
  for (const auto& store : stats.stores) {
    if (store.kind == "put_log") continue;
    partitions.insert(store.partition);
    engine += store.memory_bytes;
  }
  const double bytes = static_cast<double>(stats.flash_bytes_written) / kPuts;
  const double flash = static_cast<double>(stats.flash_bytes) / kPuts;
  INFO(bytes << " bytes written for each put, " << flash << " bytes of flash and "
             << static_cast<double>(engine) / kPuts << " of memory for each entry, "
             << partitions.size() << " partitions, " << stats.merges << " splits");
  CHECK(partitions.size() >= 24);
  CHECK(stats.merges + 1 == partitions.size());
  // A record (24.1) and an eighth for directories, and an entry of the log of puts (20.1). A split
  // writes all entries of a partition again, and two directories.
  constexpr double kEntries = 1 << 14;
  const double split = kEntries * 24.1 + 2 * 2048 * 13;
  const double model = 24.1 * 1.125 + 20.1 + split * static_cast<double>(stats.merges) / kPuts;
  CHECK(bytes == Approx(model).epsilon(0.05));
  // No page of the old partitions is left.
  CHECK(flash < 30);
}

}  // namespace siltfs::testing
