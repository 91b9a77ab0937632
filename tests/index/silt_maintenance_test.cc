// Conversions and merges of an index. They keep to their bounds, in parallel with Put or within
// Put. They can be stopped, and they handle a full disk.
#include "index/silt/silt_maintenance.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

struct Shares {
  uint64_t hash = 0;                    // entries in HashStores
  uint64_t all = 0;                     // in HashStores and SortedStores
  std::map<uint32_t, uint64_t> stores;  // HashStores of the partitions that have some
  uint64_t most_stores = 0;
  uint64_t frozen_logs = 0;
};

Shares SharesOf(const IndexStats& stats) {
  Shares shares;
  std::map<uint32_t, uint64_t> logs;
  for (const auto& store : stats.stores) {
    if (store.kind == "log_store" && logs[store.partition]++ > 0) ++shares.frozen_logs;
    if (store.kind == "log_store") continue;
    shares.all += store.entries;
    if (store.kind != "hash_store") continue;
    shares.hash += store.entries;
    shares.most_stores = std::max(shares.most_stores, ++shares.stores[store.partition]);
  }
  return shares;
}

// An index of one partition that needs a merge as soon as it is opened.
struct MergeWaits : SiltFixture {
  explicit MergeWaits(uint64_t count) : numbers(count) {
    options.bucket_bits = 8;
    options.hash_store_share = 0.9;
    options.max_hash_stores = 1000;
    {
      auto index = Open();
      PutNumbers(*index, 0, numbers, 1);
      REQUIRE_OK(index->Close());
      const uint64_t hash_stores = StoresOfKind(index->stats(), "hash_store");
      REQUIRE(hash_stores >= 8);
      // Enough stores to begin a merge, but too few for Put to wait.
      options.max_hash_stores = static_cast<uint32_t>(hash_stores - 1);
    }
    sorted_before = Files(StoreKind::kSorted);
    options.background = true;
    options.background_bytes_per_second = 100'000'000;  // the clock stands still, so a merge waits
  }
  // Waits until the merge has created a file.
  void WaitForMerge() {
    while (Files(StoreKind::kSorted) == sorted_before) Rest();
  }
  const uint64_t numbers;
  std::vector<StoreFileId> sorted_before;
};

}  // namespace

TEST_CASE("Put waits while maintenance is behind: its backlog never exceeds its bounds") {
  SiltFixture fixture;
  fixture.options.partition_bits = 1;
  fixture.options.bucket_bits = 4;
  fixture.options.write_batch_pages = 1;
  fixture.options.max_frozen_logs = 3;
  fixture.options.max_hash_stores = 12;
  fixture.options.background = true;
  fixture.options.background_bytes_per_second = 4'000'000;
  auto index = fixture.Open();
  constexpr uint64_t kLogEntries = 64 + 8;
  std::atomic<bool> over{false};
  std::atomic<uint64_t> put{0};
  std::atomic<int> wrong{0};
  const auto check = [&] {
    const IndexStats stats = index->stats();
    const Shares shares = SharesOf(stats);
    if (stats.merge_backlog > 3 || shares.frozen_logs > 4) ++wrong;
    if (shares.most_stores > 15 + 3) ++wrong;
    // Logs that were frozen while there was room may still be converted.
    const double share = 0.18 * 1.05 * static_cast<double>(shares.all) + 3 * kLogEntries;
    if (shares.most_stores > 2 + 3 && static_cast<double>(shares.hash) > share) ++wrong;
    return stats.merge_backlog;
  };
  std::thread writer([&] {
    for (uint64_t i = 0; i < 8000; i += 8) {
      if (!index->Put(NumberedEntries(i, 8), i + 1).ok()) ++wrong;
      put = i + 8;
      check();
    }
    over = true;
  });
  // The clock stands still, so no log is converted, and Put stops at the third frozen log.
  while (check() < 3 && !over) Rest();
  CHECK_FALSE(over);
  CHECK(index->stats().conversions == 0);
  CHECK(put <= (3 + 2) * kLogEntries);
  while (!over) {
    check();
    fixture.env.AdvanceClock(kMillisecond);
    Rest();
  }
  writer.join();
  CHECK(wrong == 0);
  CHECK(index->stats().conversions > 80);
  CHECK(index->stats().merges > 5);
  CheckNumbers(*index, 0, 8000);
}

TEST_CASE("merges keep HashStores at their share of entries and at their number per partition") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 3;
  const double share = GENERATE(0.1, 0.18, 0.5);
  fixture.options.partition_bits = GENERATE(0U, 2U);
  fixture.options.hash_store_share = share;
  fixture.options.max_hash_stores = GENERATE(2U, 1000U);
  auto index = fixture.Open();
  uint64_t most = 0;
  for (uint64_t i = 0; i < 4000; i += 20) {
    PutNumbers(*index, i, 20, i + 1);
    // Without a thread the work is done before a log is frozen, so the work never lags.
    const Shares shares = SharesOf(index->stats());
    REQUIRE(static_cast<double>(shares.hash) <= share * static_cast<double>(shares.all));
    REQUIRE(shares.most_stores <= fixture.options.max_hash_stores);
    most = std::max(most, shares.hash);
  }
  // HashStores also reach their share, so merges do not run more often than needed.
  if (fixture.options.max_hash_stores > 2) CHECK(static_cast<double>(most) > share * 2000);
}

TEST_CASE("partitions are merged in turn, so that not all are full at the same time") {
  SiltFixture fixture;
  fixture.options.partition_bits = 3;
  fixture.options.bucket_bits = 3;
  fixture.options.hash_store_share = 0.3;
  auto index = fixture.Open();
  constexpr int kRounds = 60;
  double fullness = 0;  // HashStores of the average partition divided by those of the fullest
  std::map<uint32_t, uint64_t> last_sorted;
  for (int round = 0; round < 2 * kRounds; ++round) {
    PutNumbers(*index, round * 200, 200, round + 1);
    if (round < kRounds) continue;
    const Shares shares = SharesOf(index->stats());
    REQUIRE(shares.most_stores > 0);
    double mean = 0;
    for (const auto& [partition, stores] : shares.stores) mean += static_cast<double>(stores) / 8;
    fullness += mean / static_cast<double>(shares.most_stores) / kRounds;
    for (const auto& store : index->stats().stores) {
      if (store.kind == "sorted_store") last_sorted[store.partition] = store.entries;
    }
  }
  INFO(fullness);
  CHECK(fullness > 0.3);
  CHECK(fullness < 0.75);
  // Every partition was merged.
  REQUIRE(last_sorted.size() == 8);
  for (const auto& [partition, entries] : last_sorted) CHECK(entries > 1000);
}

TEST_CASE("an index that is stopped in the middle of a merge is unchanged") {
  MergeWaits fixture(60'000);
  auto index = fixture.Open();
  fixture.WaitForMerge();
  CHECK(index->stats().merges == 0);
  CHECK(index->stats().memory_bytes > fixture.options.sort_memory_bytes);
  PutNumbers(*index, 50'000, 10, 2);
  const bool closed = GENERATE(true, false);
  if (closed) {
    REQUIRE_OK(index->Close());
  } else {
    REQUIRE_OK(index->Flush());
    index.reset();
  }
  index.reset();
  CHECK(fixture.Files(StoreKind::kSorted) == fixture.sorted_before);
  if (GENERATE(true, false)) fixture.env.PowerCut();
  fixture.options.background = false;
  fixture.options.background_bytes_per_second = 0;
  index = fixture.Open();
  CHECK(index->durable_sequence() >= 1);
  CheckNumbers(*index, 0, fixture.numbers);
  CheckNumbers(*index, 50'000, 10);
  CHECK(fixture.Files().size() == FilesOf(index->stats()));
  PutNumbers(*index, 60'000, 2000, 3);
  CHECK(index->stats().merges > 0);
  CheckNumbers(*index, 0, fixture.numbers);
}

TEST_CASE("LogStores are converted in the middle of a merge") {
  MergeWaits fixture(80'000);
  auto index = fixture.Open();
  fixture.WaitForMerge();
  PutNumbers(*index, 100'000, 1100, 2);  // fills two LogStores
  CHECK(index->stats().conversions == 0);
  while (index->stats().conversions == 0) {
    fixture.env.AdvanceClock(kMillisecond);
    Rest();
  }
  CHECK(index->stats().merges == 0);
  while (index->stats().merges == 0) {
    fixture.env.AdvanceClock(kMillisecond);
    Rest();
  }
  CheckNumbers(*index, 0, 1000);
  CheckNumbers(*index, 100'000, 1100);
}

TEST_CASE("in synchronous mode puts and deletions survive an immediate power cut") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 3;
  fixture.options.partition_bits = 1;
  fixture.options.synchronous = true;
  fixture.options.background = GENERATE(true, false);
  uint64_t put = 0;
  for (int life = 0; life < 12; ++life) {
    auto index = fixture.Open();
    CheckNumbers(*index, put < 15 ? 0 : put - 15, put < 15 ? 0 : 14);
    for (int i = 0; i < 5; ++i, put += 15) PutNumbers(*index, put, 15, put + 1);
    // Cuts the power before closing, so that the old index's threads change nothing more.
    const auto cut = [&] {
      fixture.env.CutAtCall(1);
      index.reset();
      fixture.env.Reboot();
      index = fixture.Open();
    };
    cut();
    CHECK(index->durable_sequence() >= put - 15);
    CheckNumbers(*index, put - 75, 75);
    REQUIRE_OK(index->Delete(NameOf(put - 1)));
    cut();
    for (uint64_t i = 0; i < put; ++i) {
      REQUIRE(GetNumber(*index, i).has_value() == (i % 75 != 74));
    }
  }
}

TEST_CASE("a full disk fails puts and leaves no files behind, and puts continue when it has room") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.write_batch_pages = 1;
  fixture.options.max_frozen_logs = 2;
  fixture.options.max_hash_stores = 6;
  fixture.options.background = GENERATE(true, false);
  auto index = fixture.Open();
  uint64_t put = 0;
  for (; put < 2000; put += 10) PutNumbers(*index, put, 10, put + 1);
  uint64_t sequence = put + 1;
  for (uint64_t pages = 0; pages < 30; pages += 5) {
    auto space = fixture.env.GetDiskSpace(SiltFixture::kDirectory);
    REQUIRE_OK(space);
    fixture.env.SetCapacity(space->total_bytes - space->free_bytes + pages * kPageSize);
    Status failed;
    while (failed.ok()) {
      failed = index->Put(NumberedEntries(put, 10), sequence);
      if (failed.ok()) put += 10;
      ++sequence;
    }
    REQUIRE_CODE(failed, kNoSpace);
    for (int again = 0; again < 20; ++again, ++sequence) {
      const Status still = index->Put(NumberedEntries(put, 10), sequence);
      if (still.ok()) put += 10;
    }
    CheckNumbers(*index, 0, put);
    // Unfinished files are removed, except a file that is being written. In the background, stores
    // may be added and removed while the files are counted.
    const size_t before = index->stats().stores.size();
    const size_t files = fixture.Files().size();
    CHECK(files <= std::max(before, index->stats().stores.size()) + 2);
    fixture.env.SetCapacity(SimEnv::kUnlimited);
    for (int i = 0; i < 40; ++i, put += 10, ++sequence) PutNumbers(*index, put, 10, sequence);
    REQUIRE_OK(index->Flush());
  }
  REQUIRE_OK(index->Close());
  CHECK(fixture.Files().size() == FilesOf(index->stats()));
  index.reset();
  fixture.env.PowerCut();
  index = fixture.Open();
  CheckNumbers(*index, 0, put);
}

TEST_CASE("running out of file descriptors does not end writing") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.max_frozen_logs = 2;
  fixture.options.background = GENERATE(true, false);
  auto index = fixture.Open();
  uint64_t put = 0;
  for (; put < 2000; put += 10) PutNumbers(*index, put, 10, put + 1);
  fixture.env.FailCall({.calls = SimCall::kOpen | SimCall::kCreate,
                        .code = StatusCode::kOutOfMemory,
                        .sticky = true});
  uint64_t failures = 0;
  for (int i = 0; i < 50; ++i) {
    const Status failed = index->Put(NumberedEntries(put, 10), put + 1);
    if (failed.ok()) {
      put += 10;
      continue;
    }
    REQUIRE(failed.Is(StatusCode::kNoSpace));  // it may be tried again
    ++failures;
  }
  REQUIRE(failures > 0);
  CheckNumbers(*index, 0, put);
  fixture.env.ClearFaults();
  REQUIRE_OK(index->PutAgain(NumberedEntries(put, 10), put + 1));
  put += 10;
  for (int i = 0; i < 100; ++i, put += 10) PutNumbers(*index, put, 10, put + 1);
  REQUIRE_OK(index->Flush());
  CheckNumbers(*index, 0, put);
  REQUIRE_OK(index->Close());
  index = fixture.Open();
  CheckNumbers(*index, 0, put);
}

TEST_CASE("stores are removed if there is no room for a manifest that lists them") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.max_frozen_logs = 2;
  fixture.options.background = GENERATE(true, false);
  const bool reopened = GENERATE(true, false);
  auto index = fixture.Open();
  uint64_t put = 0;
  for (; put < 2000; put += 10) PutNumbers(*index, put, 10, put + 1);
  if (reopened) {
    REQUIRE_OK(index->Close());
    index.reset();
    index = fixture.Open();
  }
  // `fits` edits can be written. If it is 0, the edit of a conversion does not fit. If it is 1, the
  // edit of a later conversion or of a merge does not fit.
  for (const uint64_t fits : {0, 1}) {
    fixture.env.FailCall({.calls = SimCall::kWrite,
                          .nth = 1 + fits,
                          .code = StatusCode::kNoSpace,
                          .sticky = true,
                          .path_part = "manifest."});
    int failures = 0;
    for (int i = 0; i < 100; ++i, put += 10) {
      if (!index->Put(NumberedEntries(put, 10), put + 1).ok()) ++failures;
    }
    CHECK(failures > 50);
    // Files that the manifest does not list are removed, except files that are being written.
    CHECK(fixture.Files().size() <= index->stats().stores.size() + 2);
    fixture.env.ClearFaults();
  }
  for (int i = 0; i < 40; ++i, put += 10) PutNumbers(*index, put, 10, put + 1);
  CheckNumbers(*index, 0, 2000);
  REQUIRE_OK(index->Close());
  CHECK(fixture.Files().size() == FilesOf(index->stats()));
  index.reset();
  fixture.env.PowerCut();
  index = fixture.Open();
  CheckNumbers(*index, 0, 2000);
}

TEST_CASE("Put continues for any limit of HashStores per partition") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.background = true;
  fixture.options.hash_store_share = 0.9;
  // The first value plus a quarter is just above 32 bits.
  fixture.options.max_hash_stores = GENERATE(3'435'973'837U, UINT32_MAX);
  auto index = fixture.Open();
  for (uint64_t put = 0; put < 2000; put += 10) PutNumbers(*index, put, 10, put + 1);
  CheckNumbers(*index, 0, 2000);
}

TEST_CASE("a permanent failure in the background fails the next puts") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.background = true;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 50, 1);
  REQUIRE_OK(index->Flush());
  fixture.env.FailCall({.calls = SimCall::kSync, .nth = 1, .sticky = true, .path_part = ".hash"});
  Status failed;
  uint64_t put = 50;
  for (; failed.ok(); put += 10) failed = index->Put(NumberedEntries(put, 10), put);
  REQUIRE_CODE(failed, kIoError);
  REQUIRE_CODE(index->Put(NumberedEntries(9000, 1), put + 1), kIoError);
  REQUIRE_CODE(index->Flush(), kIoError);
  CheckNumbers(*index, 0, put - 20);
  REQUIRE_CODE(index->Close(), kIoError);
}

TEST_CASE("everything is made durable after entries_per_flush puts, even without a flush") {
  SiltFixture fixture;
  fixture.options.entries_per_flush = 100;
  auto index = fixture.Open();
  for (uint64_t i = 0; i < 99; ++i) PutNumbers(*index, i, 1, i + 1);
  CHECK(index->durable_sequence() == 0);
  PutNumbers(*index, 99, 1, 100);
  CHECK(index->durable_sequence() == 99);
  index.reset();
  fixture.env.PowerCut();
  index = fixture.Open();
  CheckNumbers(*index, 0, 100);
}

}  // namespace siltfs::testing
