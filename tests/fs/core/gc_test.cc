// Garbage collection as seen by a user of the file system.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "fs/interface/store_maintenance.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_stats.h"
#include "fs/records/schema.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "tests/fs/core/garbage_store.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {

TEST_CASE("the space of chunks that no file refers to is freed, and no other") {
  GarbageStore store;
  store.Begin();
  for (uint64_t i = 0; i < 40; ++i) store.WriteRandom(i, 50'000);
  REQUIRE_OK(store.fs->SyncAll());
  const FileSystemStats full = store.Stats();
  for (uint64_t i = 0; i < 40; ++i) {
    if (i % 4 != 0) store.Delete(fmt::format("random {}", i));
  }
  const GarbageReport report = store.Collect();
  CHECK(report.segments_removed > 20);
  CHECK(report.segments_left == 0);
  CHECK(report.bytes_freed > 1'200'000);
  CHECK(report.dead_chunks > report.live_chunks);
  const FileSystemStats after = store.Stats();
  CHECK(after.stored_bytes < full.stored_bytes * 2 / 5);
  CHECK(after.dead_bytes == report.dead_bytes);
  store.RequireAll();
  // Only segments that were still open may have more garbage.
  CHECK(store.Collect().segments_removed <= 2);
  CHECK(store.Collect().segments_removed == 0);
  store.RequireAll();
  CHECK(store.Stats().stored_bytes < store.StoredWhenNew() * 11 / 10);
}

TEST_CASE("a dry run estimates what a collection frees, and changes nothing") {
  GarbageStore store;
  store.Begin();
  for (uint64_t i = 0; i < 20; ++i) store.WriteRandom(i, 50'000);
  for (uint64_t i = 0; i < 20; i += 2) store.Delete(fmt::format("random {}", i));
  const GarbageReport estimate = store.Collect(/*dry_run=*/true);
  const uint64_t stored = store.Stats().stored_bytes;
  CHECK(estimate.dry_run);
  CHECK(estimate.bytes_freed > 300'000);
  CHECK(store.Stats().dead_bytes > 300'000);
  const GarbageReport done = store.Collect();
  CHECK_FALSE(done.dry_run);
  // One more segment may have been sealed.
  CHECK(done.segments_removed >= estimate.segments_removed);
  CHECK(done.segments_removed <= estimate.segments_removed + 1);
  CHECK(done.bytes_removed >= estimate.bytes_removed);
  // The headers of new segments are not counted.
  CHECK(store.Stats().stored_bytes >= stored - done.bytes_freed);
  CHECK(store.Stats().stored_bytes < stored - done.bytes_freed + 2000);
  store.RequireAll();
}

TEST_CASE("chunks shared by several files live as long as one of the files") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 10; ++i) store.WriteRandom(i, 300'000);
  // One copy by content, and one by reference.
  store.files["copy"] = store.files["random 3"];
  WriteLargeFile(fs, "copy", store.files["copy"]);
  const auto from = Resolve(fs, "random 5");
  REQUIRE_OK(from);
  const InodeNumber to = MakeFile(fs, kRootInode, "clone");
  REQUIRE_OK(fs.OpenFile(to, false));
  REQUIRE_OK(fs.CopyRange(*from, 0, to, 0, 300'000));
  fs.ReleaseFile(to);
  store.files["clone"] = store.files["random 5"];
  for (uint64_t i = 0; i < 10; ++i) store.Delete(fmt::format("random {}", i));
  const GarbageReport report = store.Collect();
  CHECK(report.bytes_freed > 2'000'000);
  store.RequireAll();
  CHECK(store.Stats().stored_bytes < 800'000);
}

TEST_CASE("an open file without a name lives until it is closed", "[race]") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  store.WriteRandom(1, 400'000);
  const Bytes content = store.files["random 1"];
  const auto inode = Resolve(fs, "random 1");
  REQUIRE_OK(inode);
  REQUIRE_OK(fs.OpenFile(*inode, false));
  store.Delete("random 1");
  store.WriteRandom(2, 200'000);
  store.Collect();
  const auto read = ReadFile(fs, *inode);
  REQUIRE_OK(read);
  const bool same = *read == content;
  CHECK(same);
  fs.ReleaseFile(*inode);
  CHECK(store.Collect().bytes_freed > 250'000);
  store.RequireAll();
}

// The kernel releases and forgets a deleted file some time after the program that deleted it has
// gone on.
TEST_CASE("a collection waits until deleted files are released and forgotten", "[race]") {
  GarbageStore store;
  store.deletion_patience = std::chrono::hours(1);
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 2; ++i) store.WriteRandom(i, 300'000);
  const auto open = Resolve(fs, "random 0");
  REQUIRE_OK(open);
  REQUIRE_OK(fs.OpenFile(*open, false));
  const auto known = fs.Lookup(kRootInode, "random 1");
  REQUIRE_OK(known);
  for (uint64_t i = 0; i < 2; ++i) store.Delete(fmt::format("random {}", i));
  store.WriteRandom(2, 200'000);
  constexpr std::chrono::milliseconds kLongerThanACollection{300};
  std::thread kernel([&] {
    std::this_thread::sleep_for(kLongerThanACollection);
    fs.ReleaseFile(*open);
    std::this_thread::sleep_for(kLongerThanACollection);
    fs.Forget(known->inode, 1);
  });
  const GarbageReport report = store.Collect();
  kernel.join();
  CHECK(report.bytes_freed > 450'000);
}

TEST_CASE("a collection does not wait for ever for a deleted file that stays open", "[race]") {
  GarbageStore store;
  store.deletion_patience = std::chrono::milliseconds(1);
  FileSystem& fs = store.Begin();
  store.WriteRandom(1, 300'000);
  const auto open = Resolve(fs, "random 1");
  REQUIRE_OK(open);
  REQUIRE_OK(fs.OpenFile(*open, false));
  store.Delete("random 1");
  CHECK(store.Collect().bytes_freed < 100'000);
  fs.ReleaseFile(*open);
}

TEST_CASE("recompressed segments are collected like others, and their copies stay recompressed") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  store.WriteFiles(fs, 1, 40);
  REQUIRE_OK(fs.maintenance().Recompress());
  for (uint64_t i = 1; i <= 40; i += 2) store.Delete(fmt::format("file {}", i));
  const GarbageReport report = store.Collect();
  CHECK(report.bytes_freed > 100'000);
  store.RequireAll();
  const auto recompressed = store.fs->maintenance().Recompress();
  REQUIRE_OK(recompressed);
  store.RequireAll();
}

TEST_CASE("data written again while its old chunks are collected is there afterwards", "[race]") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 24; ++i) store.WriteRandom(i, 40'000);
  const std::map<std::string, Bytes> contents = store.files;
  std::atomic<bool> over = false;
  std::atomic<int> failures = 0;
  // Each thread deletes its files and writes them again, over and over.
  std::vector<std::thread> writers;
  for (uint64_t t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      for (uint64_t round = 0; !over; ++round) {
        const std::string name = fmt::format("random {}", (round * 2 + t) % 24);
        if (!fs.Unlink(kRootInode, name).ok()) ++failures;
        const Bytes& content = contents.at(name);
        auto made = fs.CreateFile(kRootInode, name, 0644, kCaller);
        if (!made.ok()) {
          ++failures;
          continue;
        }
        if (!fs.Write(made->inode, 0, content).ok()) ++failures;
        fs.ReleaseFile(made->inode);
        fs.Forget(made->inode, 1);
        const auto inode = Resolve(fs, name);
        auto read = inode.ok() ? ReadFile(fs, *inode) : Result<Bytes>(inode.status());
        if (!read.ok() || *read != content) ++failures;
      }
    });
  }
  for (int i = 0; i < 12; ++i) {
    if (!fs.maintenance().CollectGarbage(false).ok()) ++failures;
  }
  over = true;
  for (std::thread& writer : writers) writer.join();
  CHECK(failures == 0);
  store.RequireAll();
}

TEST_CASE("on a full disk wholly dead segments are removed, the others once there is room") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 12; ++i) store.WriteRandom(i, 40'000);
  store.WriteRandom(100, 500'000);
  for (uint64_t i = 0; i < 12; i += 2) store.Delete(fmt::format("random {}", i));
  store.Delete("random 100");
  REQUIRE_OK(fs.SyncAll());
  const uint64_t stored = store.Stats().stored_bytes;
  store.fault_env->SetAvailable(1u << 20);
  REQUIRE_CODE(fs.maintenance().CollectGarbage(false), kNoSpace);
  const uint64_t without_dead = store.Stats().stored_bytes;
  CHECK(without_dead < stored - 300'000);
  store.fault_env->SetAvailable(std::nullopt);
  store.Collect();
  CHECK(store.Stats().stored_bytes < without_dead - 100'000);
  store.RequireAll();
}

TEST_CASE("a damaged segment keeps its dead chunks, other segments are collected") {
  GarbageStore store;
  store.Begin();
  for (uint64_t i = 0; i < 20; ++i) store.WriteRandom(i, 40'000);
  for (uint64_t i = 0; i < 20; i += 2) store.Delete(fmt::format("random {}", i));
  store.End();
  // Damages the first chunk tables of some segments. Not all of these blocks have live chunks.
  for (SegmentId id = 2; id < 7; ++id) {
    ChangeSegment(store.env, store.path, id, [](std::string& content) { content[203] ^= 0x10; });
  }
  FileSystem& fs = store.Begin();
  const GarbageReport report = store.Collect();
  CHECK(report.segments_left >= 1);
  CHECK(report.segments_left <= 5);
  CHECK(report.segments_removed > 3);
  int unreadable = 0;
  for (const auto& [name, content] : store.files) {
    const auto inode = Resolve(fs, name);
    REQUIRE_OK(inode);
    const auto read = ReadFile(fs, *inode);
    if (!read.ok()) {
      ++unreadable;
      continue;
    }
    const bool same = *read == content;
    CHECK(same);
  }
  // A collection loses no chunks but the damaged ones.
  CHECK(unreadable >= 1);
  CHECK(unreadable <= 5);
  CHECK(store.Collect().segments_left == report.segments_left);
  store.End();
}

TEST_CASE("a recipe that cannot be read ends a collection, and nothing is removed") {
  GarbageStore store;
  store.Begin();
  store.WriteRandom(1, 900'000);  // large enough for recipe nodes
  for (uint64_t i = 2; i < 12; ++i) store.WriteRandom(i, 60'000);
  for (uint64_t i = 2; i < 12; ++i) store.Delete(fmt::format("random {}", i));
  store.End();
  const auto segments = SegmentsOf(store.env, store.path);
  const auto listing = segments->List();
  REQUIRE_OK(listing);
  for (const SegmentId id : listing->ids) {
    ChangeSegment(store.env, store.path, id, [](std::string& content) {
      // Find a node by its magic number, which is there in plain bytes: nodes are not compressed.
      const size_t node = content.find("SFRN");
      if (node != std::string::npos) content[node + 40] ^= 1;
    });
  }
  FileSystem& fs = store.Begin();
  // Files are counted, not their bytes: an unsealed segment may get its footer at any time.
  const auto before = segments->List();
  REQUIRE_OK(before);
  REQUIRE_CODE(fs.maintenance().CollectGarbage(false), kCorruption);
  const auto after = segments->List();
  REQUIRE_OK(after);
  CHECK(after->ids == before->ids);
  store.End();
}

TEST_CASE("a segment that is recorded as present is not removed, whatever else metadata says") {
  GarbageStore store;
  store.Begin();
  store.WriteRandom(1, 200'000);
  store.End();
  const auto edit = [&store](const Mutation& mutation) {
    KvStoreOptions options;
    options.path = MetadataPath(store.path);
    options.ledger_path = LedgerPath(store.path);
    auto kv = OpenRocksDbStore(store.env, options);
    REQUIRE_OK(kv);
    REQUIRE_OK((*kv)->Write({mutation}));
    REQUIRE_OK((*kv)->CloseCleanly());
  };
  edit({RemovedSegmentKey(1), std::string()});
  REQUIRE_CODE(store.Open(store.env), kCorruption);
  CHECK(SegmentsOf(store.env, store.path)->Open(1).ok());
  edit({RemovedSegmentKey(1), std::nullopt});
  // A note about a segment that does not exist is forgotten.
  edit({RemovedSegmentKey(4'000'000), std::string()});
  store.Begin();
  store.RequireAll();
}

TEST_CASE("a collection ends soon when the store is to be closed, and loses nothing", "[race]") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 30; ++i) store.WriteRandom(i, 50'000);
  for (uint64_t i = 0; i < 30; i += 3) store.Delete(fmt::format("random {}", i));
  fs.maintenance().StopCollecting();
  REQUIRE_CODE(fs.maintenance().CollectGarbage(false), kInterrupted);
  store.RequireAll();
}

TEST_CASE("the next mount removes the sort files of a killed collection") {
  GarbageStore store;
  store.Begin();
  store.End();
  const std::string directory = SpillPath(store.path);
  const std::string left = JoinPath(directory, "references-3"),
                    other = JoinPath(directory, "other");
  REQUIRE_OK(store.env.CreateDirectory(directory));
  for (const std::string& path : {left, other})
    REQUIRE_OK(store.env.OpenFile(path, {.mode = OpenMode::kCreate}));
  store.Begin();
  REQUIRE_CODE(store.env.GetFileInfo(left), kNotFound);
  REQUIRE_OK(store.env.GetFileInfo(other));
  REQUIRE_OK(store.env.RemoveFile(other));
  store.End();
}

TEST_CASE("the next mount knows the amount of garbage") {
  GarbageStore store;
  store.Begin();
  for (uint64_t seed = 1; seed <= 4; ++seed) store.WriteRandom(seed, 900'000);
  store.Delete("random 1");
  store.Delete("random 3");
  store.End();
  CHECK(store.Known().released_bytes >= 1'800'000);
  CHECK(store.Known().dead_bytes == 0);  // the dead bytes are not counted yet

  store.Begin();
  store.Collect(/*dry_run=*/true);
  const FileSystemStats counted = store.Stats();
  CHECK(counted.dead_bytes > 1'500'000);
  store.End();
  const auto closed = ReadStoreStats(store.env, store.path);
  REQUIRE_OK(closed);
  CHECK(closed->dead_bytes == counted.dead_bytes);
  CHECK(closed->unique_bytes == counted.unique_bytes);
  CHECK(closed->chunks_unique == counted.chunks_unique);
  store.Begin();
  CHECK(store.Stats().dead_bytes == counted.dead_bytes);
  CHECK(store.Stats().unique_bytes == counted.unique_bytes);
  CHECK(store.Stats().chunks_unique == counted.chunks_unique);

  // Each collection resets the count of released bytes.
  store.Collect();
  store.End();
  CHECK(store.Known().released_bytes == 0);
  CHECK(store.Known().dead_bytes < 200'000);
  store.Begin();
  store.RequireAll();
}

}  // namespace siltfs::testing
