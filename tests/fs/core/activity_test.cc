// The counters of what a store is doing.
#include "fs/interface/activity.h"

#include "fs/interface/store_maintenance.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr size_t kBytes = 3'000'000;

TEST_CASE("The activity counts what programs write, and how much of it is new") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const auto activity = [&] { return fs.maintenance().GetActivity(); };
  CHECK(activity().written_bytes == 0);
  const Bytes data = RandomBytes(1, kBytes);
  WriteLargeFile(fs, "a", data);
  const StoreActivityReport once = activity();
  CHECK(once.written_bytes == kBytes);
  CHECK(once.writes > 20);
  CHECK(once.put_bytes == kBytes);
  CHECK(once.added_bytes == kBytes);
  CHECK(once.put_chunks > 100);
  CHECK(once.read_bytes == 0);

  WriteLargeFile(fs, "b", data);
  const StoreActivityReport twice = activity();
  CHECK(twice.written_bytes == 2 * kBytes);
  CHECK(twice.put_bytes == 2 * kBytes);
  CHECK(twice.added_bytes == kBytes);
  // The second file's chunks are found in memory: as pending chunks or by the footer cache.
  CHECK(twice.put_chunks_found_in_memory > once.put_chunks_found_in_memory);
  CHECK(twice.put_chunks_found_in_memory <= twice.put_chunks);
  CHECK(twice.monotonic_ns >= once.monotonic_ns);
}

TEST_CASE("The activity counts what programs read, and how the cache of blocks helps") {
  StoreFixture store;
  const Bytes data = RandomBytes(1, kBytes);
  WriteLargeFile(store.Open(), "a", data);
  store.Reopen();
  FileSystem& fs = store.fs();
  REQUIRE(*ReadFile(fs, RequireInode(fs, "a")) == data);
  const StoreActivityReport first = fs.maintenance().GetActivity();
  CHECK(first.read_bytes == kBytes);
  CHECK(first.reads > 0);
  CHECK(first.blocks_decoded > 0);
  CHECK(first.written_bytes == 0);
  REQUIRE(*ReadFile(fs, RequireInode(fs, "a")) == data);
  const StoreActivityReport second = fs.maintenance().GetActivity();
  CHECK(second.read_bytes == 2 * kBytes);
  CHECK(second.block_hits > first.block_hits);
}

TEST_CASE("The activity counts what maintenance has done") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  WriteLargeFile(fs, "a", RandomBytes(1, kBytes));
  store.Reopen();
  FileSystem& again = store.fs();
  const auto activity = [&] { return again.maintenance().GetActivity(); };
  CHECK(activity().scrub.bytes == 0);
  REQUIRE_OK(again.maintenance().Scrub(ScrubMode::kFull));
  CHECK(activity().scrub.bytes >= kBytes);
  CHECK_FALSE(activity().scrub.running);
  const uint64_t stored = activity().stored_bytes;
  CHECK(stored == store.Stats().stored_bytes);
  REQUIRE_OK(again.Unlink(kRootInode, "a"));
  REQUIRE_OK(again.SyncAll());
  REQUIRE_OK(again.maintenance().CollectGarbage(false));
  CHECK_FALSE(activity().gc.running);
  CHECK_FALSE(activity().read_only);
}

TEST_CASE("Reading the activity changes no metadata") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  WriteFile(fs, "a", RandomBytes(1, 1000));
  const uint64_t commits = store.Stats().last_commit;
  for (int i = 0; i < 100; ++i) CHECK(fs.maintenance().GetActivity().writes == 1);
  CHECK(store.Stats().last_commit == commits);
}

}  // namespace
}  // namespace siltfs::testing
