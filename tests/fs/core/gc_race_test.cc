// Other threads' operations at a chosen moment of a garbage collection.
#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "fs/interface/store_maintenance.h"
#include "store/env/sim_env.h"
#include "tests/fs/core/recompression_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

// A simulated device that calls functions at chosen moments of a collection. Unless stated
// otherwise, each function is called once, and in GC's thread.
class WatchedEnv : public FaultEnv {
 public:
  WatchedEnv() : WatchedEnv(std::make_unique<SimEnv>()) {}

  SimEnv& device() { return device_; }
  // Marks the calling thread as GC's thread.
  void Watch() { collector_ = std::this_thread::get_id(); }
  // Called when the sorter draws its seed. At this moment GC counts the live chunks of all
  // segments, as of an earlier commit.
  std::function<void()> while_counting;
  // Called when GC asks how much room the disk has for copies. At this moment the victims are
  // chosen, and their live chunks are marked as of an earlier commit.
  std::function<void()> before_copying;
  // Called when a segment's file is removed.
  std::function<void()> before_removal;
  // Called in any thread, each time a segment's file is read.
  std::function<void()> reading_segment;
  // Called in any thread, once after `armed` was set: when a commit has synced segments and is
  // about to sync a log of metadata.
  std::function<void()> syncing_metadata;
  mutable std::atomic<bool> armed = false;

  Status FillRandom(MutableByteView out) override {
    CallOnce(while_counting);
    return FaultEnv::FillRandom(out);
  }
  Result<DiskSpace> GetDiskSpace(const std::string& path) override {
    CallOnce(before_copying);
    return FaultEnv::GetDiskSpace(path);
  }
  Status RemoveFile(const std::string& path) override {
    if (path.ends_with(".seg")) CallOnce(before_removal);
    return FaultEnv::RemoveFile(path);
  }
  Status Note(Call call, const std::string& path) const override {
    if (reading_segment && call == Call::kRead && path.ends_with(".seg")) reading_segment();
    if (call == Call::kSync && path.ends_with(".seg") && armed) segments_synced_ = true;
    const bool commits = call == Call::kSync && path.ends_with(".log") && segments_synced_;
    if (commits && syncing_metadata && armed.exchange(false)) syncing_metadata();
    return FaultEnv::Note(call, path);
  }

 private:
  explicit WatchedEnv(std::unique_ptr<SimEnv> device)
      : FaultEnv(std::move(device)), device_(static_cast<SimEnv&>(base())) {}

  void CallOnce(std::function<void()>& hook) {
    if (std::this_thread::get_id() != collector_ || !hook) return;
    std::exchange(hook, nullptr)();
  }

  SimEnv& device_;
  std::atomic<std::thread::id> collector_;
  mutable std::atomic<bool> segments_synced_ = false;  // a segment was synced while armed
};

constexpr uint32_t kSegmentBytes = 4u << 20;
constexpr size_t kIndexEntryBytes = 32;
constexpr uint64_t kKeptChunks = 60'000 / 2'048 + 1;  // at most this many chunks in "kept"

}  // namespace

TEST_CASE("if GC does not copy a chunk because it was written again, the new copy is durable") {
  WatchedEnv env;
  RecompressionStore store(env, "/store", kSegmentBytes);
  {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    store.files["kept"] = RandomBytes(1, 60'000);
    WriteLargeFile(**fs, "kept", store.files["kept"]);
    WriteLargeFile(**fs, "garbage", RandomBytes(2, 200'000));
    REQUIRE_OK((*fs)->SyncAll());
  }
  auto fs = store.Open(env);  // seals the segment that was left open
  REQUIRE_OK(fs);
  REQUIRE_OK((*fs)->Unlink(kRootInode, "garbage"));
  const auto bytes_put = [&fs] {
    const auto stats = (*fs)->maintenance().GetStats();
    REQUIRE_OK(stats);
    return stats->index.entry_bytes_put;
  };
  bool written = false;
  env.Watch();
  env.before_copying = [&] {
    written = true;
    const uint64_t before = bytes_put();
    // The chunks are in victims, so they are stored again; the data after them fills their blocks.
    const Bytes more = RandomBytes(3, 600'000);
    WriteLargeFile(**fs, "again", store.files["kept"]);
    WriteLargeFile(**fs, "more", more);
    // Blocks are appended, and entered in the index, in the order in which they were filled.
    while (bytes_put() < before + kKeptChunks * kIndexEntryBytes) std::this_thread::yield();
  };
  const auto report = (*fs)->maintenance().CollectGarbage(false);
  REQUIRE_OK(report);
  REQUIRE(written);
  REQUIRE(report->segments_removed >= 1);
  REQUIRE(report->bytes_copied == 0);
  const auto left = ForkDevice(env.device());
  left->PowerCut();
  {
    auto after = store.Open(*left);
    REQUIRE_OK(after);
    store.RequireFiles(**after);
    REQUIRE_OK((*after)->Close());
  }
  store.RequireSound(*left);
}

// One sealed segment has the chunks of "kept" and of the deleted "garbage".
struct HalfDeadStore {
  HalfDeadStore() : store(env, "/store", kSegmentBytes) {
    {
      auto first = store.Open(env);
      REQUIRE_OK(first);
      store.files["kept"] = RandomBytes(1, 60'000);
      WriteLargeFile(**first, "kept", store.files["kept"]);
      WriteLargeFile(**first, "garbage", garbage);
      REQUIRE_OK((*first)->SyncAll());
    }
    auto opened = store.Open(env);  // seals the segment that was left open
    REQUIRE_OK(opened);
    fs = std::move(opened).value();
    REQUIRE_OK(fs->Unlink(kRootInode, "garbage"));
  }
  void WriteGarbageAgain() {
    WriteLargeFile(*fs, "again", garbage);
    store.files["again"] = garbage;
  }
  GarbageReport Collect() {
    env.Watch();
    const auto report = fs->maintenance().CollectGarbage(false);
    REQUIRE_OK(report);
    return *report;
  }
  void RequireAll() {
    store.RequireFiles(*fs);
    REQUIRE_OK(fs->Close());
    fs.reset();
    store.RequireSound(env);
    store.RequireStatistics(env);
    auto next = store.Open(env);
    REQUIRE_OK(next);
    store.RequireFiles(**next);
    REQUIRE_OK((*next)->Close());
  }

  const Bytes garbage = RandomBytes(2, 200'000);
  WatchedEnv env;
  RecompressionStore store;
  std::unique_ptr<FileSystem> fs;
};

TEST_CASE("data written again after GC has marked its victims is stored again") {
  HalfDeadStore half;
  half.env.before_copying = [&] { half.WriteGarbageAgain(); };
  CHECK(half.Collect().segments_removed >= 1);
  REQUIRE(half.store.files.contains("again"));
  half.RequireAll();
}

TEST_CASE("data written again before its segment becomes a victim stays alive before its commit") {
  HalfDeadStore half;
  half.env.while_counting = [&] { half.WriteGarbageAgain(); };
  half.Collect();
  REQUIRE(half.store.files.contains("again"));
  half.RequireAll();
}

TEST_CASE("segments with chunks put a moment ago become victims, too") {
  WatchedEnv env;
  RecompressionStore store(env, "/store");  // the segments are small: all but the last are sealed
  auto fs = store.Open(env);
  REQUIRE_OK(fs);
  const Bytes garbage = RandomBytes(1, 200'000);
  WriteLargeFile(**fs, "garbage", garbage);
  store.files["kept"] = RandomBytes(2, 100'000);
  WriteLargeFile(**fs, "kept", store.files["kept"]);
  REQUIRE_OK((*fs)->Unlink(kRootInode, "garbage"));
  env.before_copying = [&] {
    WriteLargeFile(**fs, "again", garbage);
    store.files["again"] = garbage;
  };
  env.Watch();
  const auto report = (*fs)->maintenance().CollectGarbage(false);
  REQUIRE_OK(report);
  CHECK(report->segments_removed >= 2);
  REQUIRE(store.files.contains("again"));
  store.RequireFiles(**fs);
  REQUIRE_OK((*fs)->Close());
  fs->reset();
  store.RequireSound(env);
}

TEST_CASE("chunks in an open file's overlay stay alive, in this mount and after a crash") {
  WatchedEnv env;
  RecompressionStore store(env, "/store");
  auto fs = store.Open(env);
  REQUIRE_OK(fs);
  WriteLargeFile(**fs, "garbage", RandomBytes(1, 100'000));
  store.files["open"] = RandomBytes(2, 300'000);
  const InodeNumber open = MakeFile(**fs, kRootInode, "open");
  REQUIRE_OK((*fs)->OpenFile(open, false));
  REQUIRE_OK((*fs)->Write(open, 0, store.files["open"]));
  REQUIRE_OK((*fs)->Unlink(kRootInode, "garbage"));
  const auto report = (*fs)->maintenance().CollectGarbage(false);
  REQUIRE_OK(report);
  CHECK(report->segments_removed >= 1);
  CHECK(report->live_chunks > 10);
  store.RequireFiles(**fs);
  const auto left = ForkDevice(env.device());
  left->PowerCut();
  auto next = store.Open(*left);
  REQUIRE_OK(next);
  store.RequireFiles(**next);
}

// A reader that waits in the middle of its read until GC passes a certain point, or until GC has
// had many chances to pass it. GC must not pass this point while an earlier reader is still
// reading.
class HeldReader {
 public:
  explicit HeldReader(HalfDeadStore& half) : half_(half) {
    half_.env.reading_segment = [this] {
      if (std::this_thread::get_id() != thread_id_ || inside_) return;
      inside_ = true;
      for (int i = 0; i < kChances && !overtaken_; ++i) std::this_thread::yield();
      leaves_ = true;
    };
  }
  ~HeldReader() {
    if (thread_.joinable()) thread_.join();
    half_.env.reading_segment = nullptr;
  }
  // Starts the reader; returns once it is reading.
  void Begin() {
    thread_ = std::thread([this] {
      thread_id_ = std::this_thread::get_id();
      const auto inode = Resolve(*half_.fs, "kept");
      if (inode.ok()) read_ = ReadFile(*half_.fs, *inode).ok();
    });
    while (!inside_) std::this_thread::yield();
  }
  // Called at the point that must wait for the reader.
  void Overtake() { overtaken_ = !leaves_; }
  bool overtaken() const { return overtaken_; }
  // Waits until the reader ends; returns whether its read succeeded.
  bool HasRead() {
    thread_.join();
    return read_;
  }

 private:
  static constexpr int kChances = 200'000;

  HalfDeadStore& half_;
  std::thread thread_;
  std::atomic<std::thread::id> thread_id_;
  std::atomic<bool> inside_ = false, leaves_ = false, read_ = false, overtaken_ = false;
};

TEST_CASE("victims are marked after all earlier users have left") {
  HalfDeadStore half;
  HeldReader reader(half);
  bool reached = false;
  half.env.before_copying = [&] {
    reached = true;
    reader.Overtake();
  };
  reader.Begin();
  half.Collect();
  CHECK(reached);
  CHECK(reader.HasRead());
  CHECK_FALSE(reader.overtaken());
}

TEST_CASE("a segment's file is removed after all readers have left") {
  HalfDeadStore half;
  HeldReader reader(half);
  bool reached = false;
  half.env.before_copying = [&] { reader.Begin(); };
  half.env.before_removal = [&] {
    reached = true;
    reader.Overtake();
  };
  half.Collect();
  CHECK(reached);
  CHECK(reader.HasRead());
  CHECK_FALSE(reader.overtaken());
}

TEST_CASE("a segment recompressed after it was counted is not recompressed again") {
  HalfDeadStore half;
  half.env.while_counting = [&] {
    // The index is durable up to the last block but one.
    half.store.files["more"] = RandomBytes(3, 100'000);
    WriteLargeFile(*half.fs, "more", half.store.files["more"]);
    const auto recompressed = half.fs->maintenance().Recompress();
    REQUIRE_OK(recompressed);
    REQUIRE(recompressed->segments_kept + recompressed->segments_rewritten >= 1);
    half.env.SetAvailable(1u << 20);
  };
  half.env.Watch();
  REQUIRE_CODE(half.fs->maintenance().CollectGarbage(false), kNoSpace);
  half.env.SetAvailable(std::nullopt);
  const auto again = half.fs->maintenance().Recompress();
  REQUIRE_OK(again);
  CHECK(again->segments_left == 0);
  CHECK(again->awaiting_recompression_bytes < 10'000'000);
  half.RequireAll();
}

TEST_CASE("the index never durably points to a copy that a power cut can lose") {
  HalfDeadStore half;
  const Bytes more = RandomBytes(3, 600'000);
  bool done = false;
  const auto bytes_put = [&] {
    const auto stats = half.fs->maintenance().GetStats();
    REQUIRE_OK(stats);
    return stats->index.entry_bytes_put;
  };
  half.env.syncing_metadata = [&] {
    // A separate thread writes: the calling thread is in the middle of a commit, and holds locks of
    // RocksDB.
    std::thread writer([&] {
      const uint64_t before = bytes_put();
      WriteLargeFile(*half.fs, "again", half.store.files["kept"]);
      WriteLargeFile(*half.fs, "more", more);
      while (bytes_put() < before + kKeptChunks * kIndexEntryBytes) std::this_thread::yield();
    });
    writer.join();
    done = true;
  };
  half.env.before_copying = [&] { half.env.armed = true; };
  CHECK(half.Collect().bytes_copied > 50'000);
  REQUIRE(done);
  const auto left = ForkDevice(half.env.device());
  left->PowerCut();
  half.store.RequireSound(*left);
  auto next = half.store.Open(*left);
  REQUIRE_OK(next);
  half.store.RequireFiles(**next);
}

}  // namespace siltfs::testing
