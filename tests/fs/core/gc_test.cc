// Garbage collection, as a user of the file system meets it.
#include <fmt/format.h>

#include <atomic>
#include <set>
#include <thread>

#include "fs/core/store_stats.h"
#include "store/env/posix_env.h"
#include "store/segment/segment_files.h"
#include "tests/fs/core/settle_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct GarbageStore : TemporaryDirectory, SettleStore {
  using SettleStore::path;

  GarbageStore() : GarbageStore(std::make_unique<FaultEnv>(NewPosixEnv())) {}

  FileSystem& Begin() {
    auto opened = Open(env);
    REQUIRE_OK(opened);
    fs = std::move(opened).value();
    return *fs;
  }
  void End() {
    REQUIRE_OK(fs->Close());
    fs.reset();
  }
  void Delete(const std::string& name) {
    REQUIRE_OK(fs->Unlink(kRootInode, name));
    files.erase(name);
  }
  GarbageReport Collect(bool dry_run = false) {
    auto report = fs->CollectGarbage(dry_run);
    REQUIRE_OK(report);
    return *report;
  }
  FileSystemStats Stats() {
    auto stats = fs->GetStats();
    REQUIRE_OK(stats);
    return *stats;
  }
  // Of random bytes: nothing is a duplicate of anything.
  void WriteRandom(uint64_t seed, size_t size) {
    const std::string name = fmt::format("random {}", seed);
    files[name] = RandomBytes(seed, size);
    WriteLargeFile(*fs, name, files[name]);
  }
  // All is there, in this mount, to fsck, and in the next.
  void RequireAll() {
    RequireFiles(*fs);
    End();
    RequireSound(env);
    RequireFigures(env);
    Begin();
    RequireFiles(*fs);
  }
  uint64_t StoredWhenNew() const {
    GarbageStore fresh;
    fresh.Begin();
    for (const auto& [name, content] : files) WriteLargeFile(*fresh.fs, name, content);
    fresh.End();
    return ReadStoreStats(fresh.env, fresh.path)->stored_bytes;
  }

 private:
  explicit GarbageStore(std::unique_ptr<FaultEnv> made)
      : SettleStore(*made, *static_cast<TemporaryDirectory*>(this) / "store"),
        fault_env(std::move(made)) {}

 public:
  std::unique_ptr<FaultEnv> fault_env;
  std::unique_ptr<FileSystem> fs;
};

}  // namespace

TEST_CASE("what no file refers to is given back, and nothing else") {
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
  // There is nothing more to be had but of what was open.
  CHECK(store.Collect().segments_removed <= 2);
  CHECK(store.Collect().segments_removed == 0);
  store.RequireAll();
  CHECK(store.Stats().stored_bytes < store.StoredWhenNew() * 11 / 10);
}

TEST_CASE("a dry run says what a collection frees, and changes nothing") {
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
  // One more may have been sealed.
  CHECK(done.segments_removed >= estimate.segments_removed);
  CHECK(done.segments_removed <= estimate.segments_removed + 1);
  CHECK(done.bytes_removed >= estimate.bytes_removed);
  // Not counted are the headers of new segments.
  CHECK(store.Stats().stored_bytes >= stored - done.bytes_freed);
  CHECK(store.Stats().stored_bytes < stored - done.bytes_freed + 2000);
  store.RequireAll();
}

TEST_CASE("what several files share lives as long as one of them does") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 10; ++i) store.WriteRandom(i, 300'000);
  // A copy by content, and one by reference.
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

TEST_CASE("a file that is open lives on without a name until it is closed") {
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

TEST_CASE("settled segments are collected as others are, and what is moved is settled") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  store.WriteFiles(fs, 1, 40);
  REQUIRE_OK(fs.Settle());
  for (uint64_t i = 1; i <= 40; i += 2) store.Delete(fmt::format("file {}", i));
  const GarbageReport report = store.Collect();
  CHECK(report.bytes_freed > 100'000);
  store.RequireAll();
  const auto settled = store.fs->Settle();
  REQUIRE_OK(settled);
  store.RequireAll();
}

TEST_CASE("what is written again while its garbage is collected is there afterwards") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 24; ++i) store.WriteRandom(i, 40'000);
  const std::map<std::string, Bytes> contents = store.files;
  std::atomic<bool> over = false;
  std::atomic<int> failures = 0;
  // Each goes over its files: gone, and written again, over and over.
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
    if (!fs.CollectGarbage(false).ok()) ++failures;
  }
  over = true;
  for (std::thread& writer : writers) writer.join();
  CHECK(failures == 0);
  store.RequireAll();
}

TEST_CASE("a collection ends soon when the store is to be closed, and loses nothing") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 30; ++i) store.WriteRandom(i, 50'000);
  for (uint64_t i = 0; i < 30; i += 3) store.Delete(fmt::format("random {}", i));
  fs.StopCollecting();
  REQUIRE_CODE(fs.CollectGarbage(false), kInterrupted);
  store.RequireAll();
}

}  // namespace siltfs::testing
