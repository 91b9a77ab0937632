// Recompression of sealed segments as seen by a user of the file system.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "fs/check/check_store.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/store_stats.h"
#include "store/env/files.h"
#include "store/env/posix_env.h"
#include "tests/fs/core/recompression_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

// An Env with a monotonic clock that stands still and counts how often each thread reads it.
class StillEnv : public FaultEnv {
 public:
  using FaultEnv::FaultEnv;
  int64_t MonotonicNanoseconds() override {
    MutexLock lock(mutex_);
    ++looks_[std::this_thread::get_id()];
    return now_;
  }
  void Advance(std::chrono::nanoseconds time) {
    MutexLock lock(mutex_);
    now_ += time.count();
  }
  // Returns true when a segment's new file is begun, or false when some thread has read the clock
  // `looks` times from now on.
  bool BeginsWithin(uint64_t looks) {
    {
      MutexLock lock(mutex_);
      looks_.clear();
    }
    while (Count(Call::kChange, ".seg.new") == 0) {
      if (MostLooks() >= looks) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  uint64_t MostLooks() {
    MutexLock lock(mutex_);
    uint64_t most = 0;
    for (const auto& [thread, looks] : looks_) most = std::max(most, looks);
    return most;
  }

  Mutex mutex_;
  int64_t now_ SILTFS_GUARDED_BY(mutex_) = 0;
  std::map<std::thread::id, uint64_t> looks_ SILTFS_GUARDED_BY(mutex_);
};

// The most bytes in the open segment. Segments have 64 KiB, but the last block may begin just
// before this end.
constexpr uint64_t kMostUnsealed = (64u << 10) + (192u << 10);

struct RecompressOnDisk : TemporaryDirectory, RecompressionStore {
  using RecompressionStore::path;

  explicit RecompressOnDisk(uint32_t segment_bytes = 64u << 10, int compression_level = 3)
      : RecompressOnDisk(std::make_unique<FaultEnv>(NewPosixEnv()), segment_bytes,
                         compression_level) {}
  explicit RecompressOnDisk(std::unique_ptr<FaultEnv> made, uint32_t segment_bytes = 64u << 10,
                            int compression_level = 3)
      : RecompressionStore(*made, *static_cast<TemporaryDirectory*>(this) / "store", segment_bytes,
                           compression_level),
        fault_env(std::move(made)) {}

  FileSystem& Begin() {
    auto opened = Open(env);
    REQUIRE_OK(opened);
    fs = std::move(opened).value();
    return *fs;
  }
  // Opens the store as the daemon does, but recompresses without waiting until the store is idle.
  void BeginInBackground(std::chrono::milliseconds after = std::chrono::milliseconds(0)) {
    FileSystemOptions options;
    options.store = path;
    options.segments = SealedSegments(env);
    options.recompress_in_background = true;
    options.recompress_after = after;
    auto opened = FileSystem::Open(env, options);
    REQUIRE_OK(opened);
    fs = std::move(opened).value();
  }
  void End() {
    REQUIRE_OK(fs->Close());
    fs.reset();
  }
  FileSystemStats Stats() {
    auto stats = fs->maintenance().GetStats();
    REQUIRE_OK(stats);
    return *stats;
  }

  std::unique_ptr<FaultEnv> fault_env;
  std::unique_ptr<FileSystem> fs;
};

}  // namespace

TEST_CASE("recompression makes sealed segments smaller and changes nothing else") {
  RecompressOnDisk store;
  FileSystem& fs = store.Begin();
  store.WriteFiles(fs, 1, 20);
  REQUIRE_OK(fs.SyncAll());
  const FileSystemStats before = store.Stats();
  REQUIRE(before.awaiting_recompression_bytes > 400'000);

  const auto report = fs.maintenance().Recompress();
  REQUIRE_OK(report);
  CHECK(report->segments_rewritten > 5);
  CHECK(report->segments_left == 0);
  CHECK(report->bytes_after < report->bytes_before * 9 / 10);
  const FileSystemStats after = store.Stats();
  // Only the open segment remains.
  CHECK(after.awaiting_recompression_bytes == report->awaiting_recompression_bytes);
  CHECK(after.awaiting_recompression_bytes < kMostUnsealed);
  // The last segments may have been sealed after the first statistics.
  CHECK(after.stored_bytes + report->bytes_before - report->bytes_after >= before.stored_bytes);
  CHECK(after.stored_bytes < before.stored_bytes);
  CHECK(after.unique_bytes == before.unique_bytes);
  CHECK(after.chunks_unique == before.chunks_unique);
  store.RequireFiles(fs);

  // A second run finds nothing to do.
  const auto again = fs.maintenance().Recompress();
  REQUIRE_OK(again);
  CHECK(again->segments_rewritten == 0);
  CHECK(again->bytes_before == 0);
  store.End();
  store.RequireSound(store.env);
  store.RequireStatistics(store.env);
  store.Begin();
  store.RequireFiles(*store.fs);
  REQUIRE(store.fs->maintenance().Recompress()->segments_rewritten == 0);
  // Chunks are found in recompressed segments.
  const uint64_t stored = store.Stats().stored_bytes;
  store.WriteFiles(*store.fs, 1, 20);
  REQUIRE_OK(store.fs->SyncAll());
  CHECK(store.Stats().chunks_unique == after.chunks_unique);
  CHECK(store.Stats().stored_bytes < stored + 20'000);  // recipe nodes
  store.End();
}

TEST_CASE("segments that would not become smaller are kept as they are") {
  RecompressOnDisk store;
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 10; ++i) {
    const std::string name = fmt::format("random {}", i);
    store.files[name] = RandomBytes(i, 60'000);
    WriteLargeFile(fs, name, store.files[name]);
  }
  const auto report = fs.maintenance().Recompress();
  REQUIRE_OK(report);
  CHECK(report->segments_rewritten == 0);
  CHECK(report->segments_kept > 3);
  CHECK(report->bytes_after == report->bytes_before);
  CHECK(report->awaiting_recompression_bytes < kMostUnsealed);
  store.RequireFiles(fs);
  store.End();
  store.RequireSound(store.env);
  store.RequireStatistics(store.env);
}

TEST_CASE("a store without compression has nothing to recompress") {
  RecompressOnDisk store(64u << 10, /*compression_level=*/0);
  FileSystem& fs = store.Begin();
  store.WriteFiles(fs, 1, 5);
  REQUIRE_OK(fs.SyncAll());
  CHECK(store.Stats().awaiting_recompression_bytes == 0);
  const auto report = fs.maintenance().Recompress();
  REQUIRE_OK(report);
  CHECK(report->segments_rewritten + report->segments_kept + report->segments_left == 0);
  store.End();
  CHECK(ReadStoreStats(store.env, store.path)->awaiting_recompression_bytes == 0);
}

TEST_CASE("a full disk prevents recompression, and loses nothing") {
  RecompressOnDisk store;
  FileSystem& fs = store.Begin();
  store.WriteFiles(fs, 1, 10);
  REQUIRE_OK(fs.SyncAll());
  const uint64_t awaiting = store.Stats().awaiting_recompression_bytes;
  SECTION("before it begins") {
    store.fault_env->SetAvailable((64u << 20) + (2 * (64u << 10)) - 1);
    REQUIRE_CODE(fs.maintenance().Recompress(), kNoSpace);
    CHECK(store.Stats().awaiting_recompression_bytes >= awaiting);
    store.fault_env->SetAvailable(std::nullopt);
  }
  SECTION("in the middle of a file") {
    store.fault_env->FailHalfWay(".seg.new", StatusCode::kNoSpace);
    REQUIRE_CODE(fs.maintenance().Recompress(), kNoSpace);
    CHECK(store.Stats().awaiting_recompression_bytes >= awaiting);
    store.fault_env->Heal();
    CHECK(SegmentsOf(store.env, store.path)->List()->temporaries.empty());
  }
  store.WriteFiles(fs, 100, 1);
  const auto report = fs.maintenance().Recompress();
  REQUIRE_OK(report);
  CHECK(report->segments_rewritten > 3);
  store.RequireFiles(fs);
  store.End();
  store.RequireSound(store.env);
}

TEST_CASE("readers get the right bytes while all segments are replaced under them", "[race]") {
  RecompressOnDisk store;
  FileSystem& fs = store.Begin();
  store.WriteFiles(fs, 1, 60);
  store.files["long"] = RepetitiveBytes(1000, 4'000'000);
  WriteLargeFile(fs, "long", store.files["long"]);
  REQUIRE_OK(fs.SyncAll());
  // After the remount, only data read by the readers is in memory.
  store.End();
  store.Begin();
  std::atomic<bool> recompressed = false;
  std::atomic<uint64_t> wrong = 0;
  std::atomic<uint64_t> rounds = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      for (bool last = false; !last;) {
        last = recompressed;
        auto file = store.files.begin();
        std::advance(file, (i * 20 + static_cast<int>(rounds++)) % 40);
        for (; file != store.files.end(); ++file) {
          const auto inode = Resolve(*store.fs, file->first);
          if (!inode.ok()) ++wrong;
          if (!inode.ok()) continue;
          // Reads like the kernel: in order, in pieces.
          Bytes read(file->second.size());
          for (size_t at = 0; at < read.size(); at += 32768) {
            const size_t size = std::min<size_t>(32768, read.size() - at);
            const auto got = store.fs->Read(*inode, at, MutableByteView(read).subspan(at, size));
            if (!got.ok() || *got != size) ++wrong;
          }
          if (read != file->second) ++wrong;
        }
      }
    });
  }
  const auto report = store.fs->maintenance().Recompress();
  recompressed = true;
  for (std::thread& reader : readers) reader.join();
  REQUIRE_OK(report);
  CHECK(report->segments_rewritten > 20);
  CHECK(wrong == 0);
  store.End();
  store.RequireSound(store.env);
}

TEST_CASE("a chunk in a recompressed segment takes no more reads than before") {
  RecompressOnDisk store;
  store.WriteFiles(store.Begin(), 1, 30);
  store.End();
  // One read of 1,000 bytes in each file, so that most chunks read are in different blocks.
  const auto segment_reads = [&] {
    store.Begin();
    const uint64_t before = store.fault_env->Count(FaultEnv::Call::kRead, ".seg");
    for (const auto& [name, content] : store.files) {
      Bytes read(1000);
      REQUIRE_OK(store.fs->Read(*Resolve(*store.fs, name), 30'000, read));
      REQUIRE(AsText(read) == AsText(ByteView(content).subspan(30'000, 1000)));
    }
    const uint64_t reads = store.fault_env->Count(FaultEnv::Call::kRead, ".seg") - before;
    store.End();
    return reads;
  };
  const uint64_t original = segment_reads();
  REQUIRE(original >= store.files.size());
  store.Begin();
  REQUIRE_OK(store.fs->maintenance().Recompress());
  store.End();
  // The reads go to fewer blocks. In addition, the block table and the trailer of each segment are
  // read once.
  const uint64_t segments = SegmentsOf(store.env, store.path)->List()->ids.size();
  CHECK(segment_reads() <= original + 2 * segments);
}

TEST_CASE("files are written, repeated and removed while segments are recompressed", "[race]") {
  RecompressOnDisk store;
  FileSystem& fs = store.Begin();
  store.WriteFiles(fs, 1, 40);
  REQUIRE_OK(fs.SyncAll());
  std::atomic<bool> done = false;
  std::thread recompressing_thread([&] {
    while (!done) {
      const auto report = fs.maintenance().Recompress();
      if (!report.ok()) std::abort();
    }
  });
  for (uint64_t round = 0; round < 8; ++round) {
    store.WriteFiles(fs, 1000 + round * 10, 4);  // new contents
    store.WriteFiles(fs, 1 + round * 4, 4);      // earlier contents once more
    const std::string name = fmt::format("file {}", 40 - round);
    REQUIRE_OK(fs.Unlink(kRootInode, name));
    store.files.erase(name);
    if (round % 3 == 0) REQUIRE_OK(fs.SyncAll());
  }
  done = true;
  recompressing_thread.join();
  store.RequireFiles(fs);
  store.End();
  store.RequireSound(store.env);
  store.RequireStatistics(store.env);
}

TEST_CASE("recompression that is stopped ends soon, and leaves no file behind", "[race]") {
  RecompressOnDisk store;
  FileSystem& fs = store.Begin();
  store.WriteFiles(fs, 1, 60);
  REQUIRE_OK(fs.SyncAll());
  std::atomic<bool> begun = false;
  Status outcome;
  std::thread recompressing_thread([&] {
    begun = true;
    outcome = fs.maintenance().Recompress().status();
  });
  while (!begun) std::this_thread::yield();
  fs.maintenance().StopRecompression();
  recompressing_thread.join();
  const bool ended = outcome.ok() || outcome.Is(StatusCode::kInterrupted);
  CHECK(ended);
  REQUIRE_CODE(fs.maintenance().Recompress(), kInterrupted);
  CHECK(SegmentsOf(store.env, store.path)->List()->temporaries.empty());
  store.RequireFiles(fs);
  store.End();
  store.RequireSound(store.env);
  store.RequireStatistics(store.env);
}

TEST_CASE("segments are recompressed in the background when nothing is written", "[race]") {
  RecompressOnDisk store;
  store.WriteFiles(store.Begin(), 1, 20);
  store.End();
  store.BeginInBackground();
  while (store.Stats().awaiting_recompression_bytes > kMostUnsealed) std::this_thread::yield();
  store.RequireFiles(*store.fs);
  store.End();
  store.RequireSound(store.env);
  store.RequireStatistics(store.env);
}

TEST_CASE("writes and reads delay background recompression by the mount's interval") {
  using namespace std::chrono_literals;
  // The background thread reads the clock twice before it begins.
  constexpr uint64_t kMore = 4;
  constexpr uint64_t kManyMore = 10;
  const bool written = GENERATE(false, true);
  INFO((written ? "written" : "read"));
  auto made = std::make_unique<StillEnv>(NewPosixEnv());
  StillEnv& still = *made;
  RecompressOnDisk store(std::move(made));
  store.WriteFiles(store.Begin(), 1, 20);
  store.End();
  store.BeginInBackground(/*after=*/10ms);
  const uint64_t awaiting = store.Stats().awaiting_recompression_bytes;
  // Between two uses pass 9 ms. If more passed, the thread could begin before the second use.
  for (uint64_t use = 0; use < 5; ++use) {
    if (written) {
      store.WriteFiles(*store.fs, 100 + use, 1);
    } else {
      store.RequireFiles(*store.fs);
    }
    still.Advance(9ms);
    REQUIRE_FALSE(still.BeginsWithin(kMore));
  }
  still.Advance(1ms);
  REQUIRE(still.BeginsWithin(kManyMore));
  CHECK(store.Stats().awaiting_recompression_bytes >= awaiting);
  while (store.Stats().awaiting_recompression_bytes >= awaiting) {
    still.Advance(1ms);
    std::this_thread::yield();
  }
  store.End();
  store.RequireSound(store.env);
}

TEST_CASE("an unmount does not wait for background recompression", "[race]") {
  RecompressOnDisk store;
  store.WriteFiles(store.Begin(), 1, 40);
  store.End();
  store.BeginInBackground();
  const uint64_t all = store.Stats().awaiting_recompression_bytes;
  while (store.Stats().awaiting_recompression_bytes == all) std::this_thread::yield();
  store.End();
  CHECK(SegmentsOf(store.env, store.path)->List()->temporaries.empty());
  store.RequireSound(store.env);
  store.RequireStatistics(store.env);
  store.Begin();
  store.RequireFiles(*store.fs);
  store.End();
}

TEST_CASE("a damaged segment is reported and skipped, and the others are recompressed") {
  RecompressOnDisk store;
  store.WriteFiles(store.Begin(), 1, 20);
  store.End();
  // Damages the payload of a block of the first segment.
  ChangeSegment(store.env, store.path, 1, [](std::string& content) { content[20'000] ^= 1; });
  const std::string damaged = SegmentContent(store.env, store.path, 1);
  std::vector<std::string> findings;
  FileSystemOptions options;
  options.store = store.path;
  options.segments = SealedSegments(store.env);
  options.report = [&findings](const std::string& finding) { findings.push_back(finding); };
  auto opened = FileSystem::Open(store.env, options);
  REQUIRE_OK(opened);
  for (int i = 0; i < 2; ++i) {
    const auto report = (*opened)->maintenance().Recompress();
    REQUIRE_OK(report);
    CHECK(report->segments_left == (i == 0 ? 1 : 0));
    CHECK((report->segments_rewritten > 3) == (i == 0));
  }
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].find("segment 1 is not recompressed") != std::string::npos);
  CHECK((SegmentContent(store.env, store.path, 1) == damaged));
  REQUIRE_OK((*opened)->Close());
}

TEST_CASE("a damaged footer costs no file, in a recompressed segment or another") {
  const bool recompressed = GENERATE(false, true);
  // The damage lies after the blocks: in the chunk table, in the block table, or in the trailer.
  const uint64_t from_end = GENERATE(64 + 8 + 3, 64 + 3, 64, 40, 1);
  INFO(fmt::format("recompressed: {}, {} bytes from the end", recompressed, from_end));
  RecompressOnDisk store;
  store.WriteFiles(store.Begin(), 1, 20);
  if (recompressed) REQUIRE_OK(store.fs->maintenance().Recompress());
  store.End();
  ChangeSegment(store.env, store.path, 2,
                [from_end](std::string& content) { content[content.size() - from_end] ^= 1; });
  store.RequireFiles(store.Begin());
  store.End();
  std::set<std::string> findings;
  CheckOptions options;
  options.store = store.path;
  options.segments = SealedSegments(store.env);
  options.data = true;
  options.on_finding = [&findings](const Finding& finding) { findings.insert(finding.code); };
  REQUIRE_OK(CheckStore(store.env, options));
  REQUIRE(findings == std::set<std::string>{"segment-footer"});
}

TEST_CASE("recompression on demand does not wait until the background thread may continue",
          "[race]") {
  RecompressOnDisk store(2u << 20);
  store.WriteFiles(store.Begin(), 1, 200);
  store.End();
  store.BeginInBackground(std::chrono::milliseconds(500));
  while (SegmentsOf(store.env, store.path)->List()->temporaries.empty()) std::this_thread::yield();
  std::atomic<bool> ended = false;
  std::thread reader([&] {
    while (!ended) store.RequireFiles(*store.fs);
  });
  const auto report = store.fs->maintenance().Recompress();
  ended = true;
  reader.join();
  REQUIRE_OK(report);
  CHECK(report->awaiting_recompression_bytes < 4u << 20);
  store.End();
  store.RequireSound(store.env);
}

}  // namespace siltfs::testing
