// The bucket of a store: the owner of a prefix, and a store that is opened with its bucket, with
// that of another store, and without one.
#include "fs/bucket/store_bucket.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "fs/check/check_store.h"
#include "fs/interface/file_system.h"
#include "fs/open/make_store.h"
#include "fs/open/rebuild_index.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_stats.h"
#include "fs/open/stored_names.h"
#include "fs/shipping/bucket_log.h"
#include "store/env/process.h"
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

TEST_CASE("the lease of another writer is respected until it ends, unless it is taken over") {
  constexpr int64_t kSecond = 1'000'000'000;
  Store store;
  store.env.SetClock(1000 * kSecond);
  REQUIRE_OK(store.Make());
  const auto begin = [&store](const WriterIdentity& writer) {
    BucketLog log(*store.objects, writer);
    const int64_t now = store.env.NowNanoseconds();
    REQUIRE_OK(log.Begin([](const LogEnd&) { return Status::Ok(); }, now, now + 60 * kSecond));
  };
  const auto open = [&store](bool take_over) {
    return StoreBucket::OpenOver(store.objects->Fork(), store.env, kStore, store.config,
                                 {.ships = true, .take_over = take_over})
        .status();
  };
  begin({.id = {9}, .host = "elsewhere"});
  const Status refused = open(/*take_over=*/false);
  REQUIRE_CODE(refused, kInUse);
  for (const char* part : {"\"elsewhere\"", "wait 61 seconds", "--take-over"})
    CHECK(refused.ToString().find(part) != std::string::npos);
  REQUIRE_OK(open(/*take_over=*/true));
  // A store that only reads has no use for a lease.
  REQUIRE_OK(store.OpenBucket());
  store.env.AdvanceClock(59 * kSecond);
  REQUIRE_CODE(open(/*take_over=*/false), kInUse);
  store.env.AdvanceClock(kSecond);
  REQUIRE_OK(open(/*take_over=*/false));
  // A machine that has crashed does not wait for its own lease.
  const auto own = BucketWriterOf(store.env, kStore);
  REQUIRE_OK(own);
  begin({.id = *own, .host = HostName()});
  REQUIRE_OK(open(/*take_over=*/false));
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

// Passes each call on, so that several openings share the objects.
class SharedObjects final : public ObjectStore {
 public:
  explicit SharedObjects(ObjectStore& base) : base_(base) {}
  const std::string& name() const override { return base_.name(); }
  Result<std::string> PutFile(const std::string& key, const ReadableFile& content,
                              const PutCondition& condition) override {
    return base_.PutFile(key, content, condition);
  }
  Result<std::string> Put(const std::string& key, ByteView content,
                          const PutCondition& condition) override {
    return base_.Put(key, content, condition);
  }
  Result<Bytes> Get(const std::string& key, uint64_t limit, std::string* version) override {
    return base_.Get(key, limit, version);
  }
  Result<size_t> Read(const std::string& key, std::string_view version, uint64_t offset,
                      MutableByteView out) override {
    return base_.Read(key, version, offset, out);
  }
  Result<ObjectInfo> Stat(const std::string& key) override { return base_.Stat(key); }
  Status Remove(const std::string& key) override { return base_.Remove(key); }
  Result<ObjectPage> List(const std::string& prefix, const std::string& after,
                          size_t limit) override {
    return base_.List(prefix, after, limit);
  }
  void Interrupt() override {}
  void InterruptReads() override {}
  ObjectStoreCounters Counters() const override { return base_.Counters(); }

 private:
  ObjectStore& base_;
};

TEST_CASE("a store that is not mounted knows how far its bucket is behind") {
  constexpr int64_t kSecond = 1'000'000'000;
  Store store;
  store.env.SetClock(1000 * kSecond);
  REQUIRE_OK(store.Make());
  const auto open = [&store](bool ships) {
    auto bucket = StoreBucket::OpenOver(std::make_unique<SharedObjects>(*store.objects), store.env,
                                        kStore, store.config, {.ships = ships});
    REQUIRE_OK(bucket);
    return std::move(bucket).value();
  };
  const auto stats = [&store, &open] {
    const auto bucket = open(/*ships=*/false);
    CHECK_FALSE(bucket->Stats().lag.has_value());
    REQUIRE_OK(ReadStoreStats(store.env, kStore, &bucket->segments(), bucket->Layer()));
    return bucket->Stats();
  };
  int directories = 0;
  const auto write = [&store, &open, &directories](const std::function<void()>& after_opening) {
    const auto bucket = open(/*ships=*/true);
    FileSystemOptions options;
    options.store = kStore;
    options.segments = &bucket->segments();
    options.metadata_layer = bucket->Layer();
    auto opened = FileSystem::Open(store.env, std::move(options));
    REQUIRE_OK(opened);
    while (bucket->Stats().lag->commits > 0) std::this_thread::yield();
    after_opening();
    REQUIRE_OK((*opened)->MakeDirectory(kRootInode, fmt::format("{}", ++directories), 0755, {}));
    REQUIRE_OK((*opened)->SyncAll());
  };
  // Nothing was ever shipped.
  CHECK(stats().lag->checkpoint_waits);
  CHECK(stats().lag->host.empty());
  write([] {});
  const BucketUsage used = stats().total;
  CHECK(used.requests.puts > 0);
  // The process ends without a close. The bucket gives no answer meanwhile.
  write([&store] { store.objects->FailCall({.call = ObjectCall::kPut, .permanent = true}); });
  store.objects->ClearFaults();
  store.env.AdvanceClock(500 * kSecond);
  const BucketLag lag = *stats().lag;
  CHECK(lag.commits > 0);
  CHECK(lag.newest == lag.shipped + lag.commits);
  CHECK(lag.seconds == 500);
  CHECK(lag.host == HostName());
  CHECK(lag.epoch == 2);
  CHECK_FALSE(lag.fenced);
  // Another machine takes over.
  const WriterIdentity other{.id = {9}, .host = "other"};
  BucketLog log(*store.objects, other);
  REQUIRE_OK(log.Begin([](const LogEnd&) { return Status::Ok(); }, 0, 0));
  CHECK(stats().lag->fenced);
  CHECK(stats().lag->host == "other");
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
