// Whole BloomStore indexes: what small ones do all the time, and the costs of larger ones beside
// the paper's formulas. The option -s prints the figures, which are the same in every run.
#include <cmath>

#include "history.h"
#include "index/bloom_store/bloom_store_engine.h"
#include "index/flash/bloom_filter.h"
#include "index/flash/flash_index.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";
constexpr uint64_t kBatch = 1000;

struct Fixture {
  explicit Fixture(EngineParameters with, unsigned partition_bits) : parameters(std::move(with)) {
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    options.directory = kDirectory;
    options.partition_bits = partition_bits;
    options.hash_secret = 99;
  }
  void Open() {
    auto opened = OpenFlashIndex(env, options, MakeBloomStoreEngine(parameters));
    REQUIRE_OK(opened);
    index = std::move(*opened);
  }
  // Puts the names of numbers from `first` on.
  void Put(uint64_t first, uint64_t count, uint32_t version = 1) {
    std::vector<IndexEntry> entries;
    for (uint64_t i = first; i < first + count; ++i) {
      entries.push_back({NameOf(i), {version, static_cast<uint32_t>(i), 1}});
      if (entries.size() < kBatch && i + 1 < first + count) continue;
      REQUIRE_OK(index->Put(entries, ++sequence));
      entries.clear();
    }
  }
  // REQUIREs right answers for every `step`th name. Returns the reads per lookup.
  double Get(uint64_t first, uint64_t count, uint64_t step, std::optional<uint32_t> version) {
    const uint64_t before = index->stats().flash_reads;
    std::vector<ChunkName> names;
    std::vector<Answer> answers(kBatch);
    uint64_t lookups = 0;
    for (uint64_t i = first; i < first + count; i += step) {
      names.push_back(NameOf(i));
      if (names.size() < kBatch && i + step < first + count) continue;
      answers.resize(names.size());
      REQUIRE_OK(index->Get(names, answers));
      for (size_t at = 0; at < names.size(); ++at, ++lookups) {
        const auto number = static_cast<uint32_t>(first + lookups * step);
        const Answer right = version ? Answer(Location{*version, number, 1}) : Answer();
        REQUIRE(answers[at] == right);
      }
      names.clear();
    }
    return static_cast<double>(index->stats().flash_reads - before) / static_cast<double>(lookups);
  }
  struct Sums {
    uint64_t partitions = 0;
    uint64_t buffers = 0;  // bytes
    uint64_t recent = 0;   // bytes
    uint64_t chains = 0;   // bytes, prefilters included
    uint64_t columns = 0;
    uint64_t recent_pages = 0;
  };
  Sums Sum() const {
    Sums sums;
    for (const IndexComponentStats& store : index->stats().stores) {
      if (store.kind == "put_log") continue;
      if (store.kind == "buffer") {
        ++sums.partitions;
        sums.buffers += store.memory_bytes;
      } else if (store.kind == "recent_pages") {
        sums.recent += store.memory_bytes;
        sums.recent_pages += store.id;
      } else {
        sums.chains += store.memory_bytes;
        sums.columns += store.id;
      }
    }
    return sums;
  }
  void Verify() {
    REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
  }

  SimEnv env;
  FlashIndexOptions options;
  EngineParameters parameters;
  std::unique_ptr<ChunkIndex> index;
  uint64_t sequence = 0;
};

// Shares of false positives of a filter of one block, and of a data page's filter in a chain, whose
// blocks have different numbers of entries (binomial).
double FlatFalsePositives(double entries, double bits, double probes) {
  return std::pow(1 - std::exp(-probes * entries / bits), probes);
}
double BlockedFalsePositives(unsigned entries, unsigned blocks, double block_bits, double probes) {
  double share = 0;
  double weight = std::pow(1 - 1.0 / blocks, entries);
  for (unsigned n = 0; n <= entries; ++n) {
    share += weight * FlatFalsePositives(n, block_bits, probes);
    weight *= static_cast<double>(entries - n) / (n + 1) / (blocks - 1);
  }
  return share;
}

void CheckBetween(const std::string& what, double least, double value, double most) {
  UNSCOPED_INFO(what << ": " << value << ", wanted " << least << " to " << most);
  CHECK(value >= least);
  CHECK(value <= most);
}

}  // namespace

TEST_CASE("a small index writes buffers and chains, splits, cleans its files, and stays right") {
  Fixture fixture({{"chain_length", 4}, {"buffered_filters", 2}, {"record_bytes", 64}}, 1);
  fixture.options.pages_per_checkpoint = 6;
  fixture.options.least_log_pages = 2;
  fixture.options.least_dead_pages = 4;
  fixture.options.most_pages_per_file = 24;
  fixture.Open();
  CHECK(fixture.Sum().partitions == 2);
  uint64_t files_seen = 0;
  for (uint32_t version = 1; version <= 6; ++version) {
    for (uint64_t part = 0; part < 20; ++part) fixture.Put(part * 150, 150, version);
    fixture.Get(0, 3000, 1, version);
    fixture.Get(10'000, 1000, 1, std::nullopt);
    const auto files = fixture.env.ListDirectory(kDirectory);
    REQUIRE_OK(files);
    files_seen = std::max<uint64_t>(files_seen, files->size());
  }
  fixture.Verify();
  const IndexStats stats = fixture.index->stats();
  const Fixture::Sums sums = fixture.Sum();
  CHECK(stats.conversions > 150);  // buffers
  CHECK(stats.merges > 40);        // rewrites
  CHECK(sums.partitions >= 16);    // 3,000 entries, at most 252 in each
  CHECK(sums.columns > 0);
  CHECK(sums.recent_pages > 0);
  // Space is bounded although all was put six times: 48 full pages, 16 to 32 chains of 8 pages.
  CHECK(stats.flash_bytes < 1500 * kPageSize);
  CHECK(stats.flash_bytes_written > 3 * stats.flash_bytes);
  CHECK(files_seen < 80);
  REQUIRE_OK(fixture.index->Close());
  fixture.Open();
  fixture.Get(0, 3000, 1, 6);
  fixture.Verify();
}

TEST_CASE("without memory, chains fill with small pages, and a rewrite packs these") {
  Fixture fixture({{"chain_length", 24}}, 3);
  fixture.options.memory_limit = 0;
  fixture.Open();
  uint64_t pages_before = 0;
  bool packed = false;
  uint64_t put = 0;
  for (; put < 2400; put += 10) {
    fixture.Put(put, 10);
    const Fixture::Sums sums = fixture.Sum();
    const uint64_t pages = sums.columns + sums.recent_pages;
    packed = packed || pages + 15 < pages_before;
    pages_before = pages;
    CHECK(fixture.Sum().chains == 0);
    CHECK(fixture.Sum().recent == 0);
    CHECK(fixture.Sum().buffers <= 2 * (4096 + 256 + 8));  // one full buffer's memory
  }
  CHECK(packed);
  CHECK(fixture.Sum().partitions == 8);                // 2,400 entries need no split
  CHECK(pages_before > 3 * fixture.Sum().partitions);  // where two would do
  CHECK(fixture.index->stats().merges > 16);
  const double reads = fixture.Get(0, put, 1, 1);
  CHECK(reads > 1.8);  // nearly all entries are on flash
  fixture.Get(100'000, 2000, 1, std::nullopt);
  fixture.Verify();
  REQUIRE_OK(fixture.index->SetMemoryLimit(kNoMemoryLimit));
  CHECK(fixture.Sum().chains > 0);
  CHECK(fixture.Get(0, put, 1, 1) < reads - 0.5);
}

TEST_CASE("chains of partitions that get few puts do not hold their files for long") {
  // The names of one partition are put again and again, and those of the others now and then.
  Fixture fixture({{"chain_length", 16}, {"buffered_filters", 1}, {"record_bytes", 64}}, 5);
  fixture.options.pages_per_checkpoint = 100;
  fixture.options.least_dead_pages = 64;
  fixture.options.most_pages_per_file = 48;
  fixture.Open();
  fixture.Put(0, 10'000);
  const uint64_t before = fixture.index->stats().flash_bytes;
  const uint64_t merges = fixture.index->stats().merges;
  std::vector<std::vector<IndexEntry>> by_partition(32);
  for (uint64_t i = 0; i < 10'000; ++i) {
    const uint64_t partition = fixture.index->OrderOf(NameOf(i)) >> 59;
    by_partition[partition].push_back({NameOf(i), {1, static_cast<uint32_t>(i), 1}});
  }
  uint64_t pages_put = 0;
  for (uint32_t version = 2; version < 200; ++version) {
    for (const size_t partition : {size_t{0}, size_t{1 + version % 31}}) {
      std::vector<IndexEntry> entries = by_partition[partition];
      if (partition != 0) entries.resize(64);
      for (IndexEntry& entry : entries) entry.location.segment = version;
      REQUIRE_OK(fixture.index->Put(entries, ++fixture.sequence));
      pages_put += entries.size() / 63;
    }
  }
  CHECK(fixture.Sum().partitions == 32);
  const uint64_t rewrites = fixture.index->stats().merges - merges;
  UNSCOPED_INFO("bytes " << before << ", then " << fixture.index->stats().flash_bytes
                         << "; rewrites " << rewrites << ", pages put " << pages_put);
  CHECK(fixture.index->stats().flash_bytes < 2 * before);
  // Chains move without rewrites of their partitions, which would be needed for most pages put. A
  // third of the other rewrites makes room in full chains; the others clean files of data pages.
  CHECK(rewrites < pages_put / 3);
  fixture.Verify();
}

TEST_CASE("memory per entry, of full and of split instances, with records of 64 bytes") {
  const uint64_t length = GENERATE(96, 128);
  Fixture fixture({{"chain_length", length},
                   {"filter_bytes", 64},
                   {"buffered_filters", 1},
                   {"record_bytes", 64}},
                  4);
  fixture.Open();
  const uint64_t full = 16 * length * 63;
  const double paper = 4096.0 / 64 / static_cast<double>(length);
  // The sizes of the partitions vary by some per cent.
  const uint64_t entries = full * 97 / 100;
  fixture.Put(0, entries);
  Fixture::Sums sums = fixture.Sum();
  CHECK(sums.partitions == 16);
  const auto per_entry = [&](uint64_t bytes, uint64_t of) {
    return static_cast<double>(bytes) / static_cast<double>(of);
  };
  CheckBetween("buffers, bytes per entry, full", paper, per_entry(sums.buffers, entries),
               1.1 * paper);
  CHECK(sums.recent == 0);
  CheckBetween("chains in memory, bytes per entry, full", 1.0, per_entry(sums.chains, entries),
               2.0);
  fixture.Put(entries, full / 10);
  sums = fixture.Sum();
  CHECK(sums.partitions == 32);
  CheckBetween("buffers, bytes per entry, split", 1.6 * paper,
               per_entry(sums.buffers, entries + full / 10), 2.1 * paper);
  // A limit that has room for the buffers only.
  const uint64_t limit = kLeastFlashMemory + sums.buffers + 24'000;
  REQUIRE_OK(fixture.index->SetMemoryLimit(limit));
  CHECK(fixture.Sum().chains < 24'000);
  CHECK(fixture.index->stats().memory_bytes <= limit);
  fixture.Get(0, entries, 11, 1);
}

TEST_CASE("lookups take the reads that the formulas predict") {
  constexpr uint64_t kEntries = 300'000;  // 18,750 in a partition of at most 19,584
  constexpr unsigned kPartitions = 16;
  Fixture fixture({{"prefilter_bits", 4}}, 4);
  fixture.Open();
  fixture.Put(0, kEntries);
  Fixture::Sums sums = fixture.Sum();
  REQUIRE(sums.partitions == kPartitions);
  const double filters = static_cast<double>(sums.columns + sums.recent_pages) / kPartitions;
  const double blocked = BlockedFalsePositives(204, 10, 205, 7);
  // Bits per entry are a little more than four, because the partitions are not quite full.
  const double prefilter = FlatFalsePositives(18'750, 4 * 19'584, 3);

  // Chains in memory, with and without prefilter.
  const double chain_hit = fixture.Get(0, kEntries, 7, 1);
  CheckBetween("hit, chain in memory", 1.0, chain_hit, 1 + 0.6 * filters * blocked);
  const double chain_miss = fixture.Get(kEntries, 40'000, 1, std::nullopt);
  CheckBetween("miss, chain and prefilter in memory", 0.6 * prefilter * filters * blocked,
               chain_miss, 1.4 * prefilter * filters * blocked);

  // Prefilters in memory, chains on flash.
  const uint64_t prefilter_bytes = 19'584 / 2;
  // The rest has no room for a chain, which takes 33 KB.
  uint64_t limit =
      kLeastFlashMemory + kPartitions * (4096 + 264 + prefilter_bytes) + sums.recent + 20'000;
  REQUIRE_OK(fixture.index->SetMemoryLimit(limit));
  sums = fixture.Sum();
  CHECK(sums.chains == kPartitions * prefilter_bytes);
  CHECK(fixture.index->stats().memory_bytes <= limit);
  const double hit = fixture.Get(0, kEntries, 7, 1);
  CheckBetween("hit, chain on flash", chain_hit + 0.85, hit, chain_hit + 1);
  const double miss = fixture.Get(kEntries, 40'000, 1, std::nullopt);
  CheckBetween("miss, chain on flash, prefilter of 4 bits",
               0.8 * prefilter * (1 + filters * blocked), miss,
               1.3 * prefilter * (1 + filters * blocked));

  // Nothing in memory but the buffers. The chains have the filters of all pages.
  limit = kLeastFlashMemory + kPartitions * (4096 + 256);
  REQUIRE_OK(fixture.index->SetMemoryLimit(limit));
  CHECK(fixture.Sum().chains == 0);
  CHECK(fixture.Sum().recent == 0);
  const double bare_miss = fixture.Get(kEntries, 40'000, 1, std::nullopt);
  CHECK(fixture.Sum().recent_pages == 0);
  CheckBetween("miss, nothing in memory", 1, bare_miss, 1 + 1.3 * filters * blocked);
}

TEST_CASE("without prefilter, an absent name takes a chain page and the false positives") {
  Fixture fixture({}, 4);
  fixture.Open();
  constexpr uint64_t kEntries = 300'000;
  fixture.Put(0, kEntries);
  Fixture::Sums sums = fixture.Sum();
  const double filters = static_cast<double>(sums.columns + sums.recent_pages) / 16;
  const double blocked = BlockedFalsePositives(204, 10, 205, 7);
  CheckBetween("miss, chain in memory", 0.8 * filters * blocked,
               fixture.Get(kEntries, 40'000, 1, std::nullopt), 1.25 * filters * blocked);
  const uint64_t limit = kLeastFlashMemory + 16 * (4096 + 264) + sums.recent + 20'000;
  REQUIRE_OK(fixture.index->SetMemoryLimit(limit));
  CHECK(fixture.Sum().chains == 0);
  CHECK(fixture.Sum().recent > 0);
  CheckBetween("miss, chain on flash", 1 + 0.8 * filters * blocked,
               fixture.Get(kEntries, 40'000, 1, std::nullopt), 1 + 1.25 * filters * blocked);
}

TEST_CASE("a put writes what the formula predicts, with and without splits") {
  Fixture fixture({}, 4);
  fixture.Open();
  constexpr double kRecords = 204;
  const auto written_by = [&](uint64_t first, uint64_t count) {
    const uint64_t before = fixture.index->stats().flash_bytes_written;
    fixture.Put(first, count);
    return static_cast<double>(fixture.index->stats().flash_bytes_written - before) /
           static_cast<double>(count);
  };
  // A data page, a chain of ten pages for each eight data pages, and the log of puts.
  const double plain = 4096 / kRecords * (1 + 10.0 / 8) + 4096 / kRecords;
  const double without = written_by(0, 300'000);
  CheckBetween("bytes per put, without splits", 0.85 * plain, without, 1.1 * plain);
  // From 300,000 to 600,000 entries each partition splits once: two pages for each page of puts,
  // and two chains.
  const double splits = plain + 4096 / kRecords * (1 + 2 * 10 / 92.0);
  const double with = written_by(300'000, 300'000);
  CHECK(fixture.Sum().partitions == 32);
  CheckBetween("bytes per put, while the index doubles", 0.85 * splits, with, 1.1 * splits);
  CHECK(with > without);
}

}  // namespace siltfs::testing
