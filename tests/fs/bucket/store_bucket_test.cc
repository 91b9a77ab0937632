// The bucket of a store: the owner of a prefix, and a store that is opened with its bucket, with
// that of another store, and without one.
#include "fs/bucket/store_bucket.h"

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "fs/check/check_store.h"
#include "fs/interface/file_system.h"
#include "fs/open/make_store.h"
#include "fs/open/rebuild_index.h"
#include "fs/open/store_layout.h"
#include "fs/open/stored_names.h"
#include "store/env/sim_env.h"
#include "store/object/memory_object_store.h"
#include "store/superblock/superblock.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

const std::string kStore = "/store";

StoreUuid UuidOf(uint8_t byte) {
  StoreUuid uuid;
  uuid.bytes.fill(byte);
  return uuid;
}

// A store on a disk in memory, with its objects.
struct Store {
  SimEnv env;
  std::unique_ptr<MemoryObjectStore> objects = std::make_unique<MemoryObjectStore>();
  BucketConfig config{.address = "s3://bucket/a"};

  Status Make() {
    MakeStoreOptions options;
    options.path = kStore;
    options.index_memory = 4u << 20;
    options.make_segment_place = [this](const StoreUuid& uuid) -> Status {
      SILTFS_RETURN_IF_ERROR(env.CreateDirectory(BucketCachePath(kStore)));
      SILTFS_RETURN_IF_ERROR(WriteBucketConfig(env, kStore, config));
      return ClaimBucket(*objects, uuid);
    };
    return MakeStore(env, options);
  }
  Result<std::unique_ptr<StoreBucket>> OpenBucket() {
    return StoreBucket::OpenOver(objects->Fork(), env, kStore, config, {});
  }
  Result<std::unique_ptr<FileSystem>> Open(SegmentStore* segments) {
    FileSystemOptions options;
    options.store = kStore;
    options.segments = segments;
    options.capacity_bytes = uint64_t{1} << 50;
    return FileSystem::Open(env, options);
  }
};

TEST_CASE("a prefix is claimed by one store, and only if it has no objects") {
  MemoryObjectStore objects;
  REQUIRE_OK(ClaimBucket(objects, UuidOf(1)));
  const Status taken = ClaimBucket(objects, UuidOf(2));
  REQUIRE_CODE(taken, kAlreadyExists);
  CHECK(taken.ToString().find(UuidOf(1).ToText()) != std::string::npos);
  REQUIRE_OK(ReleaseBucket(objects));
  REQUIRE_OK(ClaimBucket(objects, UuidOf(2)));
  REQUIRE_OK(ReleaseBucket(objects));
  REQUIRE_OK(objects.Put("photos/1", AsBytes("x"), PutCondition::Always()));
  const Status foreign = ClaimBucket(objects, UuidOf(2));
  REQUIRE_CODE(foreign, kAlreadyExists);
  CHECK(foreign.ToString().find("photos/1") != std::string::npos);
  CHECK(objects.Keys() == std::vector<std::string>{"photos/1"});
}

TEST_CASE("of two claims at the same time, one fails") {
  // The other claim succeeds between the list and the PUT of this one.
  MemoryObjectStore* objects = nullptr;
  bool waits = true;
  MemoryObjectOptions options;
  options.wait = [&](ObjectCall call, const std::string&, std::chrono::nanoseconds) {
    if (call == ObjectCall::kPut && std::exchange(waits, false))
      REQUIRE_OK(ClaimBucket(*objects, UuidOf(1)));
  };
  MemoryObjectStore shared(options);
  objects = &shared;
  REQUIRE_CODE(ClaimBucket(shared, UuidOf(2)), kAlreadyExists);
  auto owner = shared.Get("siltfs", 100, nullptr);
  REQUIRE_OK(owner);
  CHECK(AsText(*owner) == "siltfs store " + UuidOf(1).ToText() + "\n");
}

TEST_CASE("a store with a bucket needs its own bucket") {
  Store store;
  REQUIRE_OK(store.Make());
  {
    auto bucket = store.OpenBucket();
    REQUIRE_OK(bucket);
    auto opened = store.Open(&(*bucket)->segments());
    REQUIRE_OK(opened);
    auto space = (*opened)->GetSpace();
    REQUIRE_OK(space);
    CHECK(space->total_bytes == uint64_t{1} << 50);
    REQUIRE_OK((*opened)->Close());
    opened->reset();
    CheckOptions check;
    check.store = kStore;
    check.segments = &(*bucket)->segments();
    auto report = CheckStore(store.env, check);
    REQUIRE_OK(report);
    CHECK(report->findings == 0);
  }
  SECTION("without the file that names it") {
    REQUIRE_CODE(store.Open(nullptr), kNotFound);
    CheckOptions check;
    check.store = kStore;
    REQUIRE_CODE(CheckStore(store.env, check), kNotFound);
    IndexRebuildOptions rebuild;
    rebuild.store = kStore;
    REQUIRE_CODE(RebuildIndex(store.env, rebuild), kNotFound);
    REQUIRE_CODE(StoredNames::Open(store.env, kStore), kNotFound);
  }
  SECTION("with the bucket of another store") {
    REQUIRE_OK(ReleaseBucket(*store.objects));
    REQUIRE_OK(ClaimBucket(*store.objects, UuidOf(7)));
    const auto opened = store.OpenBucket();
    REQUIRE_CODE(opened, kInvalidArgument);
    CHECK(opened.status().ToString().find(UuidOf(7).ToText()) != std::string::npos);
  }
  SECTION("with an empty bucket") {
    REQUIRE_OK(ReleaseBucket(*store.objects));
    REQUIRE_CODE(store.OpenBucket(), kNotFound);
  }
  SECTION("with an object that names no store") {
    REQUIRE_OK(store.objects->Put("siltfs", AsBytes("hello\n"), PutCondition::Always()));
    REQUIRE_CODE(store.OpenBucket(), kCorruption);
  }
  SECTION("with a bucket that fails") {
    auto objects = store.objects->Fork();
    objects->FailCall({.call = ObjectCall::kGet, .permanent = true});
    REQUIRE_CODE(StoreBucket::OpenOver(std::move(objects), store.env, kStore, store.config, {}),
                 kIoError);
  }
}

TEST_CASE("a bucket file that changes before the store is locked is noticed") {
  Store store;
  REQUIRE_OK(store.Make());
  auto bucket = StoreBucket::OpenOver(store.objects->Fork(), store.env, kStore, store.config,
                                      {.ships = true});
  REQUIRE_OK(bucket);
  BucketConfig other = store.config;
  other.address = "s3://bucket/b";
  REQUIRE_OK(WriteBucketConfig(store.env, kStore, other));
  REQUIRE_CODE((*bucket)->Layer()(nullptr).status(), kStale);
}

TEST_CASE("after BeginClosing a bucket that does not answer is given up, first for reads") {
  Store store;
  REQUIRE_OK(store.Make());
  auto given = store.objects->Fork();
  MemoryObjectStore& objects = *given;
  auto bucket = StoreBucket::OpenOver(std::move(given), store.env, kStore, store.config,
                                      {.bucket_timeout = std::chrono::nanoseconds(0)});
  REQUIRE_OK(bucket);
  Bytes byte(1);
  REQUIRE_OK(objects.Read("siltfs", {}, 0, byte));
  (*bucket)->BeginClosing();
  (*bucket)->BeginClosing();
  while (!objects.Read("siltfs", {}, 0, byte).status().Is(StatusCode::kInterrupted))
    std::this_thread::yield();
  while (!objects.List("", "", 1).status().Is(StatusCode::kInterrupted)) std::this_thread::yield();
}

TEST_CASE("a bucket that cannot be claimed leaves no store") {
  Store store;
  REQUIRE_OK(store.objects->Put("x", AsBytes("x"), PutCondition::Always()));
  REQUIRE_CODE(store.Make(), kAlreadyExists);
  CHECK_FALSE(store.env.GetFileInfo(kStore).ok());
  REQUIRE_OK(store.objects->Remove("x"));
  REQUIRE_OK(store.Make());
}

TEST_CASE("a store in its directory has no bucket") {
  SimEnv env;
  REQUIRE_OK(MakeStore(env, {.path = kStore, .index_memory = 4u << 20}));
  auto bucket = StoreBucket::Open(env, kStore, {});
  REQUIRE_OK(bucket);
  CHECK(*bucket == nullptr);
}

}  // namespace
}  // namespace siltfs
