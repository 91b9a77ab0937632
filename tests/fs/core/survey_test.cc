// The survey of a store, and the histories that it reads.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fs/core/size_recorder.h"
#include "fs/interface/snapshots.h"
#include "fs/interface/store_survey.h"
#include "fs/records/savings_history.h"
#include "fs/records/scrub_history.h"
#include "store/env/sim_env.h"
#include "tests/fs/core/garbage_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/fs/meta/memory_kv_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr std::chrono::nanoseconds kDay = std::chrono::hours(24);

StoreSurvey Survey(FileSystem& fs) {
  auto survey = fs.maintenance().Survey({});
  REQUIRE_OK(survey);
  return *survey;
}

uint64_t SumOf(const auto& classes) {
  uint64_t chunks = 0;
  for (const ChunkClass& one : classes) chunks += one.chunks;
  return chunks;
}

std::vector<PastSizes> SizesOf(StoreFixture& store) {
  store.Open(/*read_only=*/true);
  auto sizes = Survey(store.fs()).sizes;
  store.Close();
  return sizes;
}

// Metadata in memory: every write is durable at once.
class DirectPort final : public CommitPort {
 public:
  DirectPort() : kv_(OpenMemoryKvStore(disk_)) {}

  Status CommitNow() override { return Status::Ok(); }
  std::shared_ptr<const KvSnapshot> CommittedSnapshot() const override { return kv_->Snapshot(); }
  Status WriteThrough(const std::vector<Mutation>& mutations) override {
    return kv_->Write(mutations);
  }
  SavingsHistory History() const {
    const auto value = kv_->Get(kSavingsHistoryKey);
    REQUIRE_OK(value);
    if (!*value) return {};
    auto history = SavingsHistory::Decode(**value);
    REQUIRE_OK(history);
    return *history;
  }

 private:
  MemoryDisk disk_;
  const std::unique_ptr<KvStore> kv_;
};

}  // namespace

TEST_CASE("the sums of a survey are the figures of the statistics") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  store.WriteFiles(fs, 1, 6);
  store.WriteRandom(100, 900'000);  // long enough for recipe nodes
  // Copies share all chunks, the last one through an overlay that is not folded yet.
  WriteLargeFile(fs, "copy", store.files["random 100"]);
  REQUIRE_OK(fs.SyncAll());
  const StoreSurvey survey = Survey(fs);
  const FileSystemStats stats = store.Stats();
  const ChunkSurvey& chunks = survey.chunks;
  CHECK(chunks.sample_bits == 0);
  CHECK(chunks.references == stats.chunks_logical);
  CHECK(chunks.files.chunks == stats.chunks_unique);
  CHECK(chunks.files.bytes == stats.unique_bytes);
  CHECK(SumOf(chunks.lengths) == stats.chunks_unique);
  CHECK(SumOf(chunks.shared) == stats.chunks_unique);
  CHECK(chunks.shared[1].chunks > 50);  // two references
  CHECK(chunks.nodes.chunks > 0);
  CHECK(chunks.not_indexed == 0);
  CHECK(chunks.snapshots == ChunkClass{});
  uint64_t bytes = 0;
  for (const SegmentUse& segment : chunks.segments) bytes += segment.bytes;
  CHECK(bytes == stats.stored_bytes);
}

TEST_CASE("the live chunks of a survey are those that garbage collection counts") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 12; ++i) store.WriteRandom(i, 60'000);
  for (uint64_t i = 0; i < 12; i += 3) store.Delete(fmt::format("random {}", i));
  REQUIRE_OK(fs.SyncAll());
  store.End();
  store.Begin();
  const GarbageReport counted = store.Collect(/*dry_run=*/true);
  REQUIRE(counted.dead_chunks > 0);
  const ChunkSurvey chunks = Survey(*store.fs).chunks;
  uint64_t live = 0;
  uint64_t dead = 0;
  bool partly = false;
  for (const SegmentUse& segment : chunks.segments) {
    if (!segment.sealed) continue;
    live += segment.live;
    dead += segment.chunks - segment.live;
    const double share = chunks.LiveShare(segment).value_or(1);
    partly = partly || (share > 0 && share < 1);
  }
  CHECK(live == counted.live_chunks);
  CHECK(dead == counted.dead_chunks);
  CHECK(partly);
}

TEST_CASE("chunks that only a snapshot keeps are in use, but not in present files") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  store.WriteRandom(1, 100'000);
  REQUIRE_OK(fs.snapshots().Create("old"));
  const ChunkSurvey before = Survey(fs).chunks;
  store.Delete("random 1");
  REQUIRE_OK(fs.SyncAll());
  const ChunkSurvey after = Survey(fs).chunks;
  CHECK(after.files == ChunkClass{});
  CHECK(after.snapshots == before.files);
  CHECK(after.segments.front().live == before.segments.front().live);
}

TEST_CASE("a closed store is surveyed read-only, with the same result") {
  StoreFixture store;
  WriteLargeFile(store.Open(), "a", RandomBytes(1, 2'000'000));
  WriteLargeFile(store.fs(), "b", RandomBytes(1, 2'000'000));
  REQUIRE_OK(store.fs().SyncAll());
  const ChunkSurvey open = Survey(store.fs()).chunks;
  store.Close();
  FileSystem& fs = store.Open(/*read_only=*/true);
  const ChunkSurvey closed = Survey(fs).chunks;
  CHECK(closed.files == open.files);
  CHECK(closed.references == open.references);
  CHECK(closed.lengths == open.lengths);
  CHECK(closed.shared == open.shared);
}

TEST_CASE("a survey ends when its caller or the end of the store wants it") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  WriteLargeFile(fs, "a", RandomBytes(1, 1'000'000));
  REQUIRE_CODE(fs.maintenance().Survey(
                   [](const SurveyProgress&) { return Status(StatusCode::kAborted, "enough"); }),
               kAborted);
  std::atomic<bool> running{false};
  std::thread survey([&] {
    const auto ended = fs.maintenance().Survey([&](const SurveyProgress&) {
      running = true;
      std::this_thread::yield();
      return Status::Ok();
    });
    if (!ended.ok()) CHECK(ended.status().Is(StatusCode::kInterrupted));
  });
  while (!running) std::this_thread::yield();
  REQUIRE_OK(fs.Close());
  survey.join();
  REQUIRE_CODE(fs.maintenance().Survey({}), kInterrupted);
}

TEST_CASE("each mount that changes the store leaves a sample of its sizes") {
  StoreFixture store;
  store.Open();
  WriteFile(store.fs(), "a", RandomBytes(1, 300'000));
  store.Close();
  const auto first = SizesOf(store);
  REQUIRE(first.size() == 1);
  store.Open();
  const FileSystemStats stats = store.Stats();
  CHECK(first[0].logical_bytes == 300'000);
  CHECK(first[0].unique_bytes == 300'000);
  CHECK(first[0].files == 1);
  CHECK(first[0].stored_bytes == stats.stored_bytes);
  CHECK(first[0].chunks_unique == stats.chunks_unique);
  CHECK(first[0].index_entries == stats.index.entries);
  store.Close();
  CHECK(SizesOf(store) == first);  // that mount has changed nothing
  store.Open();
  WriteFile(store.fs(), "b", RandomBytes(2, 100'000));
  store.Close();
  const auto second = SizesOf(store);
  REQUIRE(second.size() == 2);
  CHECK(second[0] == first[0]);
  CHECK(second[1].logical_bytes == 400'000);
  CHECK(second[1].taken_ns > first[0].taken_ns);
}

TEST_CASE("a crash leaves the history as it was") {
  StoreFixture store;
  store.Open();
  WriteFile(store.fs(), "a", RandomBytes(1, 300'000));
  store.Close();
  const auto before = SizesOf(store);
  store.Open();
  WriteFile(store.fs(), "b", RandomBytes(2, 100'000));
  REQUIRE_OK(store.fs().SyncAll());
  store.Crash();
  CHECK(SizesOf(store) == before);
  store.Open();
  store.Close();
  const auto after = SizesOf(store);
  REQUIRE(after.size() == 2);
  CHECK(after[1].logical_bytes == 400'000);
}

TEST_CASE("complete scrubs are kept, with what they found") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  WriteLargeFile(fs, "a", RandomBytes(1, 700'000));
  REQUIRE_OK(fs.SyncAll());
  CHECK(Survey(fs).scrubs.empty());
  for (int i = 0; i < 2; ++i) {
    const auto report = fs.maintenance().Scrub(ScrubMode::kFull);
    REQUIRE_OK(report);
    const auto scrubs = Survey(fs).scrubs;
    REQUIRE(scrubs.size() == static_cast<size_t>(i) + 1);
    CHECK(scrubs.back().chunks == report->chunks);
    CHECK(scrubs.back().bytes == report->bytes);
    CHECK(scrubs.back().damaged_chunks == 0);
    CHECK(scrubs.back().ended_ns == store.Stats().last_scrub->ended_ns);
  }
}

TEST_CASE("a store that stays open takes a sample a day, if its content has changed") {
  SimEnv env;
  DirectPort port;
  FileSystemStats stats;
  SizeRecorder recorder(env, port, "/store", [&] { return Result<FileSystemStats>(stats); });
  const auto record = [&] {
    if (const auto sample = recorder.Sample()) REQUIRE_OK(port.WriteThrough({*sample}));
  };
  stats.logical_bytes = 5;
  record();
  REQUIRE(port.History().samples().size() == 1);
  env.AdvanceClock(kDay.count());
  stats.metadata_bytes = 77;  // changes by itself
  record();
  CHECK(port.History().samples().size() == 1);
  stats.dead_bytes = 3;
  record();
  REQUIRE(port.History().samples().size() == 2);
  CHECK(port.History().samples().back().metadata_bytes == 77);
}

TEST_CASE("the thread of a store takes a sample when a day has passed, and not before") {
  SimEnv env;
  DirectPort port;
  std::atomic<uint64_t> bytes{1};
  std::atomic<int> waits{0};
  std::atomic<bool> may_pass{false};
  SizeRecorder recorder(
      env, port, "/store",
      [&] {
        FileSystemStats stats;
        stats.logical_bytes = bytes++;  // the content changes all the time
        return Result<FileSystemStats>(stats);
      },
      [&](CondVar& wakes, Mutex& mutex, std::chrono::nanoseconds at_most)
          SILTFS_NO_THREAD_SAFETY_ANALYSIS {
            // Four days, in hours.
            if (waits++ < 96) return env.AdvanceClock(at_most.count());
            may_pass = true;
            wakes.Wait(mutex);
          });
  recorder.StartInBackground();
  while (!may_pass) std::this_thread::yield();
  recorder.Stop();
  const auto history = port.History();
  REQUIRE(history.samples().size() == 4);
  for (size_t i = 1; i < history.samples().size(); ++i) {
    CHECK(history.samples()[i].taken_ns - history.samples()[i - 1].taken_ns >= kDay.count());
    CHECK(history.samples()[i].taken_ns - history.samples()[i - 1].taken_ns <
          kDay.count() + std::chrono::nanoseconds(std::chrono::hours(2)).count());
  }
}

TEST_CASE("a malformed history begins again, and one of a later version stays") {
  SimEnv env;
  DirectPort port;
  SizeRecorder recorder(env, port, "/store", [] {
    FileSystemStats stats;
    stats.logical_bytes = 1;
    return Result<FileSystemStats>(stats);
  });
  REQUIRE_OK(port.WriteThrough({{std::string(kSavingsHistoryKey), "\x02later"}}));
  CHECK_FALSE(recorder.Sample());
  REQUIRE_OK(port.WriteThrough({{std::string(kSavingsHistoryKey), "\x01?"}}));
  const auto sample = recorder.Sample();
  REQUIRE(sample);
  REQUIRE_OK(port.WriteThrough({*sample}));
  CHECK(port.History().samples().size() == 1);
}

TEST_CASE("a sample of an impossible time does not keep new ones out") {
  SimEnv env;
  DirectPort port;
  SavingsHistory damaged;
  damaged.Add({.taken_ns = std::numeric_limits<int64_t>::min(), .logical_bytes = 1});
  REQUIRE_OK(port.WriteThrough({{std::string(kSavingsHistoryKey), damaged.Encode()}}));
  std::atomic<int> waits{0};
  SizeRecorder recorder(
      env, port, "/store", [] { return Result<FileSystemStats>(FileSystemStats()); },
      [&](CondVar& wakes, Mutex& mutex, std::chrono::nanoseconds at_most)
          SILTFS_NO_THREAD_SAFETY_ANALYSIS {
            if (waits++ < 48) return env.AdvanceClock(at_most.count());
            wakes.Wait(mutex);
          });
  recorder.StartInBackground();
  while (waits < 49) std::this_thread::yield();
  recorder.Stop();
  CHECK(port.History().samples().size() == 2);
}

}  // namespace siltfs::testing
