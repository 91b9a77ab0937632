// A store with a segment guide whose index was lost: reads are served at once, the entries are put
// in the background, and nothing is lost whatever happens meanwhile.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "fs/check/check_store.h"
#include "fs/guide/segment_guide.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/rebuild_index.h"
#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "fs/repair/repair_store.h"
#include "store/base/random.h"
#include "store/env/files.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

constexpr size_t kFileBytes = 150'000;
constexpr int kFiles = 24;

// A store of two or three dozen small segments. Its guide covers all segments that are sealed.
class GuidedStore {
 public:
  GuidedStore() {
    auto state = ReadSuperblock(store.env(), store.path());
    REQUIRE_OK(state);
    state->superblock.segment_bytes = 64u << 10;
    REQUIRE_OK(WriteSuperblock(store.env(), store.path(), state->superblock));
    store.adjust = [this](FileSystemOptions& options) {
      options.keep_guide = true;
      options.guide_shape.names_per_group = 100;
      options.most_replayed_at_open = most_replayed;
      options.on_index_progress = on_progress;
      options.index_sync = index_sync;
    };
    store.Open();
    for (int i = 0; i < kFiles; ++i) Write(i);
    REQUIRE_OK(store.fs().SyncAll());
    WaitForGuide();
    chunks = store.Stats().chunks_unique;
    store.Close();
  }

  static std::string Name(int i) { return fmt::format("f{}", i); }
  static Bytes ContentOf(int i) { return RandomBytes(static_cast<uint64_t>(i) + 1, kFileBytes); }
  void Write(int i) { WriteFile(store.fs(), Name(i), ContentOf(i)); }
  void RequireFile(int i) {
    INFO(Name(i));
    auto inode = Resolve(store.fs(), Name(i));
    REQUIRE_OK(inode);
    auto bytes = ReadFile(store.fs(), *inode);
    REQUIRE_OK(bytes);
    REQUIRE((*bytes == ContentOf(i)));
  }
  void RequireFiles() {
    for (int i = 0; i < kFiles; ++i) RequireFile(i);
  }
  // Until the background thread has covered all sealed segments.
  void WaitForGuide() {
    store.fs().maintenance().CollectGarbage(/*dry_run=*/true).status().IgnoreError("seals");
    REQUIRE_OK(store.fs().SyncAll());
    while (store.Stats().guide_uncovered > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void LoseIndex() {
    std::filesystem::remove_all(IndexPath(store.path()));
    most_replayed = 0;
  }
  // Opens the store without its index, and holds the replay after its first segment.
  template <typename Latch>
  void OpenWithoutIndex(Latch& latch) {
    LoseIndex();
    on_progress = latch.Hold();
    store.Open();
    latch.WaitUntilReached();
  }
  // All chunks are duplicates again.
  void RequireDuplicates() {
    for (int i = 0; i < kFiles; ++i)
      WriteFile(store.fs(), fmt::format("again {}", i), ContentOf(i));
    REQUIRE_OK(store.fs().SyncAll());
    CHECK(store.Stats().chunks_unique == chunks);
  }
  uint64_t SegmentReads() { return store.env().Count(FaultEnv::Call::kRead, "seg"); }
  void RequireSound(std::set<std::string> expected = {}) {
    std::set<std::string> codes;
    CheckOptions options;
    options.store = store.path();
    options.segments = SealedSegments(store.env());
    options.data = true;
    options.on_finding = [&](const Finding& finding) { codes.insert(finding.code); };
    REQUIRE_OK(CheckStore(store.env(), options));
    REQUIRE(codes == expected);
  }

  StoreFixture store;
  uint64_t most_replayed = FileSystemOptions().most_replayed_at_open;
  std::function<void(uint64_t, uint64_t)> on_progress;
  bool index_sync = false;  // with it, each put of the replay writes
  uint64_t chunks = 0;
};

// Holds the replay after its first segment until Release.
class Latch {
 public:
  std::function<void(uint64_t, uint64_t)> Hold() {
    return [this](uint64_t, uint64_t) {
      MutexLock lock(mutex_);
      reached_ = true;
      changed_.NotifyAll();
      while (!released_) changed_.Wait(mutex_);
    };
  }
  void WaitUntilReached() {
    MutexLock lock(mutex_);
    while (!reached_) changed_.Wait(mutex_);
  }
  void Release() {
    MutexLock lock(mutex_);
    released_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool reached_ SILTFS_GUARDED_BY(mutex_) = false;
  bool released_ SILTFS_GUARDED_BY(mutex_) = false;
};

// Writes a file and syncs it; for threads, in which no test macro may be used.
Status PutFile(FileSystem& fs, const std::string& name, ByteView content) {
  SILTFS_ASSIGN_OR_RETURN(const Attributes made, fs.CreateFile(kRootInode, name, 0644, kCaller));
  Status status = fs.Write(made.inode, 0, content);
  if (status.ok()) status = fs.Fsync(made.inode);
  fs.ReleaseFile(made.inode);
  return status;
}

void WaitForReplay(StoreFixture& store) {
  while (store.Stats().index_replay.running)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("files are read before the index is rebuilt, and writes wait", "[race]") {
  GuidedStore guided;
  StoreFixture& store = guided.store;
  Latch latch;
  guided.OpenWithoutIndex(latch);
  FileSystemStats stats = store.Stats();
  REQUIRE(stats.index_replay.running);
  CHECK(stats.index_replay.segments_done == 1);
  CHECK(stats.index_replay.segments_total > kFiles);
  // The end of the last file is in a segment that is not sealed, which the guide does not cover.
  for (const int file : {7, kFiles - 1}) {
    const uint64_t before = store.Stats().segments_searched;
    guided.RequireFile(file);
    CHECK(store.Stats().segments_searched - before < kFiles);
  }
  guided.RequireFiles();
  CHECK(store.Stats().guide_lookups > 0);
  CHECK(store.Stats().index_replay.running);

  std::atomic<bool> stored{false};
  std::atomic<bool> written{false};
  Status put;
  Status collected;
  std::thread writer([&] {
    put = PutFile(store.fs(), "copy", GuidedStore::ContentOf(0));
    stored = true;
    collected = store.fs().maintenance().CollectGarbage(false).status();
    written = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(stored);
  CHECK_FALSE(written);
  latch.Release();
  writer.join();
  CHECK(written);
  REQUIRE_OK(put);
  REQUIRE_OK(collected);
  WaitForReplay(store);
  stats = store.Stats();
  CHECK(stats.index_replay.segments_done == stats.index_replay.segments_total);
  guided.RequireDuplicates();
  CHECK(store.Stats().guide_lookups > 0);
  store.Close();
  CHECK_FALSE(*IsRebuildUnfinished(store.env(), store.path()));
  RecountStore(store.path());
  guided.RequireSound();
  CHECK(store.findings().size() == 1);  // the lost index
}

TEST_CASE("a search with a guide reads few segments") {
  GuidedStore guided;
  StoreFixture& store = guided.store;
  guided.LoseIndex();
  const auto reads_of = [&](int file, bool with_guide) {
    store.Open(/*read_only=*/true);
    const uint64_t before = guided.SegmentReads();
    guided.RequireFile(file);
    const uint64_t reads = guided.SegmentReads() - before;
    CHECK((store.Stats().guide_lookups > 0) == with_guide);
    store.Close();
    return reads;
  };
  CHECK(reads_of(7, true) < 60);
  // Without a guide, the entries are read when the store is opened.
  const uint64_t before = guided.SegmentReads();
  std::filesystem::remove_all(GuidePath(store.path()));
  reads_of(7, false);
  CHECK(guided.SegmentReads() - before > 2 * kFiles);
}

TEST_CASE("a store that is closed before the index is rebuilt continues at the next mount",
          "[race]") {
  GuidedStore guided;
  StoreFixture& store = guided.store;
  guided.LoseIndex();
  const bool crash = GENERATE(false, true);
  INFO("crash " << crash);
  std::optional<Latch> latch(std::in_place);
  guided.on_progress = latch->Hold();
  store.Open();
  latch->WaitUntilReached();
  // This write finds no room to wait in memory, or is folded when the store is closed. In both
  // cases it may fail, but what was durable stays.
  std::thread releases([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    latch->Release();
  });
  crash ? store.Crash() : store.Close();
  releases.join();
  CHECK(store.findings().size() == 1);  // the lost index
  // After a crash, missing entries are no fault.
  CHECK(*IsRebuildUnfinished(store.env(), store.path()) == !crash);
  guided.RequireSound(crash ? std::set<std::string>{} : std::set<std::string>{"index-rebuild"});
  guided.on_progress = nullptr;
  store.Open();
  guided.RequireFiles();
  WaitForReplay(store);
  guided.RequireFiles();
  guided.RequireDuplicates();
  store.Close();
  CHECK_FALSE(*IsRebuildUnfinished(store.env(), store.path()));
  guided.RequireSound();
}

TEST_CASE("commands that wait for the index can be interrupted, each kind alone", "[race]") {
  GuidedStore guided;
  StoreFixture& store = guided.store;
  Latch latch;
  guided.OpenWithoutIndex(latch);
  StoreMaintenance& maintenance = store.fs().maintenance();
  Status collected;
  Status recompressed;
  std::atomic<bool> collecting{true};
  std::atomic<bool> recompressing{true};
  std::thread collect([&] {
    collected = maintenance.CollectGarbage(false).status();
    collecting = false;
  });
  std::thread recompress([&] {
    recompressed = maintenance.Recompress().status();
    recompressing = false;
  });
  // An interruption is repeated, as by the daemon, because the call may not have begun. A fault
  // would make this loop endless, so it gives up.
  const auto interrupt = [](const std::atomic<bool>& runs, const std::function<void()>& once) {
    for (int i = 0; i < 60'000 && runs; ++i) {
      once();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  interrupt(collecting, [&] { maintenance.InterruptCollecting(); });
  CHECK_FALSE(collecting);
  CHECK(recompressing);
  interrupt(recompressing, [&] { maintenance.InterruptRecompression(); });
  CHECK_FALSE(recompressing);
  CHECK(store.Stats().index_replay.running);
  latch.Release();
  collect.join();
  recompress.join();
  CHECK(collected.Is(StatusCode::kInterrupted));
  CHECK(recompressed.Is(StatusCode::kInterrupted));
  WaitForReplay(store);
  REQUIRE_OK(maintenance.CollectGarbage(false));
  store.Close();
  guided.RequireSound();
}

TEST_CASE("small files that are written and synced during the rebuild survive", "[race]") {
  GuidedStore guided;
  StoreFixture& store = guided.store;
  Latch latch;
  guided.OpenWithoutIndex(latch);
  const Bytes text = RandomBytes(99, 700);
  Status put;
  std::thread writer([&] { put = PutFile(store.fs(), "small", text); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  latch.Release();
  writer.join();
  REQUIRE_OK(put);
  store.Crash();
  store.Open();
  const auto inode = Resolve(store.fs(), "small");
  REQUIRE_OK(inode);
  REQUIRE(*ReadFile(store.fs(), *inode) == text);
  guided.RequireFiles();
  WaitForReplay(store);
  store.Close();
  guided.RequireSound();
}

TEST_CASE("a rebuild that fails makes the store read-only, and reads go on", "[race]") {
  GuidedStore guided;
  StoreFixture& store = guided.store;
  Latch latch;
  guided.index_sync = true;
  guided.OpenWithoutIndex(latch);
  store.env().Fail(FaultEnv::Call::kChange, "/index/", StatusCode::kIoError);
  latch.Release();
  WaitForReplay(store);
  CHECK(store.Stats().read_only);
  CHECK_FALSE(store.Stats().read_only_cause.empty());
  guided.RequireFiles();
  REQUIRE_CODE(store.fs().maintenance().CollectGarbage(false), kReadOnly);
  store.Crash();
  store.env().Heal();
  guided.on_progress = nullptr;
  store.Open();
  WaitForReplay(store);
  guided.RequireFiles();
  store.Close();
  guided.RequireSound();
}

TEST_CASE("without a usable guide a mount waits for the index, and makes the guide again") {
  GuidedStore guided;
  StoreFixture& store = guided.store;
  guided.LoseIndex();
  SECTION("missing") { std::filesystem::remove_all(GuidePath(store.path())); }
  SECTION("a file") {
    std::filesystem::remove_all(GuidePath(store.path()));
    WriteText(GuidePath(store.path()), "what?");
  }
  SECTION("manifest") { WriteText(JoinPath(GuidePath(store.path()), "manifest"), "what?"); }
  SECTION("full disk") {
    std::filesystem::remove_all(GuidePath(store.path()));
    store.env().Fail(FaultEnv::Call::kChange, "index.guide", StatusCode::kNoSpace);
  }
  SECTION("faulty disk") {
    store.env().Fail(FaultEnv::Call::kRead, "index.guide", StatusCode::kIoError);
  }
  store.Open();
  guided.RequireFiles();
  WaitForReplay(store);
  guided.RequireFiles();
  store.Close();
  store.env().Heal();
  guided.RequireSound();
}

TEST_CASE("damage of the guide costs reads, and is found and repaired") {
  GuidedStore guided;
  StoreFixture& store = guided.store;
  size_t damaged = 0;
  for (const auto& file : std::filesystem::directory_iterator(GuidePath(store.path()))) {
    if (!file.path().string().ends_with(".pages") || file.file_size() == 0) continue;
    std::string bytes = ReadText(file.path().string());
    for (size_t at = 100; at < bytes.size(); at += 4096) bytes[at] ^= 1;
    WriteText(file.path().string(), bytes);
    ++damaged;
  }
  REQUIRE(damaged > 0);
  guided.RequireSound({"guide"});
  SECTION("used as it is") {}
  SECTION("repaired") {
    RepairOptions options;
    options.check.store = store.path();
    options.check.segments = SealedSegments(store.env());
    REQUIRE_OK(RepairStore(store.env(), options));
    guided.RequireSound();
  }
  SECTION("made again with the index") {
    IndexRebuildOptions options;
    options.store = store.path();
    options.segments = SealedSegments(store.env());
    REQUIRE_OK(RebuildIndex(store.env(), options));
    guided.RequireSound();
  }
  guided.LoseIndex();
  store.Open();
  guided.RequireFiles();
  WaitForReplay(store);
  store.Close();
}

TEST_CASE("a guide that lacks names costs reads, never data") {
  GuidedStore guided;
  StoreFixture& store = guided.store;
  const auto listing = SegmentsOf(store.env(), store.path())->List();
  REQUIRE_OK(listing);
  SegmentRecords records;
  for (const SegmentId id : listing->ids) {
    SegmentRecord record;
    record.chunks = 1;
    record.sealed = true;
    records.emplace_back(id, record);
  }
  REQUIRE_OK(MakeEmptyDirectory(store.env(), GuidePath(store.path())));
  SegmentGuide::Options options;
  options.directory = GuidePath(store.path());
  const auto guide = SegmentGuide::Open(store.env(), std::move(options), records);
  for (const SegmentId id : listing->ids) REQUIRE_OK(guide->Cover(id, {}));
  REQUIRE_OK(guide->Close());
  Latch latch;
  guided.OpenWithoutIndex(latch);
  guided.RequireFiles();
  latch.Release();
  WaitForReplay(store);
  store.Close();
  guided.RequireSound();
}

TEST_CASE("the guide forgets segments that garbage collection removed") {
  GuidedStore guided;
  StoreFixture& store = guided.store;
  store.Open();
  const uint64_t before = store.Stats().guide->segments;
  for (int i = 0; i < kFiles / 2; ++i)
    REQUIRE_OK(store.fs().Unlink(kRootInode, GuidedStore::Name(i)));
  REQUIRE_OK(store.fs().SyncAll());
  REQUIRE_OK(store.fs().maintenance().CollectGarbage(false).status());
  store.Close();
  store.Open(/*read_only=*/true);
  const FileSystemStats stats = store.Stats();
  REQUIRE(stats.guide);
  CHECK(stats.guide->segments < before * 3 / 4);
  store.Close();
  guided.RequireSound();
  guided.LoseIndex();
  store.Open();
  for (int i = kFiles / 2; i < kFiles; ++i) guided.RequireFile(i);
  store.Close();
}

}  // namespace siltfs::testing
