// BufferHash, and what it shares with the other engines with page files (flash_index.h): splits,
// checkpoints, the log of puts, memory.
#include "index/buffer_hash/buffer_hash_engine.h"

#include <thread>

#include "history.h"
#include "index/buffer_hash/incarnation.h"
#include "index/flash/flash_index.h"
#include "index/index_engine.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";
constexpr uint8_t kFilterPage = 3;

struct Fixture {
  Fixture() {
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    REQUIRE_OK(env.SyncDirectory("/"));
  }
  std::unique_ptr<ChunkIndex> Open() {
    auto index = OpenFlashIndex(env, options, MakeBufferHashEngine(parameters));
    REQUIRE_OK(index);
    return std::move(*index);
  }
  static IndexEntry Numbered(uint64_t number) {
    return {NameOf(number), {.segment = static_cast<SegmentId>(number + 1), .ordinal = 5}};
  }
  // Puts the names first, ..., first + count - 1, in batches.
  static void Put(ChunkIndex& index, uint64_t first, uint64_t count) {
    std::vector<IndexEntry> entries;
    for (uint64_t i = 0; i < count; ++i) {
      entries.push_back(Numbered(first + i));
      if (entries.size() < 500 && i + 1 < count) continue;
      REQUIRE_OK(index.Put(entries, first + i + 1));
      entries.clear();
    }
  }
  static void Check(ChunkIndex& index, uint64_t first, uint64_t count) {
    std::vector<ChunkName> names;
    for (uint64_t i = 0; i < count; ++i) names.push_back(NameOf(first + i));
    std::vector<Answer> answers(count);
    REQUIRE_OK(index.Get(names, answers));
    for (uint64_t i = 0; i < count; ++i) {
      REQUIRE(answers[i] == Numbered(first + i).location);
    }
  }
  static uint64_t Count(ChunkIndex& index) {
    uint64_t entries = 0;
    REQUIRE_OK(index.ForEach([&](const OrderedEntry&) {
      ++entries;
      return Status::Ok();
    }));
    return entries;
  }
  static size_t StoresOfKind(const IndexStats& stats, const std::string& kind) {
    return static_cast<size_t>(std::ranges::count(stats.stores, kind, &IndexComponentStats::kind));
  }

  SimEnv env;
  FlashIndexOptions options{.directory = kDirectory, .hash_secret = 1};
  EngineParameters parameters{{"table_bits", 7}, {"incarnations", 8}};  // tables of 512
};

}  // namespace

TEST_CASE("partitions split as the index grows, and nothing is lost") {
  Fixture fixture;
  auto index = fixture.Open();
  constexpr uint64_t kEntries = 40'000;
  Fixture::Put(*index, 0, kEntries);
  const IndexStats stats = index->stats();
  // A partition has at most 4,096 entries.
  CHECK(Fixture::StoresOfKind(stats, "incarnations") >= 10);
  CHECK(Fixture::StoresOfKind(stats, "incarnations") <= 32);
  CHECK(stats.merges >= 9);
  CHECK(stats.conversions >= 40);
  Fixture::Check(*index, 0, kEntries);
  CHECK(Fixture::Count(*index) == kEntries);
  REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
  REQUIRE_OK(index->Close());
  index = fixture.Open();
  Fixture::Check(*index, 0, kEntries);
  REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
}

TEST_CASE("a lookup reads one page if the name is there, and rarely one if it is not") {
  Fixture fixture;
  auto index = fixture.Open();
  constexpr uint64_t kEntries = 30'000;
  Fixture::Put(*index, 0, kEntries);
  IndexStats before = index->stats();
  Fixture::Check(*index, 0, kEntries);
  IndexStats after = index->stats();
  const double hit = static_cast<double>(after.flash_reads - before.flash_reads) / kEntries;
  CHECK(hit > 0.85);  // some entries are in the buffers
  CHECK(hit < 1.05);
  before = after;
  std::vector<ChunkName> absent;
  for (uint64_t i = 0; i < kEntries; ++i) absent.push_back(NameOf(1'000'000 + i));
  std::vector<Answer> answers(absent.size());
  REQUIRE_OK(index->Get(absent, answers));
  after = index->stats();
  // At most eight filters, each of which lets 0.8 % pass.
  CHECK(static_cast<double>(after.flash_reads - before.flash_reads) / kEntries < 0.07);
  CHECK(after.flash_pages_read == after.flash_reads);
}

TEST_CASE("memory and bytes written are as the engine plans them") {
  Fixture fixture;
  auto index = fixture.Open();
  constexpr uint64_t kEntries = 60'000;
  for (uint64_t at = 0; at < kEntries; at += 10'000) {
    Fixture::Put(*index, at, 10'000);
    REQUIRE_OK(index->Flush());
  }
  const IndexStats stats = index->stats();
  auto plan = kBufferHashEngine.plan({.entries = kEntries, .parameters = fixture.parameters});
  REQUIRE_OK(plan);
  CHECK(static_cast<double>(stats.memory_bytes) < plan->memory_bytes);
  CHECK(static_cast<double>(stats.flash_bytes) < plan->flash_bytes);
  // The log, the incarnation, and a rewrite at each of the four doublings.
  const double written = static_cast<double>(stats.flash_bytes_written) / kEntries;
  CHECK(written > 20 + 20);
  CHECK(written < 20 + 6 * 26);
}

TEST_CASE("the memory limit drops filters first, and then buffers; lookups stay right") {
  Fixture fixture;
  auto index = fixture.Open();
  Fixture::Put(*index, 0, 30'000);
  const auto filters = [&] {
    uint64_t bytes = 0;
    for (const auto& store : index->stats().stores) bytes += store.filter_memory_bytes;
    return bytes;
  };
  const auto buffered = [&] {
    uint64_t entries = 0;
    for (const auto& store : index->stats().stores) {
      if (store.kind == "buffer") entries += store.entries;
    }
    return entries;
  };
  const uint64_t all_filters = filters();
  REQUIRE(all_filters > 30'000);
  REQUIRE(buffered() > 1000);
  const uint64_t buffers_before = buffered();
  // No room for all filters.
  const size_t partitions = Fixture::StoresOfKind(index->stats(), "buffer");
  constexpr uint64_t kTableBytes = 512 * 20;
  REQUIRE_OK(index->SetMemoryLimit(kLeastFlashMemory + partitions * kTableBytes + 20'000));
  CHECK(filters() < all_filters);
  CHECK(filters() > 0);
  CHECK(buffered() == buffers_before);
  Fixture::Check(*index, 0, 30'000);
  REQUIRE_OK(index->SetMemoryLimit(0));
  CHECK(filters() == 0);
  CHECK(buffered() < buffers_before / 4);
  Fixture::Check(*index, 0, 30'000);
  Fixture::Put(*index, 30'000, 3000);
  CHECK(buffered() <= 512);
  Fixture::Check(*index, 0, 33'000);
  // The filters come back.
  REQUIRE_OK(index->SetMemoryLimit(kNoMemoryLimit));
  CHECK(filters() > 30'000);
  Fixture::Check(*index, 0, 33'000);
  REQUIRE_OK(index->Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
}

TEST_CASE("a damaged filter is noticed, and lookups work without it") {
  Fixture fixture;
  auto index = fixture.Open();
  Fixture::Put(*index, 0, 8000);
  REQUIRE_OK(index->Close());
  index.reset();
  auto entries = fixture.env.ListDirectory(kDirectory);
  REQUIRE_OK(entries);
  uint64_t damaged = 0;
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.name.ends_with(".pages")) continue;
    auto file = fixture.env.OpenFile(std::string(kDirectory) + "/" + entry.name,
                                     {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    Bytes page(kPageSize);
    for (uint64_t at = 0; (*file)->Read(at, page).value() == kPageSize; at += kPageSize) {
      if (PageKindOf(ConstPageBytes(page.data(), kPageSize)) != kFilterPage) continue;
      page[100] ^= 1;
      REQUIRE_OK((*file)->Write(at, page));
      REQUIRE_OK((*file)->Sync());
      ++damaged;
    }
  }
  REQUIRE(damaged > 0);
  index = fixture.Open();
  CHECK(index->stats().damaged_filters > 0);
  CHECK(index->stats().damaged_filters <= damaged);
  CHECK(index->stats().damaged_pages == 0);
  Fixture::Check(*index, 0, 8000);
  REQUIRE_OK(index->Close());
  fixture.Open();  // no entry is lost
}

TEST_CASE("the log of puts stays short") {
  Fixture fixture;
  fixture.options.least_log_pages = 4;
  auto index = fixture.Open();
  uint64_t most = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    Fixture::Put(*index, i * 400, 400);
    REQUIRE_OK(index->Flush());
    for (const auto& store : index->stats().stores) {
      if (store.kind == "put_log") most = std::max(most, store.flash_bytes / kPageSize);
    }
  }
  // The buffers have at most 16 times 512 entries, which fill 41 pages.
  CHECK(most > 4);
  CHECK(most < 100);
  index.reset();
  fixture.env.PowerCut();
  index = fixture.Open();
  Fixture::Check(*index, 0, 99 * 400);
}

TEST_CASE("entries survive that are put after the log of puts became empty") {
  Fixture fixture;
  fixture.options.least_log_pages = 1;
  auto index = fixture.Open();
  Fixture::Put(*index, 0, 300);
  index->SetGone([](SegmentId) { return true; });
  REQUIRE_OK(index->DropGone());
  REQUIRE_OK(index->Close());
  index = fixture.Open();
  Fixture::Put(*index, 1000, 200);
  REQUIRE_OK(index->Close());
  index = fixture.Open();
  Fixture::Check(*index, 1000, 200);
}

TEST_CASE("forged hashes that fit into no number of pages are refused") {
  Fixture fixture;
  PageFiles files(fixture.env, {{.directory = kDirectory, .pages_per_file = 64}}, false);
  const IncarnationFormat format{.layout = RecordLayout(), .filter_bits = 10};
  std::vector<FlashEntry> entries;
  for (uint64_t i = 1; i <= 300; ++i) entries.push_back({.hash = i, .location = {.segment = 1}});
  REQUIRE_CODE(format.Write(files, 0, HashPrefix(), entries), kCorruption);
  CHECK(files.live_pages(0) == 0);
}

TEST_CASE("readers see every entry while partitions are written, split and cleaned") {
  Fixture fixture;
  fixture.options.pages_per_checkpoint = 8;
  fixture.options.least_dead_pages = 4;
  fixture.options.most_pages_per_file = 16;
  fixture.options.partition_bits = 1;
  fixture.parameters = {{"table_bits", 4}, {"incarnations", 4}};
  auto index = fixture.Open();
  constexpr uint64_t kEntries = 6000;
  std::atomic<uint64_t> there{0};
  std::atomic<bool> wrong{false};
  std::atomic<bool> ended{false};
  std::vector<std::thread> readers;
  for (uint64_t thread = 0; thread < 2; ++thread) {
    readers.emplace_back([&, thread] {
      Random random(thread);
      while (!ended && !wrong) {
        const uint64_t count = there;
        if (count == 0) continue;
        std::vector<ChunkName> names;
        std::vector<uint64_t> numbers;
        for (size_t i = 0; i < (thread == 0 ? 2U : 64U); ++i) {
          numbers.push_back(random.Below(count));
          names.push_back(NameOf(numbers.back()));
        }
        std::vector<Answer> answers(names.size());
        if (!index->Get(names, answers).ok()) wrong = true;
        for (size_t i = 0; i < names.size(); ++i) {
          if (answers[i] != Fixture::Numbered(numbers[i]).location) wrong = true;
        }
      }
    });
  }
  std::thread lister([&] {
    while (!ended && !wrong) {
      const uint64_t least = there;
      uint64_t entries = 0;
      const Status listed = index->ForEach([&](const OrderedEntry&) {
        ++entries;
        return Status::Ok();
      });
      if (!listed.ok() || entries < least) wrong = true;
    }
  });
  for (uint64_t i = 0; i < kEntries && !wrong; ++i) {
    const IndexEntry entry = Fixture::Numbered(i);
    if (!index->Put({&entry, 1}, i + 1).ok()) wrong = true;
    there = i + 1;
  }
  ended = true;
  for (std::thread& reader : readers) reader.join();
  lister.join();
  CHECK_FALSE(wrong);
  CHECK(index->stats().merges > 20);
  CHECK(index->stats().damaged_pages == 0);
  CHECK(Fixture::Count(*index) == kEntries);
  REQUIRE_OK(index->Close());
}

TEST_CASE("an index of another engine is refused") {
  Fixture fixture;
  REQUIRE_OK(fixture.Open()->Close());
  class Other final : public FlashEngine {
   public:
    std::string_view name() const override { return "other"; }
    std::vector<PageLogSpec> Logs(const std::string& directory) const override {
      return {{.directory = directory, .pages_per_file = 1}};
    }
    std::string EncodeParameters() const override { return ""; }
    Status DecodeParameters(ByteView) override { return Status::Ok(); }
    std::unique_ptr<FlashPartition> Make(FlashContext&, uint64_t,
                                         const HashPrefix&) const override {
      return nullptr;
    }
    Result<std::unique_ptr<FlashPartition>> Open(FlashContext&, uint64_t, const HashPrefix&,
                                                 ByteView) const override {
      return Status(StatusCode::kCorruption, "is not called");
    }
    uint64_t BufferBytes() const override { return 0; }
  };
  auto opened = OpenFlashIndex(fixture.env, fixture.options, std::make_unique<Other>());
  REQUIRE_CODE(opened, kCorruption);
  CHECK(opened.status().ToString().find("buffer_hash") != std::string::npos);
}

TEST_CASE("an index keeps the parameters that it was made with") {
  Fixture fixture;
  fixture.parameters.push_back({"record_bytes", 64});
  auto index = fixture.Open();
  Fixture::Put(*index, 0, 5000);
  REQUIRE_OK(index->Close());
  fixture.parameters = {{"table_bits", 3}, {"filter_bits", 0}};
  index = fixture.Open();
  Fixture::Check(*index, 0, 5000);
  Fixture::Put(*index, 5000, 5000);
  Fixture::Check(*index, 0, 10'000);
  // Records of 64 bytes.
  CHECK(index->stats().flash_bytes > 10'000 * 64);
}

}  // namespace siltfs::testing
