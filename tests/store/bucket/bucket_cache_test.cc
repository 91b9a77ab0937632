// The local cache of a BucketSegmentStore: which requests reads need, what stays, what goes.
#include <malloc.h>

#include "store/bucket/segment_table.h"
#include "tests/store/bucket/bucket_test_support.h"
#include "tests/support/crash_points.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

constexpr size_t kBlock = kObjectBlockBytes;

uint64_t Gets(BucketBench& bench) { return bench.objects().Calls(ObjectCall::kGet); }

std::string ReadRange(BucketBench& bench, SegmentId id, uint64_t offset, size_t size) {
  const auto file = Must(bench.store().Open(id));
  Bytes bytes(size);
  bytes.resize(Must(file->Read(offset, bytes)));
  return std::string(AsText(bytes));
}

uint64_t BytesOnDisk(BucketBench& bench) {
  uint64_t bytes = 0;
  for (const std::string& path : bench.Files("/cache/files"))
    bytes += Must(bench.env().GetFileInfo(path)).allocated_bytes;
  return bytes;
}

void FlipByte(BucketBench& bench, const std::string& path, uint64_t offset) {
  const auto file = Must(bench.env().OpenFile(path, {.mode = OpenMode::kReadWrite}));
  Bytes byte(1);
  REQUIRE_OK(ReadExactly(*file, offset, byte));
  byte[0] ^= 0x40;
  REQUIRE_OK(file->Write(offset, byte));
}

// Lists many objects without keeping them.
class HugeBucket final : public ObjectStore {
 public:
  explicit HugeBucket(uint32_t segments) : segments_(segments) {}
  const std::string& name() const override { return name_; }
  Result<ObjectPage> List(const std::string& prefix, const std::string& after,
                          size_t limit) override {
    REQUIRE(prefix == kSegmentKeyPrefix);
    // In the order of keys: by the low byte of the id first.
    uint64_t next = 0;
    if (!after.empty()) {
      const ContentId last = *ParseSegmentObjectKey(after);
      next = uint64_t{last.segment & 0xff} * (segments_ >> 8) + (last.segment >> 8);
    }
    ObjectPage page;
    const uint64_t per_byte = segments_ >> 8;
    for (; page.objects.size() < limit && next < per_byte * 256; ++next) {
      const auto id = static_cast<SegmentId>(((next % per_byte + 1) << 8) | next / per_byte);
      page.objects.push_back({SegmentObjectKey({id, id}), ObjectBytes(33'000'000), {}});
    }
    page.more = next < per_byte * 256;
    return page;
  }
  Result<std::string> PutFile(const std::string&, const ReadableFile&,
                              const PutCondition&) override {
    return Unused();
  }
  Result<std::string> Put(const std::string&, ByteView, const PutCondition&) override {
    return Unused();
  }
  Result<Bytes> Get(const std::string&, uint64_t, std::string*) override { return Unused(); }
  Result<size_t> Read(const std::string&, std::string_view, uint64_t, MutableByteView) override {
    return Unused();
  }
  Result<ObjectInfo> Stat(const std::string&) override { return Unused(); }
  Status Remove(const std::string&) override { return Unused(); }
  void Interrupt() override {}
  void InterruptReads() override {}
  ObjectStoreCounters Counters() const override { return {}; }

 private:
  static Status Unused() { return Status(StatusCode::kIoError, "not used"); }
  const uint32_t segments_;
  const std::string name_ = "huge:";
};

}  // namespace

TEST_CASE("bucket cache: a read fetches the blocks that it needs, once") {
  BucketBench bench;
  const std::string content = RandomContent(1, 5 * kBlock + 100);
  bench.PutUploaded(1, content);
  bench.DropImages();
  const uint64_t before = Gets(bench);
  CHECK(ReadRange(bench, 1, kBlock + 10, 1000) == content.substr(kBlock + 10, 1000));
  CHECK(Gets(bench) == before + 2);  // the trailer, and the block
  CHECK(ReadRange(bench, 1, 2 * kBlock - 500, 500) == content.substr(2 * kBlock - 500, 500));
  CHECK(Gets(bench) == before + 2);
  CHECK(ReadRange(bench, 1, 2 * kBlock - 500, 1000) == content.substr(2 * kBlock - 500, 1000));
  CHECK(Gets(bench) == before + 3);
  CHECK(ReadRange(bench, 1, 5 * kBlock + 50, 1000) == content.substr(5 * kBlock + 50));
  CHECK(Gets(bench) == before + 4);
  const LocalCacheCounters cache = bench.store().GetStatus().cache;
  CHECK(cache.used_bytes == 2 * kBlock + 100 + TrailerBytes(content.size()));
  CHECK(cache.misses == 3);
  CHECK(cache.hits == 2);
}

TEST_CASE("bucket cache: sequential reads fetch several blocks with one request") {
  BucketBench bench;
  const std::string content = RandomContent(1, 32 * kBlock);
  bench.PutUploaded(1, content);
  bench.DropImages();
  const uint64_t before = Gets(bench);
  CHECK(Must(bench.Read(1, 10'000)) == content);
  CHECK(Gets(bench) - before <= 10);
  CHECK(Must(bench.Read(1, 10'000)) == content);
  CHECK(Gets(bench) - before <= 10);
}

TEST_CASE("bucket cache: after a restart, intact blocks are used again, and no others") {
  BucketBench bench;
  const std::string content = RandomContent(1, 6 * kBlock);
  bench.PutUploaded(1, content);
  bench.DropImages();
  for (const uint64_t block : {0, 2, 4}) ReadRange(bench, 1, block * kBlock, 10);
  REQUIRE(bench.Images().size() == 1);
  // Block 2 is damaged; blocks 1, 3 and 5 are holes.
  FlipByte(bench, bench.Images()[0], 2 * kBlock + 12'345);
  bench.Reopen();
  const uint64_t before = Gets(bench);
  CHECK(ReadRange(bench, 1, 0, 100) == content.substr(0, 100));
  CHECK(ReadRange(bench, 1, 4 * kBlock, 100) == content.substr(4 * kBlock, 100));
  CHECK(Gets(bench) == before);
  CHECK(ReadRange(bench, 1, 2 * kBlock + 12'300, 100) == content.substr(2 * kBlock + 12'300, 100));
  CHECK(ReadRange(bench, 1, kBlock, 100) == content.substr(kBlock, 100));
  CHECK(Gets(bench) == before + 2);
  CHECK(bench.store().GetStatus().cache.bad_blocks == 2);
  CHECK(Must(bench.Read(1)) == content);
}

TEST_CASE("bucket cache: after a power cut, torn blocks are never returned") {
  const auto unsynced = GENERATE(CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                                 CrashPolicy::Unsynced::kPrefix, CrashPolicy::Unsynced::kSubset,
                                 CrashPolicy::Unsynced::kGarble);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    BucketBench bench;
    const std::string content = RandomContent(seed, 6 * kBlock + 5);
    bench.PutUploaded(1, content);
    if (seed % 2 == 0) bench.DropImages();  // otherwise the segment's file has become the image
    for (const uint64_t block : {5, 0, 1, 3}) ReadRange(bench, 1, block * kBlock, 10);
    bench.PowerCut({.unsynced = unsynced, .seed = seed, .names_in_any_order = seed % 3 == 0});
    REQUIRE(Must(bench.Read(1, 999'999)) == content);
    REQUIRE(Must(bench.Read(1)) == content);
  }
}

TEST_CASE("bucket cache: a damaged trailer in the cache is fetched again") {
  BucketBench bench;
  const std::string content = RandomContent(1, 2 * kBlock);
  bench.PutUploaded(1, content);
  FlipByte(bench, bench.Images()[0], content.size() + 3);
  bench.Reopen();
  const uint64_t before = Gets(bench);
  CHECK(Must(bench.Read(1)) == content);
  CHECK(Gets(bench) == before + 1);
}

TEST_CASE("bucket cache: it never takes more than its limit, on disk, too") {
  BucketOptions options = BucketBench::Options();
  options.cache_bytes = 12 * kBlock;
  BucketBench bench(options);
  for (SegmentId id = 1; id <= 12; ++id) {
    bench.PutUploaded(id, RandomContent(id, 3 * kBlock));
    CHECK(BytesOnDisk(bench) <= options.cache_bytes + 4096);
  }
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    const auto id = static_cast<SegmentId>(1 + random.Below(12));
    const uint64_t offset = random.Below(3 * kBlock - 100);
    REQUIRE(ReadRange(bench, id, offset, 100) == RandomContent(id, 3 * kBlock).substr(offset, 100));
    REQUIRE(bench.store().GetStatus().cache.used_bytes <= options.cache_bytes);
    REQUIRE(BytesOnDisk(bench) <= options.cache_bytes + 12 * 4096);
  }
  const LocalCacheCounters cache = bench.store().GetStatus().cache;
  CHECK(cache.evictions > 0);
  CHECK(cache.hits > 0);
  CHECK(cache.refusals == 0);
  bench.Reopen();  // counts the same again
  REQUIRE_OK(bench.store().List());
  CHECK(bench.store().GetStatus().cache.used_bytes <= options.cache_bytes);
}

TEST_CASE("bucket cache: one pass over everything does not evict what is read again and again") {
  BucketOptions options = BucketBench::Options();
  options.cache_bytes = 12 * kBlock;
  BucketBench bench(options);
  for (SegmentId id = 1; id <= 20; ++id) bench.PutUploaded(id, RandomContent(id, 2 * kBlock));
  ReadRange(bench, 1, 0, 100);
  ReadRange(bench, 1, 0, 100);  // a second use
  for (SegmentId id = 2; id <= 20; ++id)
    REQUIRE(Must(bench.Read(id, 1000)) == RandomContent(id, 2 * kBlock));
  const uint64_t before = Gets(bench);
  ReadRange(bench, 1, 0, 100);
  CHECK(Gets(bench) == before);
  // But it goes when other segments are used more.
  for (SegmentId id = 10; id <= 15; ++id) {
    for (int round = 0; round < 3; ++round) Must(bench.Read(id));
  }
  for (SegmentId id = 2; id <= 9; ++id) Must(bench.Read(id));
  const uint64_t later = Gets(bench);
  ReadRange(bench, 1, 0, 100);
  CHECK(Gets(bench) > later);
}

TEST_CASE("bucket cache: the number of files is limited, too") {
  BucketOptions options = BucketBench::Options();
  options.cache_files = 5;
  BucketBench bench(options);
  for (SegmentId id = 1; id <= 20; ++id) bench.PutUploaded(id, RandomContent(id, 1000));
  bench.DropImages();
  for (SegmentId id = 1; id <= 20; ++id) CHECK(Must(bench.Read(id)) == RandomContent(id, 1000));
  CHECK(bench.Images().size() == 5);
  CHECK(bench.store().GetStatus().cache.files == 5);
}

TEST_CASE("bucket cache: a segment without room waits, and then fails with the reason") {
  BucketOptions options = BucketBench::Options();
  options.cache_bytes = 3000;
  BucketBench bench(options);
  bench.Put(1, RandomContent(1, 2000));
  bench.objects().FailCall({.call = ObjectCall::kPut, .permanent = true});
  bench.Work();
  const SegmentSource source = bench.Source(RandomContent(2, 2000));
  const Status full = bench.store().Put(2, source);
  REQUIRE_CODE(full, kNoSpace);
  INFO(full.ToString());
  CHECK(full.path() == bench.store().NameOf(2));
  CHECK(full.cause().find("full of segments that the bucket does not have: 1 segment (") !=
        std::string::npos);
  CHECK(full.cause().find("injected failure") != std::string::npos);
  CHECK(bench.store().GetStatus().cache.waits == 1);
  CHECK(bench.store().GetStatus().cache.full);
  CHECK(Must(bench.store().List()).ids == std::vector<SegmentId>{1});
  CHECK(bench.env().GetFileInfo(source.path).ok());
  bench.objects().ClearFaults();
  bench.Work();
  REQUIRE_OK(bench.store().Put(2, source));  // evicts segment 1
  CHECK_FALSE(bench.store().GetStatus().cache.full);
  CHECK(bench.Images().empty());
  CHECK(Must(bench.Read(1)) == RandomContent(1, 2000));
  CHECK(Must(bench.Read(2)) == RandomContent(2, 2000));
}

TEST_CASE("bucket cache: a segment that is larger than the cache is taken if no other one waits") {
  BucketOptions options = BucketBench::Options();
  options.cache_bytes = 100;
  BucketBench bench(options);
  for (SegmentId id = 1; id <= 3; ++id) bench.PutUploaded(id, RandomContent(id, 2 * kBlock));
  for (SegmentId id = 1; id <= 3; ++id)
    CHECK(Must(bench.Read(id)) == RandomContent(id, 2 * kBlock));
  CHECK(bench.store().GetStatus().cache.refusals > 0);
}

TEST_CASE("bucket cache: reads need no room on the disk") {
  BucketBench bench;
  bench.PutUploaded(1, RandomContent(1, 4 * kBlock));
  bench.DropImages();
  bench.env().FailCall(
      {.calls = SimCall::kWrite | SimCall::kCreate, .code = StatusCode::kNoSpace, .sticky = true});
  CHECK(Must(bench.Read(1)) == RandomContent(1, 4 * kBlock));
  CHECK(bench.store().GetStatus().cache.refusals > 0);
}

TEST_CASE("bucket cache: files that another program has removed are fetched again") {
  BucketBench bench;
  bench.PutUploaded(1, RandomContent(1, 4 * kBlock));
  bench.Reopen();
  REQUIRE_OK(bench.store().List());
  for (const std::string& path : bench.Images()) REQUIRE_OK(bench.env().RemoveFile(path));
  CHECK(Must(bench.Read(1)) == RandomContent(1, 4 * kBlock));
  const uint64_t before = Gets(bench);
  CHECK(Must(bench.Read(1)) == RandomContent(1, 4 * kBlock));
  CHECK(Gets(bench) == before);
}

TEST_CASE("bucket cache: blocks that the disk cannot read any more come from the bucket") {
  BucketBench bench;
  bench.PutUploaded(1, RandomContent(1, 4 * kBlock));
  bench.env().FailCall({.calls = SimCall::kRead, .sticky = true, .path_part = "files/"});
  CHECK(Must(bench.Read(1)) == RandomContent(1, 4 * kBlock));
}

TEST_CASE("bucket cache: 10 TB of segments take a few bytes of memory each") {
  constexpr uint32_t kSegments = 320'000;
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/cache"));
  HugeBucket bucket(kSegments);
  BucketSegmentStore store(env, bucket, BucketBench::Options());
  REQUIRE_CODE(store.Open(1).status(), kNotFound);  // loads the list
  CHECK(store.GetStatus().segments == kSegments);
  if (!kIsSanitized) {
    // The heap before is that of an equal store with few segments.
    const auto in_use = [] { return mallinfo2().uordblks; };
    const size_t before = in_use();
    {
      BucketSegmentStore second(env, bucket, BucketBench::Options());
      REQUIRE_CODE(second.Open(1).status(), kNotFound);
      CHECK(in_use() - before < size_t{40} * kSegments);
    }
  }
  REQUIRE_OK(store.Open(257));
}
