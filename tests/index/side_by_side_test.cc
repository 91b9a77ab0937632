// An index with threads opens and syncs its files in parallel. An index without threads does this
// one file after another.
#include <algorithm>
#include <atomic>

#include "hook_env.h"
#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

// A closed index with 2^bits partitions and stores of all kinds.
struct Closed : SiltFixture {
  static constexpr uint64_t kNames = 20'000;

  explicit Closed(unsigned bits) {
    options.partition_bits = bits;
    options.bucket_bits = 6;
    options.write_batch_pages = 1;
    options.hash_store_share = 0.25;
    // The share stays at any memory limit, so that no merge begins when the index is opened.
    options.bytes_per_put = options.most_bytes_per_put = 60;
    auto index = Open();
    PutNumbers(*index, 0, kNames, 1);
    REQUIRE_OK(index->Close());
    options.serve_early = true;
    options.background = true;
  }

  std::unique_ptr<ChunkIndex> OpenHooked() {
    auto index = OpenSiltIndex(hooks, options);
    REQUIRE_OK(index);
    return std::move(*index);
  }
  void CutShort(const StoreFileId& file) {
    const std::string contents = Contents(file);
    Restore(file, contents.substr(0, contents.size() - 1));
  }
  uint64_t NumberIn(uint32_t partition) const {
    for (uint64_t i = 0;; ++i) {
      const uint64_t hash = NameHash{*options.hash_secret}.Of(NameOf(i));
      if (PartitionOf(hash, options.partition_bits) == partition) return i;
    }
  }

  HookEnv hooks{env};
};

}  // namespace

TEST_CASE("the stores of a partition are opened in parallel") {
  Closed fixture(0);
  REQUIRE(fixture.Files(StoreKind::kHash).size() >= 4);
  Gathering gathering(4);
  fixture.hooks.on_open = [&](const std::string& path) {
    if (path.ends_with(".hash")) gathering.Come();
  };
  auto index = fixture.OpenHooked();
  CheckNumbers(*index, 0, 1);
  CHECK(gathering.complete());
  CheckNumbers(*index, 0, Closed::kNames);
}

TEST_CASE("an index without threads opens stores one by one, in the calling thread") {
  Closed fixture(0);
  fixture.options.background = false;
  const auto self = std::this_thread::get_id();
  std::vector<std::string> opened;
  fixture.hooks.on_open = [&](const std::string& path) {
    CHECK(std::this_thread::get_id() == self);
    opened.push_back(path);
  };
  fixture.hooks.on_list = fixture.hooks.on_open;
  auto index = fixture.OpenHooked();
  CheckNumbers(*index, 0, 1);
  std::vector<std::string> expected{SiltFixture::kDirectory,
                                    JoinPath(SiltFixture::kDirectory, "manifest"),
                                    JoinPath(SiltFixture::kDirectory, "manifest.edits")};
  for (const StoreKind kind :
       {StoreKind::kHash, StoreKind::kSorted, StoreKind::kFilter, StoreKind::kLog}) {
    for (const StoreFileId& file : fixture.Files(kind)) expected.push_back(fixture.PathOf(file));
  }
  CHECK(opened == expected);
}

TEST_CASE("the error of the first store that can't be opened fails its partition") {
  Closed fixture(0);
  const auto files = fixture.Files(StoreKind::kHash);
  fixture.CutShort(files.at(1));
  fixture.CutShort(files.at(3));
  fixture.env.FailCall({.calls = SimCall::kRead, .sticky = true, .path_part = ".log"});
  auto index = fixture.OpenHooked();
  for (int i = 0; i < 2; ++i) {
    const Status status = index->Get(NameOf(1)).status();
    REQUIRE(status.Is(StatusCode::kCorruption));
    CHECK(status.path() == fixture.PathOf(files.at(1)));
  }
  REQUIRE_CODE(index->WaitUntilOpen(), kCorruption);
}

TEST_CASE("an unreadable log fails its partition even if all stores were opened") {
  Closed fixture(0);
  fixture.env.FailCall({.calls = SimCall::kRead, .sticky = true, .path_part = ".log"});
  auto index = fixture.OpenHooked();
  REQUIRE_CODE(index->Get(NameOf(1)).status(), kIoError);
  REQUIRE_CODE(index->Get(NameOf(1)).status(), kIoError);
}

TEST_CASE("a lookup waits for its own partition and no other") {
  Closed fixture(3);
  Gate gate;
  fixture.hooks.on_open = [&](const std::string& path) {
    if (path.find("/00000-") != std::string::npos) gate.Wait();
  };
  auto index = fixture.OpenHooked();
  for (uint32_t p = 7; p > 0; --p) CheckNumbers(*index, fixture.NumberIn(p), 1);
  CHECK_FALSE(gate.gave_up());
  gate.Open();
  CheckNumbers(*index, 0, Closed::kNames);
}

TEST_CASE("concurrent lookups in one partition wait for a single recovery of it") {
  Closed fixture(0);
  std::atomic<int> logs{0};
  fixture.hooks.on_open = [&](const std::string& path) { logs += path.ends_with(".log") ? 1 : 0; };
  auto index = fixture.OpenHooked();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      auto got = index->Get(NameOf(5));
      if (!got.ok() || *got != NumberedEntry(5).location) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  REQUIRE_OK(index->WaitUntilOpen());
  CHECK(logs == 1);
}

TEST_CASE("stores are opened while the directory is still being listed") {
  Closed fixture(0);
  Gate opened;
  fixture.hooks.on_list = [&](const std::string&) { opened.Wait(); };
  fixture.hooks.on_open = [&](const std::string& path) {
    if (path.ends_with(".hash")) opened.Open();
  };
  auto index = fixture.OpenHooked();
  CheckNumbers(*index, 0, 1);
  CHECK_FALSE(opened.gave_up());
}

TEST_CASE("a directory that can't be listed fails all calls that need its logs") {
  Closed fixture(1);
  fixture.options.serve_early = GENERATE(true, false);
  fixture.env.FailCall({.calls = SimCall::kList, .sticky = true});
  auto index = OpenSiltIndex(fixture.env, fixture.options);
  if (!fixture.options.serve_early) {
    REQUIRE_CODE(index.status(), kIoError);
    return;
  }
  REQUIRE_OK(index);
  REQUIRE_CODE((*index)->Get(NameOf(1)).status(), kIoError);
  REQUIRE_CODE((*index)->WaitUntilOpen(), kIoError);
  REQUIRE_CODE((*index)->Put(NumberedEntries(0, 1), 50), kIoError);
}

TEST_CASE("stores without a manifest are not taken for a new index, even if the listing is late") {
  Closed fixture(0);
  const std::string manifest = JoinPath(SiltFixture::kDirectory, "manifest");
  REQUIRE_OK(fixture.env.RemoveFile(manifest));
  Gate looked_for;  // delays the listing of the directory until the manifest was looked for
  fixture.hooks.on_list = [&](const std::string&) { looked_for.Wait(); };
  fixture.hooks.on_open = [&](const std::string& path) {
    if (path == manifest) looked_for.Open();
  };
  REQUIRE_CODE(OpenSiltIndex(fixture.hooks, fixture.options).status(), kCorruption);
}

TEST_CASE("filters are loaded in parallel") {
  Closed fixture(0);
  fixture.options.memory_limit = 0;
  auto index = fixture.OpenHooked();
  REQUIRE_OK(index->WaitUntilOpen());
  Gathering gathering(3);
  std::atomic<bool> loading{false};
  fixture.hooks.on_read = [&](const std::string& path) {
    if (loading && path.ends_with(".hash")) gathering.Come();
  };
  loading = true;
  REQUIRE_OK(index->SetMemoryLimit(kNoMemoryLimit));
  while (index->stats().load_backlog > 0) Rest();
  CHECK(gathering.complete());
  loading = false;
  CheckNumbers(*index, 0, Closed::kNames);
}

TEST_CASE("a damaged filter among those loaded in parallel is left out, and counted once") {
  Closed fixture(0);
  const StoreFileId damaged = fixture.Files(StoreKind::kHash).at(2);
  const uint64_t size = fixture.Contents(damaged).size();
  FlipByte(fixture.env, fixture.PathOf(damaged), size - 80 - 5);  // before the footer
  auto index = fixture.OpenHooked();
  REQUIRE_OK(index->WaitUntilOpen());
  while (index->stats().load_backlog > 0) Rest();
  CHECK(index->stats().damaged_pages == 1);
  const IndexStats stats = index->stats();
  CHECK(std::count_if(stats.stores.begin(), stats.stores.end(), [](const auto& store) {
          return store.kind == "hash_store" && store.memory_bytes == 0;
        }) == 1);
  CheckNumbers(*index, 0, Closed::kNames);
}

TEST_CASE("a lookup in stores without filters reads ahead, and counts needless reads, too") {
  Closed fixture(0);
  fixture.options.memory_limit = 0;
  // The lack of memory must not cause merges, whose reads would be counted, too.
  fixture.options.bytes_per_put = fixture.options.most_bytes_per_put = 60;
  fixture.options.background = GENERATE(true, false);
  std::atomic<int> queues{0};
  std::atomic<uint64_t> reads{0};
  fixture.hooks.on_queue = [&] { ++queues; };
  fixture.hooks.on_read = [&](const std::string&) { ++reads; };
  auto index = fixture.OpenHooked();
  REQUIRE_OK(index->WaitUntilOpen());
  while (index->stats().load_backlog > 0) Rest();  // page boundaries are read despite the limit
  const uint64_t reads_before = reads;
  const uint64_t counted_before = index->stats().flash_reads;
  CheckNumbers(*index, 0, 2000);
  CheckNumbers(*index, Closed::kNames - 2000, 2000);
  CHECK(index->stats().flash_reads - counted_before == reads - reads_before);
  CHECK((queues > 0) == fixture.options.background);
}

TEST_CASE("logs are synced in parallel, after writeback of all of them has begun") {
  Closed fixture(2);
  auto index = fixture.OpenHooked();
  PutNumbers(*index, Closed::kNames, 100, 2);
  Gathering gathering(4);
  std::atomic<int> begun{0};
  std::atomic<int> fewest_begun{4};
  fixture.hooks.on_begin_sync = [&](const std::string& path) { begun += path.ends_with(".log"); };
  fixture.hooks.on_sync = [&](const std::string& path) {
    if (!path.ends_with(".log")) return;
    if (begun < fewest_begun) fewest_begun = begun.load();
    gathering.Come();
  };
  REQUIRE_OK(index->Flush());
  CHECK(gathering.complete());
  CHECK(fewest_begun == 4);
}

TEST_CASE("any log that can't be made durable fails the flush") {
  Closed fixture(2);
  const auto logs = fixture.Files(StoreKind::kLog);
  REQUIRE(logs.size() == 4);
  for (const StoreFileId& log : logs) {
    {
      auto index = fixture.OpenHooked();
      REQUIRE_OK(index->WaitUntilOpen());
      PutNumbers(*index, Closed::kNames, 100, 2);
      fixture.env.FailCall({.calls = SimCall::kSync, .path_part = StoreFileName(log)});
      REQUIRE_CODE(index->Flush(), kIoError);
      fixture.env.ClearFaults();
      CHECK(index->durable_sequence() < 2);
    }
    REQUIRE_OK(fixture.OpenHooked()->Close());
  }
}

}  // namespace siltfs::testing
