// When the background thread recompresses, how fast, and to which callers it yields. Time passes
// only when a test says so: the device's clock stands still, and the thread waits until the test
// wakes it.
#include "fs/recompression/recompressor.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "fs/records/schema.h"
#include "fs/segments/sealed_record.h"
#include "index/open_index.h"
#include "store/env/process.h"
#include "store/env/sim_env.h"
#include "store/segment/directory_segment_store.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_writer.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"
#include "tests/support/fault_env.h"

namespace siltfs::testing {
namespace {

using std::chrono::nanoseconds;

const std::string kStore = "/store";
constexpr StoreUuid kUuid{{1, 2, 3}};
constexpr nanoseconds kQuiet = std::chrono::seconds(5);
constexpr nanoseconds kInstant{1};
constexpr SegmentId kSegments = 3;
constexpr uint64_t kBytesPerSecond = 1u << 20;
// In KiB: the size of a full block after recompression, and the sizes of the blocks of each segment
// before and after it.
constexpr uint32_t kRecompressedKiB = 128;
const std::vector<uint32_t> kBlocksKiB = {16, 64, 48, 128, 32};
const std::vector<uint32_t> kRecompressedBlocksKiB = {128, 128, 32};

// The priorities of a thread.
struct Priority {
  int policy = 0;
  int io_class = 0;

  auto operator<=>(const Priority&) const = default;
};

Priority PriorityHere() {
  constexpr int kThisThread = 0;
  constexpr int kWhoProcess = 1;
  constexpr int kClassShift = 13;
  const auto io = syscall(SYS_ioprio_get, kWhoProcess, kThisThread);
  return {sched_getscheduler(kThisThread), static_cast<int>(io >> kClassShift)};
}

// The priorities of a thread after RunWhenIdle.
Priority IdlePriority() {
  Priority idle;
  std::thread([&idle] {
    RunWhenIdle();
    idle = PriorityHere();
  }).join();
  return idle;
}

// Records the priorities at which segments were read.
class PriorityEnv : public FaultEnv {
 public:
  using FaultEnv::FaultEnv;

  std::set<Priority> TakeReaders() {
    MutexLock lock(mutex_);
    return std::exchange(readers_, {});
  }
  Status Note(Call call, const std::string& path) const override {
    if (call == Call::kRead && path.find(".seg") != std::string::npos) {
      MutexLock lock(mutex_);
      readers_.insert(PriorityHere());
    }
    return FaultEnv::Note(call, path);
  }

 private:
  mutable Mutex mutex_;
  mutable std::set<Priority> readers_ SILTFS_GUARDED_BY(mutex_);
};

// Controls the recompressor's thread for a test.
class Hand final : public CommitPort {
 public:
  Hand(SimEnv& device, size_t segments) : device_(device), segments_(segments) {}

  // --- Called by the recompressor

  // Called with `mutex` held, as Recompressor::Options::wait says.
  void Wait(CondVar& wakes, Mutex& mutex, nanoseconds at_most) SILTFS_NO_THREAD_SAFETY_ANALYSIS {
    bool flies = false;
    {
      MutexLock lock(mutex_);
      waits_.push_back(at_most);
      wakes_ = &wakes;
      waits_on_ = &mutex;
      flies = time_flies_;
      changed_.NotifyAll();
    }
    if (!flies) return wakes.Wait(mutex);
    device_.AdvanceClock(at_most.count());
    wakes.WaitFor(mutex, kInstant);  // gives other threads the mutex
  }
  Status CommitNow() override { return Status::Ok(); }
  std::shared_ptr<const KvSnapshot> CommittedSnapshot() const override { return nullptr; }
  Status WriteThrough(const std::vector<Mutation>& mutations) override {
    if (on_write) on_write();
    MutexLock lock(mutex_);
    writers_.insert(PriorityHere());
    for (const Mutation& mutation : mutations) {
      const auto id = ParseSegmentKey(mutation.key);
      if (id) recompressed_.emplace_back(*id, std::this_thread::get_id());
    }
    changed_.NotifyAll();
    return Status::Ok();
  }
  // Called for a damaged segment, which must not happen.
  void NoteLeft() {
    MutexLock lock(mutex_);
    ++left_;
    changed_.NotifyAll();
  }

  // --- Called by the test

  std::function<void()> on_write;  // called before metadata is written to
  // Returns true when the thread has begun a new wait since the last Elapse or Expect. Returns
  // false if the thread is done with all segments and has not begun a wait.
  bool Await() {
    MutexLock lock(mutex_);
    while (waits_.size() == seen_ && recompressed_.size() + left_ < segments_)
      changed_.Wait(mutex_);
    return waits_.size() > seen_;
  }
  // Advances the clock by `time` while the thread waits, and wakes the thread.
  void Elapse(nanoseconds time) {
    const auto [wakes, waits_on] = Expect();
    MutexLock waiting(*waits_on);
    {
      MutexLock lock(mutex_);
      seen_ = waits_.size();
    }
    device_.AdvanceClock(time.count());
    wakes->NotifyAll();
  }
  // After Expect, the next Await returns only when the thread has begun a new wait.
  std::pair<CondVar*, Mutex*> Expect() {
    MutexLock lock(mutex_);
    seen_ = waits_.size();
    return {wakes_, waits_on_};
  }
  // From now on waits take no real time, but advance the clock.
  void LetTimeFly() {
    MutexLock lock(mutex_);
    time_flies_ = true;
  }

  size_t waits() {
    MutexLock lock(mutex_);
    return waits_.size();
  }
  // The time limit of the thread's last wait.
  nanoseconds last_wait() {
    MutexLock lock(mutex_);
    return waits_.back();
  }
  // The recompressed segments in order, each with the thread that recompressed it.
  std::vector<std::pair<SegmentId, std::thread::id>> recompressed() {
    MutexLock lock(mutex_);
    return recompressed_;
  }
  std::set<Priority> TakeWriters() {
    MutexLock lock(mutex_);
    return std::exchange(writers_, {});
  }

 private:
  SimEnv& device_;
  const size_t segments_;
  Mutex mutex_;  // taken after the recompressor's mutex
  CondVar changed_;
  bool time_flies_ SILTFS_GUARDED_BY(mutex_) = false;
  std::vector<nanoseconds> waits_ SILTFS_GUARDED_BY(mutex_);
  size_t seen_ SILTFS_GUARDED_BY(mutex_) = 0;
  CondVar* wakes_ SILTFS_GUARDED_BY(mutex_) = nullptr;
  Mutex* waits_on_ SILTFS_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::pair<SegmentId, std::thread::id>> recompressed_ SILTFS_GUARDED_BY(mutex_);
  size_t left_ SILTFS_GUARDED_BY(mutex_) = 0;
  std::set<Priority> writers_ SILTFS_GUARDED_BY(mutex_);
};

// Three sealed segments that await recompression, which makes them much smaller.
struct Recompressing {
  explicit Recompressing(uint64_t bytes_per_second = kBytesPerSecond) {
    REQUIRE_OK(env.CreateDirectory(kStore));
    REQUIRE_OK(env.CreateDirectory(kStore + "/index"));
    REQUIRE_OK(CreateSegmentsDirectory(env, kStore));
    for (SegmentId id = 1; id <= kSegments; ++id) MakeSegment(id);
    auto opened = OpenIndex(env, {.engine = IndexEngine::kMap, .directory = kStore + "/index"});
    REQUIRE_OK(opened);
    index = std::move(opened).value();
    REQUIRE_OK(index->Put({}, sequence + 1));
    REQUIRE_OK(index->Flush());
    SegmentLog::Options log_options;
    log_options.store = kStore;
    log_options.uuid = kUuid;
    log = std::make_unique<SegmentLog>(env, std::move(log_options), [](SegmentId) {});
    Recompressor::Options options;
    options.store = kStore;
    options.uuid = kUuid;
    options.block_plain_bytes = kRecompressedKiB << 10;
    options.bytes_per_second = bytes_per_second;
    options.report = [this](const std::string&) { hand.NoteLeft(); };
    options.wait = [this](CondVar& wakes, Mutex& mutex, nanoseconds at_most) {
      hand.Wait(wakes, mutex, at_most);
    };
    recompressor = std::make_unique<Recompressor>(
        Recompressor::Dependencies{env, *index, *log, cache, activity, account, hand, bases},
        std::move(options));
    for (const SegmentId id : {3, 1, 2}) recompressor->Add(id, records[id]);
  }
  // Without this, the thread would wait for ever after a failed test.
  ~Recompressing() { hand.LetTimeFly(); }

  void MakeSegment(SegmentId id) {
    auto writer = SegmentWriter::Create(env, kStore, {kUuid, id}, SegmentKind::kData, 0);
    REQUIRE_OK(writer);
    for (const uint32_t kib : kBlocksKiB) {
      PlainBlock block;
      block.plain = DullChunk(++sequence, kib << 10);
      ChunkRecord record;
      record.name.bytes[0] = static_cast<uint8_t>(sequence);
      record.tag = sequence;
      record.length = kib << 10;
      block.records = {record};
      auto encoded = codec.Encode(block, {BlockCodecId::kNone, 0});
      REQUIRE_OK(encoded);
      REQUIRE_OK((*writer)->Append(*encoded, sequence, 0));
    }
    REQUIRE_OK((*writer)->Seal());
    records[id] = SealedRecord((*writer)->totals());
  }

  // Adds another segment that awaits recompression.
  void AddSegment() {
    const SegmentId id = records.rbegin()->first + 1;
    MakeSegment(id);
    REQUIRE_OK(index->Put({}, sequence + 1));
    recompressor->Add(id, records[id]);
  }
  // Starts the background thread. Returns when it rests for the first time, after the first block.
  void BeginSegment() {
    recompressor->StartInBackground();
    REQUIRE(hand.Await());
    hand.Elapse(kQuiet);
    REQUIRE(hand.Await());
    REQUIRE(Reads() > 0);
  }
  // Requires that nothing is read or recompressed while `time` passes.
  void RequireNothingDoneIn(nanoseconds time) {
    const uint64_t reads = Reads();
    hand.Elapse(time);
    REQUIRE(hand.Await());
    REQUIRE(Reads() == reads);
  }
  uint64_t Reads() const { return env.Count(FaultEnv::Call::kRead, ".seg"); }
  bool HasTemporary() {
    const auto listing = ListSegments(env, kStore);
    REQUIRE_OK(listing);
    return !listing->temporaries.empty();
  }
  void RequireAllRecompressedInOrder() {
    std::vector<SegmentId> order;
    for (const auto& [id, thread] : hand.recompressed()) order.push_back(id);
    REQUIRE(order == std::vector<SegmentId>{1, 2, 3});
  }
  // Requires that all segments were recompressed, by this thread alone.
  void RequireAllRecompressedHere() {
    RequireAllRecompressedInOrder();
    for (const auto& [id, thread] : hand.recompressed())
      REQUIRE(thread == std::this_thread::get_id());
  }

  const BlockCodec codec;
  SimEnv* const device = new SimEnv;
  PriorityEnv env{std::unique_ptr<Env>(device)};
  Hand hand{*device, kSegments};
  uint64_t sequence = 0;
  std::map<SegmentId, SegmentRecord> records;
  std::unique_ptr<ChunkIndex> index;
  std::unique_ptr<SegmentLog> log;
  DirectorySegmentStore segments{env, kStore};
  SegmentCache cache{segments, kUuid, codec, nullptr, 16};
  StoreActivity activity{env, kQuiet};
  SpaceAccount account{{}};
  SegmentBases bases;
  std::unique_ptr<Recompressor> recompressor;
};

nanoseconds RestAfter(uint32_t kib) {
  return nanoseconds(1'000'000'000ULL * (kib << 10) / kBytesPerSecond);
}

}  // namespace

TEST_CASE("the background thread begins when nothing was put or read for the quiet time") {
  Recompressing store;
  store.recompressor->StartInBackground();
  REQUIRE(store.hand.Await());
  // The mount counts as a use.
  for (int use = 0; use < 5; ++use) {
    store.RequireNothingDoneIn(kQuiet - kInstant);
    store.activity.NoteUse();
  }
  store.RequireNothingDoneIn(kQuiet - kInstant);
  REQUIRE(store.Reads() == 0);
  store.hand.Elapse(kInstant);
  REQUIRE(store.hand.Await());
  CHECK(store.Reads() > 0);
}

TEST_CASE("a use of the store in the middle of a segment delays the background thread") {
  Recompressing store;
  store.BeginSegment();
  for (int use = 0; use < 5; ++use) {
    store.activity.NoteUse();
    store.RequireNothingDoneIn(kQuiet - kInstant);
  }
  // The thread continues with the next block of the segment.
  const uint64_t reads = store.Reads();
  store.hand.Elapse(kInstant);
  REQUIRE(store.hand.Await());
  CHECK(store.Reads() == reads + 1);
  CHECK(store.hand.last_wait() == RestAfter(kBlocksKiB[1]));
  CHECK(store.hand.recompressed().empty());
}

TEST_CASE("after each block of the old or new file, the thread rests in proportion to its size") {
  Recompressing store;
  store.BeginSegment();
  size_t rests = kSegments * (kBlocksKiB.size() + kRecompressedBlocksKiB.size());
  for (SegmentId id = 1; id <= kSegments; ++id) {
    for (const std::vector<uint32_t>& blocks : {kBlocksKiB, kRecompressedBlocksKiB}) {
      for (size_t i = 0; i < blocks.size(); ++i) {
        INFO("segment " << id << ", block " << i << " of " << blocks.size());
        REQUIRE(store.hand.last_wait() == RestAfter(blocks[i]));
        const uint64_t reads = store.Reads();
        store.hand.Elapse(store.hand.last_wait());
        REQUIRE(store.hand.Await() == (--rests > 0));
        if (i + 1 < blocks.size()) REQUIRE(store.Reads() == reads + 1);
      }
    }
  }
  store.RequireAllRecompressedInOrder();
}

TEST_CASE("a wake-up of the background thread does not shorten its rest") {
  Recompressing store;
  store.BeginSegment();
  const nanoseconds rest = store.hand.last_wait();
  const uint64_t reads = store.Reads();
  for (int time = 0; time < 5; ++time) {
    store.hand.Expect();
    store.recompressor->Add(kSegments, store.records[kSegments]);
    REQUIRE(store.hand.Await());
    REQUIRE(store.hand.last_wait() == rest);
    REQUIRE(store.Reads() == reads);
  }
  store.RequireNothingDoneIn(rest - kInstant);
  CHECK(store.hand.last_wait() == kInstant);
  store.hand.Elapse(kInstant);
  REQUIRE(store.hand.Await());
  CHECK(store.Reads() == reads + 1);
}

TEST_CASE("a background thread without a rate limit does not rest") {
  Recompressing store(/*bytes_per_second=*/0);
  store.recompressor->StartInBackground();
  REQUIRE(store.hand.Await());
  store.hand.Elapse(kQuiet);
  REQUIRE_FALSE(store.hand.Await());
  store.RequireAllRecompressedInOrder();
}

TEST_CASE("recompression on demand does not wait for quiet, and does not rest") {
  Recompressing store;
  store.hand.LetTimeFly();
  store.activity.NoteUse();
  const auto outcome = store.recompressor->Recompress();
  REQUIRE_OK(outcome);
  CHECK(outcome->segments == kSegments);
  CHECK(store.hand.waits() == 0);
  store.RequireAllRecompressedHere();
}

TEST_CASE("recompression on demand takes only the segments that existed when it began") {
  constexpr size_t kMostSegments = 20;
  Recompressing store;
  store.hand.LetTimeFly();
  store.hand.on_write = [&store] {
    if (store.records.size() < kMostSegments) store.AddSegment();
  };
  const auto outcome = store.recompressor->Recompress();
  REQUIRE_OK(outcome);
  CHECK(outcome->segments == kSegments);
  store.hand.on_write = nullptr;
  const auto rest = store.recompressor->Recompress();
  REQUIRE_OK(rest);
  CHECK(rest->segments == store.records.size() - kSegments);
}

TEST_CASE("SetAside waits for the segment that is being recompressed, not for all") {
  constexpr size_t kManySegments = 40;
  Recompressing store;
  store.hand.LetTimeFly();
  while (store.records.size() < kManySegments) store.AddSegment();
  std::vector<SegmentId> all;
  for (const auto& [id, record] : store.records) all.push_back(id);
  std::atomic<bool> waits = false;
  std::thread collector;
  std::optional<Result<SegmentRecords>> aside;
  store.hand.on_write = [&] {
    if (collector.joinable()) return;
    collector = std::thread([&] {
      waits = true;
      aside.emplace(store.recompressor->SetAside(all));
    });
    while (!waits) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // SetAside waits for this segment
  };
  const auto outcome = store.recompressor->Recompress();
  collector.join();
  REQUIRE_OK(outcome);
  REQUIRE_OK(*aside);
  CHECK(outcome->segments + (*aside)->size() == kManySegments);
  CHECK((*aside)->size() > kManySegments / 2);
}

TEST_CASE("the background thread yields to recompression on demand in the middle of a segment") {
  const bool in_use = GENERATE(false, true);
  INFO((in_use ? "while it waits for quiet" : "while it rests"));
  Recompressing store;
  store.BeginSegment();
  if (in_use) {
    store.activity.NoteUse();
    store.RequireNothingDoneIn(kQuiet - kInstant);
  }
  // The clock stands still until Recompress wakes the background thread. If this thread did not
  // stop then, it would continue its segment at once.
  store.hand.LetTimeFly();
  const auto outcome = store.recompressor->Recompress();
  REQUIRE_OK(outcome);
  CHECK(outcome->segments == kSegments);
  store.RequireAllRecompressedHere();
  CHECK_FALSE(store.HasTemporary());
}

TEST_CASE("the background thread yields to SetAside, even if SetAside takes the current segment") {
  Recompressing store;
  store.BeginSegment();
  store.hand.LetTimeFly();
  const auto aside = store.recompressor->SetAside(std::vector<SegmentId>{1, 2, 3});
  REQUIRE_OK(aside);
  CHECK(*aside == SegmentRecords(store.records.begin(), store.records.end()));
  CHECK_FALSE(store.HasTemporary());
  CHECK(store.hand.recompressed().empty());
}

TEST_CASE("the background thread ends in the middle of a segment when it is stopped") {
  Recompressing store;
  store.BeginSegment();
  store.hand.LetTimeFly();
  store.recompressor->Stop();
  CHECK_FALSE(store.HasTemporary());
  CHECK(store.hand.recompressed().empty());
}

TEST_CASE("the background thread rewrites at idle priority, and holds locks at normal priority") {
  const Priority everyone = PriorityHere();
  const Priority idle = IdlePriority();
  if (idle == everyone) {
    WARN("threads have no idle priority here");
    return;
  }
  Recompressing store;
  SECTION("in the background") {
    store.BeginSegment();
    while (store.hand.Await()) store.hand.Elapse(store.hand.last_wait());
    store.recompressor->Stop();
    CHECK(store.env.TakeReaders() == std::set<Priority>{idle});
    CHECK(store.hand.TakeWriters() == std::set<Priority>{everyone});
  }
  SECTION("on demand") {
    REQUIRE_OK(store.recompressor->Recompress());
    CHECK(store.env.TakeReaders() == std::set<Priority>{everyone});
    CHECK(store.hand.TakeWriters() == std::set<Priority>{everyone});
  }
}

}  // namespace siltfs::testing
