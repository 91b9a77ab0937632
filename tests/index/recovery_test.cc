// Recovery of an index from its directory after a crash or damage.
#include "index/silt/recovery.h"

#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kPage = LogSlotsPerPage(kChunkSlots);  // entries of a page
constexpr uint32_t kPagesPerLog = 3;

// A closed index with three unconverted logs of three, three and two full pages. Its names are made
// from the numbers 0 to 8 * 127 - 1. The pages are counted from 0; the entries of page p have
// sequence p + 1.
struct ThreeLogs : SiltFixture {
  ThreeLogs() {
    options.bucket_bits = 8;
    options.max_log_pages = kPagesPerLog;
    options.write_batch_pages = 1;
    env.FailCall({.calls = SimCall::kCreate,
                  .nth = 1,
                  .code = StatusCode::kNoSpace,
                  .sticky = true,
                  .path_part = ".hash"});
    options.background = true;
    auto index = Open();
    for (uint64_t page = 0; page < 8; ++page) {
      PutNumbers(*index, page * kPage, kPage, page + 1);
    }
    REQUIRE_OK(index->Close());
    REQUIRE(index->durable_sequence() == 8);
    env.ClearFaults();
    options.background = false;
    logs = Files(StoreKind::kLog);
    REQUIRE(Files().size() == 3);
  }

  // Returns the last sequence that is known to be complete after this number of pages. The sequence
  // in the last of these pages does not count, because its entries may continue in the next page.
  static uint64_t CompleteIn(uint64_t pages) { return pages == 0 ? 0 : pages - 1; }

  // CHECKs that exactly the entries of pages [0, there) are present.
  void CheckPages(ChunkIndex& index, uint64_t there) {
    for (uint64_t page = 0; page < 8; ++page) {
      INFO("page " << page << ", " << there << " present");
      REQUIRE(GetNumber(index, page * kPage).has_value() == (page < there));
      REQUIRE(GetNumber(index, page * kPage + kPage - 1).has_value() == (page < there));
    }
  }

  std::vector<StoreFileId> logs;
};

}  // namespace

TEST_CASE("logs are replayed in order, and the last becomes the active one") {
  ThreeLogs fixture;
  auto index = fixture.Open();
  CHECK(index->durable_sequence() == 8);
  CHECK(index->stats().merge_backlog == 2);
  fixture.CheckPages(*index, 8);
  PutNumbers(*index, 0, 1, 9, 1);
  REQUIRE_OK(index->Close());
  CHECK(fixture.Files(StoreKind::kLog).size() == 1);  // the others were converted
  CHECK(fixture.Files(StoreKind::kLog).at(0) == fixture.logs.at(2));
  index = fixture.Open();
  CHECK(GetNumber(*index, 0) == NumberedEntry(0, 1).location);
}

TEST_CASE("the pages of a log before its torn page count, and a torn page is no damage") {
  ThreeLogs fixture;
  const std::string path = fixture.PathOf(fixture.logs.at(2));
  for (const std::string& torn :
       {std::string(1000, 'x'), std::string(4096, '\0'), std::string(2 * 4096 + 512, 'y')}) {
    {
      auto file = fixture.env.OpenFile(path, {.mode = OpenMode::kReadWrite});
      REQUIRE_OK(file);
      REQUIRE_OK((*file)->Write(2 * kPageSize, AsBytes(torn)));
      REQUIRE_OK((*file)->Sync());
    }
    auto index = fixture.Open();
    CHECK(index->durable_sequence() == 8);
    CHECK(index->stats().damaged_pages == 0);
    fixture.CheckPages(*index, 8);
    CHECK(fixture.Contents(fixture.logs.at(2)).size() == 2 * kPageSize);
  }
}

TEST_CASE("damage below the durable page lowers the durable sequence to the pages before it") {
  ThreeLogs fixture;
  FlipByte(fixture.env, fixture.PathOf(fixture.logs.at(2)), kPageSize + 100);
  for (const uint64_t damaged : {1U, 0U}) {  // the second opening finds no new damage
    auto index = fixture.Open();
    CHECK(index->durable_sequence() == ThreeLogs::CompleteIn(7));
    CHECK(index->stats().damaged_pages == damaged);
    fixture.CheckPages(*index, 7);
  }
  CHECK(fixture.Manifest().complete_sequence == ThreeLogs::CompleteIn(7));
  CHECK(fixture.Manifest().partitions.at(0).durable_page == 7);
}

TEST_CASE("a missing log is damage, and all later ones are dropped") {
  ThreeLogs fixture;
  const size_t missing = GENERATE(0U, 1U, 2U);
  REQUIRE_OK(RemoveStoreFile(fixture.env, SiltFixture::kDirectory, fixture.logs.at(missing)));
  auto index = fixture.Open();
  CHECK(index->durable_sequence() == ThreeLogs::CompleteIn(missing * 3));
  CHECK(index->stats().damaged_pages == 8 - missing * 3);
  fixture.CheckPages(*index, missing * 3);
}

TEST_CASE("sequences lost in a crash are not durable when they are reused") {
  SiltFixture fixture;
  fixture.options.partition_bits = 1;
  fixture.options.bucket_bits = 4;
  fixture.options.write_batch_pages = 1;
  fixture.options.max_log_pages = 1000;
  // Returns `count` entries of one partition.
  const auto entries_of = [&](uint32_t partition, uint64_t first, size_t count) {
    std::vector<IndexEntry> entries;
    for (uint64_t i = first; entries.size() < count; ++i) {
      const uint64_t hash = NameHash{*fixture.options.hash_secret}.Of(NameOf(i));
      if (PartitionOf(hash, 1) == partition) entries.push_back(NumberedEntry(i));
    }
    return entries;
  };
  const auto put_in_tens = [](ChunkIndex& index, std::span<const IndexEntry> entries,
                              uint64_t sequence) {
    for (; !entries.empty(); entries = entries.subspan(10)) {
      REQUIRE_OK(index.Put(entries.first(10), sequence++));
    }
  };
  const auto first = entries_of(0, 0, 700);
  // All entries of the first partition are in pages on flash (where they survive the process) or in
  // HashStores. No entry of the other partition is.
  fixture.options.bucket_bits = GENERATE(4U, 10U);
  const bool frozen = GENERATE(true, false);  // logs are frozen, but not converted
  if (frozen) {
    fixture.options.max_log_pages = 2;
    fixture.options.background = true;
    fixture.env.FailCall({.calls = SimCall::kCreate,
                          .nth = 1,
                          .code = StatusCode::kNoSpace,
                          .sticky = true,
                          .path_part = ".hash"});
  }
  auto index = fixture.Open();
  put_in_tens(*index, std::span(first).first(frozen ? 400 : 700), 1);
  REQUIRE_OK(index->Put(entries_of(1, 0, 10), 71));
  index.reset();
  fixture.env.ClearFaults();
  fixture.options.background = false;
  index = fixture.Open();
  REQUIRE(index->durable_sequence() == 0);
  if (GENERATE(true, false)) {  // a second crash right after recovery
    index.reset();
    fixture.env.PowerCut();
    index = fixture.Open();
    REQUIRE(index->durable_sequence() == 0);
  }

  // In the store, the crash has also lost all blocks after block 5, and their sequences are used
  // again. The new block 6 has other contents than the lost block 6.
  put_in_tens(*index, std::span(first).first(50), 1);
  const auto sixth = entries_of(0, 100'000, 1);
  REQUIRE_OK(index->Put(sixth, 6));
  // The other partition's pages reach flash, but the entry of block 6 does not.
  put_in_tens(*index, entries_of(1, 100'000, 700), 7);
  index.reset();
  fixture.env.PowerCut({.unsynced = CrashPolicy::Unsynced::kKeep});
  index = fixture.Open();
  const auto got = index->Get(sixth[0].name);
  REQUIRE_OK(got);
  CHECK((index->durable_sequence() < 6 || got->has_value()));
}

TEST_CASE("logs after a gap in the page numbers are dropped") {
  ThreeLogs fixture;
  const uint64_t page = GENERATE(0U, 1U, 2U, 3U, 5U, 6U);
  FlipByte(fixture.env, fixture.PathOf(fixture.logs.at(page / 3)), page % 3 * kPageSize + 100);
  auto index = fixture.Open();
  CHECK(index->durable_sequence() == ThreeLogs::CompleteIn(page));
  CHECK(index->stats().damaged_pages == 8 - page);
  fixture.CheckPages(*index, page);
  // A log without any valid page is removed; a new one replaces it.
  for (const StoreFileId& file : fixture.Files(StoreKind::kLog)) {
    CHECK((file <= fixture.logs.at(page / 3) || file > fixture.logs.at(2)));
  }
}

TEST_CASE("dropped logs do not come back after a power cut in any call") {
  // Page 1 is damaged, so the first log ends after page 0, and the others are dropped. New puts
  // fill the first log up to the former start of the second. If the second log still existed, its
  // page numbers would fit.
  const auto unsynced = GENERATE(CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                                 CrashPolicy::Unsynced::kPrefix, CrashPolicy::Unsynced::kSubset);
  for (uint64_t cut = 1;; ++cut) {
    INFO("policy " << static_cast<int>(unsynced) << ", cut in call " << cut);
    ThreeLogs fixture;
    FlipByte(fixture.env, fixture.PathOf(fixture.logs.at(0)), kPageSize + 100);
    fixture.env.CutAtCall(cut);
    bool flushed = false;
    {
      auto index = OpenSiltIndex(fixture.env, fixture.options);
      if (index.ok()) {
        REQUIRE((*index)->durable_sequence() == 0);
        const Status put = (*index)->Put(NumberedEntries(kPage, 2 * kPage, 1), 2);
        flushed = put.ok() && (*index)->Flush().ok() && (*index)->Put({}, 3).ok() &&
                  (*index)->Flush().ok();
      }
    }
    const bool struck = !fixture.env.PowerIsOn();
    fixture.env.Reboot({.unsynced = unsynced, .seed = cut});
    auto index = fixture.Open();
    CHECK(index->durable_sequence() >= (flushed ? 2 : 0));
    for (uint64_t i = kPage; i < 8 * kPage; ++i) {
      const Answer answer = GetNumber(*index, i);
      const bool put_again = i < 3 * kPage;
      if (put_again && index->durable_sequence() >= 2) REQUIRE(answer.has_value());
      if (answer) REQUIRE((put_again && *answer == NumberedEntry(i, 1).location));
    }
    if (!struck) {
      CHECK(cut > 8);
      break;
    }
  }
}

TEST_CASE("files that no manifest lists are removed when the index is opened for writing") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.hash_store_share = 0.9;
  uint64_t stores = 0;
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 900, 1);
    REQUIRE_OK(index->Close());
    stores = FilesOf(index->stats());
    REQUIRE(StoresOfKind(index->stats(), "hash_store") > 0);
    REQUIRE(StoresOfKind(index->stats(), "sorted_store") > 0);
  }
  const auto files = fixture.Files();
  REQUIRE(files.size() == stores);
  for (const StoreFileId& orphan :
       {StoreFileId{StoreKind::kLog, 0, 1}, StoreFileId{StoreKind::kLog, 7, 5000},
        StoreFileId{StoreKind::kHash, 0, 5001}, StoreFileId{StoreKind::kSorted, 0, 5002},
        StoreFileId{StoreKind::kFilter, 0, 5003}}) {
    fixture.Restore(orphan, "left behind");
  }
  fixture.options.read_only = true;
  {
    auto index = fixture.Open();
    CheckNumbers(*index, 0, 900);
    CHECK(fixture.Files().size() == files.size() + 5);
  }
  fixture.options.read_only = false;
  auto index = fixture.Open();
  CHECK(fixture.Files() == files);
  CheckNumbers(*index, 0, 900);
  // The ids of the dropped logs are not reused.
  PutNumbers(*index, 1000, 200, 2);
  REQUIRE_OK(index->Close());
  for (const StoreFileId& file : fixture.Files()) {
    CHECK((file.id > 5003 || std::find(files.begin(), files.end(), file) != files.end()));
  }
}

TEST_CASE("an index that has lost entries in a merge is refused") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 1000, 1);
    REQUIRE_OK(index->Flush());
    FlipByte(fixture.env, fixture.PathOf(fixture.Files(StoreKind::kSorted).at(0)), 1000);
    const uint64_t merges = index->stats().merges;
    CHECK(index->stats().damaged_pages == 0);
    PutNumbers(*index, 1000, 1000, 2);
    REQUIRE(index->stats().merges > merges);
    CHECK(index->stats().damaged_pages == 1);
    REQUIRE_OK(index->Close());
  }
  CHECK(fixture.Manifest().entries_lost);
  REQUIRE_CODE(OpenSiltIndex(fixture.env, fixture.options), kCorruption);
  fixture.options.read_only = true;
  REQUIRE_CODE(OpenSiltIndex(fixture.env, fixture.options), kCorruption);
}

TEST_CASE("an index that has lost entries in a conversion is refused") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 7;
  fixture.options.write_batch_pages = 1;
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 300, 1);
    FlipByte(fixture.env, fixture.PathOf(fixture.Files(StoreKind::kLog).at(0)), 1000);
    PutNumbers(*index, 300, 900, 1);
    REQUIRE(index->stats().conversions > 0);
    CHECK(index->stats().damaged_pages > 0);
  }
  CHECK(fixture.Manifest().entries_lost);
  REQUIRE_CODE(OpenSiltIndex(fixture.env, fixture.options), kCorruption);
}

TEST_CASE("an index with a missing or unreadable HashStore or SortedStore is refused") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 1000, 1);
    REQUIRE_OK(index->Close());
  }
  for (const StoreFileId& file : fixture.Files()) {
    if (file.kind == StoreKind::kLog || file.kind == StoreKind::kFilter) continue;
    const std::string contents = fixture.Contents(file);
    REQUIRE_OK(RemoveStoreFile(fixture.env, SiltFixture::kDirectory, file));
    REQUIRE_CODE(OpenSiltIndex(fixture.env, fixture.options), kCorruption);
    fixture.Restore(file, contents.substr(0, contents.size() - 1));
    REQUIRE_CODE(OpenSiltIndex(fixture.env, fixture.options), kCorruption);
    fixture.Restore(file, contents);
    fixture.Open().reset();
  }
}

// Pages dropped by a failed sync stay readable in the page cache until the power fails. No later
// sync writes them to the device.
TEST_CASE("pages dropped by a failed sync are written again after the process was killed") {
  SiltFixture fixture;
  fixture.options.write_batch_pages = 1;
  fixture.options.serve_early = GENERATE(false, true);
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 300, 1);
    fixture.env.FailCall({.calls = SimCall::kSync, .path_part = ".log"});
    REQUIRE_CODE(index->Flush(), kIoError);
    fixture.env.ClearFaults();
  }
  {
    auto index = fixture.Open();
    CheckNumbers(*index, 0, 300);
    PutNumbers(*index, 300, 1, 2);
    REQUIRE_OK(index->Flush());
    REQUIRE(index->durable_sequence() >= 1);
  }
  fixture.env.PowerCut();
  auto index = fixture.Open();
  CHECK(index->durable_sequence() >= 1);
  CheckNumbers(*index, 0, 300);
}

// The end of a log is torn: after the valid pages follow a damaged page and a whole page. New puts
// write a page in the place of the damaged one. If the whole page behind it came back then, its
// number would fit.
TEST_CASE("a torn end does not come back after a kill in any call and a later power cut") {
  const auto unsynced = GENERATE(CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                                 CrashPolicy::Unsynced::kPrefix, CrashPolicy::Unsynced::kSubset);
  for (uint64_t death = 1;; ++death) {
    for (uint64_t seed = 0; seed < 16; ++seed) {
      INFO("policy " << static_cast<int>(unsynced) << ", killed in call " << death << ", seed "
                     << seed);
      ThreeLogs fixture;
      fixture.options.max_log_pages = 100;
      const StoreFileId torn = fixture.logs.at(2);
      {
        // Adds two pages and damages the first, as if a power cut had kept only the second.
        auto index = fixture.Open();
        PutNumbers(*index, 8 * kPage, 2 * kPage + 1, 100);
        index.reset();
        fixture.env.PowerCut({.unsynced = CrashPolicy::Unsynced::kKeep});
        FlipByte(fixture.env, fixture.PathOf(torn), 2 * kPageSize + 100);
        REQUIRE(fixture.Contents(torn).size() == 4 * kPageSize);
      }
      fixture.env.FailCall({.calls = SimCall::kMutating, .nth = death, .sticky = true});
      const bool died = !OpenSiltIndex(fixture.env, fixture.options).ok();
      fixture.env.ClearFaults();
      {
        auto index = fixture.Open();
        PutNumbers(*index, 20 * kPage, kPage + 1, 9);
        if (seed % 2 == 0) REQUIRE_OK(index->Flush());
      }
      fixture.env.PowerCut({.unsynced = unsynced, .seed = seed});
      auto index = fixture.Open();
      CHECK(index->durable_sequence() < 99);
      for (uint64_t i = 8 * kPage; i < 10 * kPage; ++i) {
        REQUIRE_FALSE(GetNumber(*index, i).has_value());
      }
      if (!died && seed == 15) return;
    }
  }
}

TEST_CASE("a closed index is opened without a write or a sync of its logs") {
  SiltFixture fixture;
  fixture.options.partition_bits = 2;
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 1000, 1);
    REQUIRE_OK(index->Close());
  }
  fixture.env.FailCall({.calls = SimCall::kWrite | SimCall::kSync | SimCall::kTruncate,
                        .sticky = true,
                        .path_part = ".log"});
  auto index = fixture.Open();
  CHECK(index->durable_sequence() == 1);
  CheckNumbers(*index, 0, 1000);
}

TEST_CASE("a log of a terabyte is refused as damaged, and is not overwritten") {
  SiltFixture fixture;
  {
    auto index = fixture.Open();
    PutNumbers(*index, 0, 1000, 1);
    REQUIRE_OK(index->Close());
  }
  const auto logs = fixture.Files(StoreKind::kLog);
  REQUIRE(logs.size() == 1);
  {
    auto file = fixture.env.OpenFile(fixture.PathOf(logs[0]), {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Truncate(uint64_t{1} << 40));
  }
  fixture.env.FailCall(
      {.calls = SimCall::kWrite | SimCall::kTruncate, .sticky = true, .path_part = ".log"});
  REQUIRE_CODE(OpenSiltIndex(fixture.env, fixture.options), kCorruption);
}

TEST_CASE("stores without a manifest are refused, not removed") {
  ThreeLogs fixture;
  REQUIRE_OK(fixture.env.RemoveFile(JoinPath(SiltFixture::kDirectory, "manifest")));
  REQUIRE_CODE(OpenSiltIndex(fixture.env, fixture.options), kCorruption);
  CHECK(fixture.Files() == fixture.logs);
}

TEST_CASE("page numbers may wrap") {
  ThreeLogs fixture;
  // Changes the page numbers of the same logs, as if 2^32 - 4 pages had been written before.
  StoreManifest manifest = fixture.Manifest();
  constexpr uint32_t kFirst = UINT32_MAX - 3;
  for (size_t log = 0; log < 3; ++log) {
    std::string contents = fixture.Contents(fixture.logs.at(log));
    for (size_t at = 0; at < contents.size(); at += kPageSize) {
      const PageBytes page(reinterpret_cast<uint8_t*>(contents.data()) + at, kPageSize);
      const auto number = static_cast<uint32_t>(3 * log + at / kPageSize);
      auto header = CheckLogPage(kChunkSlots, page, fixture.logs.at(log).id, number);
      REQUIRE(header.has_value());
      header->page_number = kFirst + number;
      SealLogPage(page, *header);
    }
    fixture.Restore(fixture.logs.at(log), contents);
  }
  manifest.partitions.at(0).first_page = kFirst;
  manifest.partitions.at(0).durable_page = kFirst + 8;
  fixture.ReplaceManifest(manifest);
  {
    auto index = fixture.Open();
    CHECK(index->durable_sequence() == 8);
    CHECK(index->stats().damaged_pages == 0);
    fixture.CheckPages(*index, 8);
    PutNumbers(*index, 0, 1, 9, 1);
    REQUIRE_OK(index->Close());
  }
  auto index = fixture.Open();
  CHECK(index->durable_sequence() == 9);
  CHECK(index->stats().damaged_pages == 0);
  CHECK(GetNumber(*index, 0) == NumberedEntry(0, 1).location);
}

}  // namespace siltfs::testing
