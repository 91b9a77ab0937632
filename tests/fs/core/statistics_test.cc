// mkfs, and the statistics of a store.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "fs/open/store_layout.h"
#include "fs/open/store_stats.h"
#include "store/env/posix_env.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/hex.h"
#include "tests/support/memory_segments.h"
#include "tests/support/sha1_collisions.h"

namespace siltfs::testing {

TEST_CASE("a fresh store holds one directory and saves nothing yet") {
  StoreFixture store;
  auto stats = ReadStoreStats(store.env(), store.path());
  REQUIRE_OK(stats);
  REQUIRE(stats->files == 0);
  REQUIRE(stats->directories == 1);
  REQUIRE(stats->logical_bytes == 0);
  REQUIRE(stats->unique_bytes == 0);
  REQUIRE(stats->chunks_logical == 0);
  REQUIRE(stats->chunks_unique == 0);
  REQUIRE(stats->sha1_collisions == 0);
  REQUIRE(stats->DedupRatio() == 1);
  REQUIRE(stats->CompressionRatio() == 1);
  REQUIRE(stats->TotalRatio() == 1);
  REQUIRE_FALSE(stats->read_only);
  const StoreCount count = RecountStore(store.path());
  REQUIRE(count.directories == 1);
  auto root = store.Open().GetAttributes(kRootInode);
  REQUIRE_OK(root);
  REQUIRE(root->mode == 0040755);
  REQUIRE(root->links == 2);
}

TEST_CASE("statistics match exactly the files that were written") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const Bytes data = RandomBytes(1, 500'000);
  const InodeNumber file = WriteFile(fs, "a", data);
  const uint64_t chunks = store.Stats().chunks_logical;
  REQUIRE(chunks > 30);
  REQUIRE_OK(fs.SyncAll());
  REQUIRE(store.Stats().chunks_unique == chunks);
  REQUIRE(store.Stats().unique_bytes == 500'000);
  REQUIRE(store.Stats().logical_bytes == 500'000);

  // A copy adds only logical bytes, a hard link adds nothing, a hole has no bytes.
  WriteFile(fs, "copy", data);
  REQUIRE_OK(fs.Link(file, kRootInode, "link"));
  const InodeNumber sparse = MakeFile(fs, kRootInode, "sparse");
  AttributeChange grow;
  grow.size = 1'000'000'000;
  REQUIRE_OK(fs.SetAttributes(sparse, grow));
  WriteFile(fs, "zeros", Bytes(1'000'000, 0));
  MakeDir(fs, kRootInode, "d");
  REQUIRE_OK(fs.MakeSymlink(kRootInode, "symlink", "a", kCaller));
  auto check = [&](const FileSystemStats& stats) {
    REQUIRE(stats.files == 5);
    REQUIRE(stats.directories == 2);
    REQUIRE(stats.logical_bytes == 1'000'000);
    REQUIRE(stats.unique_bytes == 500'000);
    REQUIRE(stats.chunks_logical == 2 * chunks);
    REQUIRE(stats.chunks_unique == chunks);
    REQUIRE(stats.DedupRatio() == 2.0);
  };
  REQUIRE_OK(fs.SyncAll());
  check(store.Stats());
  auto space = fs.GetSpace();
  REQUIRE_OK(space);
  REQUIRE(space->inodes == 7);
  store.Close();
  check(*ReadStoreStats(store.env(), store.path()));
  store.Open();
  check(store.Stats());

  // After all files are deleted, only stored bytes remain.
  for (std::string_view name : {"a", "copy", "link", "sparse", "zeros", "symlink"})
    REQUIRE_OK(store.fs().Unlink(kRootInode, name));
  store.fs().Forget(file, 1);
  store.fs().Forget(*Resolve(store.fs(), "d"), 1);
  REQUIRE_OK(store.fs().SyncAll());
  REQUIRE(store.Stats().files == 0);
  REQUIRE(store.Stats().logical_bytes == 0);
  REQUIRE(store.Stats().chunks_logical == 0);
  REQUIRE(store.Stats().DedupRatio() == 1);
}

TEST_CASE("stored bytes are the sizes of the segment files") {
  StoreFixture store;
  WriteFile(store.Open(), "a", RandomBytes(1, 300'000));
  store.Close();
  uint64_t bytes = 0;
  const auto listing = SegmentsOf(store.env(), store.path())->List();
  REQUIRE_OK(listing);
  for (const SegmentId id : listing->ids)
    bytes += SegmentContent(store.env(), store.path(), id).size();
  auto stats = ReadStoreStats(store.env(), store.path());
  REQUIRE_OK(stats);
  REQUIRE(stats->stored_bytes == bytes);
  REQUIRE(stats->metadata_bytes > 0);
}

TEST_CASE("both members of a SHA-1 collision can be read, and the collision stays counted") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  // The files are too short to be cut: each is one chunk.
  const Bytes one = FromHex(kShattered1);
  const Bytes other = FromHex(kShattered2);
  REQUIRE(one != other);
  const InodeNumber a = WriteFile(fs, "a", one);
  const InodeNumber b = WriteFile(fs, "b", other);
  REQUIRE(store.Stats().sha1_collisions == 1);
  store.Reopen();
  REQUIRE((*ReadFile(store.fs(), a) == one));
  REQUIRE((*ReadFile(store.fs(), b) == other));
  REQUIRE(store.Stats().sha1_collisions == 1);
  WriteFile(store.fs(), "again", other);
  REQUIRE_OK(store.fs().SyncAll());
  store.Crash();
  REQUIRE(ReadStoreStats(store.env(), store.path())->sha1_collisions == 1);
}

TEST_CASE("mkfs takes an empty directory or makes one, and nothing else") {
  TemporaryDirectory directory;
  FaultEnv env(NewPosixEnv());
  MakeStoreOptions options;
  options.index_memory = 4u << 20;
  SECTION("an empty directory") {
    std::filesystem::create_directory(directory / "store");
    options.path = directory / "store";
    REQUIRE_OK(MakeStore(env, options));
    REQUIRE_OK(ReadStoreStats(env, options.path));
  }
  SECTION("a path with a slash at its end") {
    options.path = directory / "store/";
    REQUIRE_OK(MakeStore(env, options));
    REQUIRE_OK(ReadStoreStats(env, options.path));
  }
  SECTION("a directory with data") {
    std::filesystem::create_directory(directory / "store");
    std::ofstream(directory / "store/photo") << "dear";
    options.path = directory / "store";
    REQUIRE_CODE(MakeStore(env, options), kNotEmpty);
    REQUIRE(env.Count(FaultEnv::Call::kChange, "") == 0);
  }
  SECTION("a file") {
    std::ofstream(directory / "store") << "dear";
    options.path = directory / "store";
    REQUIRE_CODE(MakeStore(env, options), kNotADirectory);
  }
  SECTION("a missing parent directory") {
    options.path = directory / "no/store";
    REQUIRE_CODE(MakeStore(env, options), kNotFound);
  }
}

TEST_CASE("the root directory belongs to the owner given to mkfs") {
  MakeStoreOptions options;
  options.index_memory = 4u << 20;
  options.root_owner = {.uid = 1000, .gid = 2000};
  StoreFixture store(options);
  store.Open();
  const auto root = store.fs().GetAttributes(kRootInode);
  REQUIRE_OK(root);
  CHECK(root->uid == 1000);
  CHECK(root->gid == 2000);
  CHECK(root->mode == 0040755);
}

TEST_CASE("mkfs refuses a store, open or not") {
  StoreFixture store;
  MakeStoreOptions options;
  options.path = store.path();
  REQUIRE_CODE(MakeStore(store.env(), options), kNotEmpty);
  const InodeNumber file = WriteFile(store.Open(), "a", RandomBytes(1, 1000));
  REQUIRE_CODE(MakeStore(store.env(), options), kInUse);
  store.Reopen();
  REQUIRE((*ReadFile(store.fs(), file) == RandomBytes(1, 1000)));
}

TEST_CASE("mkfs refuses invalid options before it writes anything") {
  TemporaryDirectory directory;
  FaultEnv env(NewPosixEnv());
  MakeStoreOptions options;
  options.path = directory / "store";
  SECTION("a smallest chunk above the mean") { options.chunk_min = 16u << 10; }
  SECTION("a largest chunk below the mean") { options.chunk_max = 4u << 10; }
  SECTION("a level that zstd does not have") { options.compression_level = 1000; }
  REQUIRE_CODE(MakeStore(env, options), kInvalidArgument);
  REQUIRE(env.Count(FaultEnv::Call::kChange, "") == 0);
  REQUIRE_FALSE(std::filesystem::exists(options.path));
}

TEST_CASE("a failed mkfs leaves nothing that is taken for a store") {
  TemporaryDirectory directory;
  FaultEnv env(NewPosixEnv());
  MakeStoreOptions options;
  options.path = directory / "store";
  options.index_memory = 4u << 20;
  std::string part;
  SECTION("when the superblock cannot be written") { part = "superblock"; }
  SECTION("when the segments' directory cannot be made") { part = "segments"; }
  env.Fail(FaultEnv::Call::kChange, part, StatusCode::kIoError);
  REQUIRE_CODE(MakeStore(env, options), kIoError);
  env.Heal();
  REQUIRE_CODE(ReadStoreStats(env, options.path), kNotFound);
  FileSystemOptions open;
  open.store = options.path;
  open.segments = SealedSegments(env);
  REQUIRE_CODE(FileSystem::Open(env, open), kNotFound);
}

}  // namespace siltfs::testing
