// A BucketSegmentStore with its threads: uploads, read-ahead, waiting writers, shared fetches.
#include <atomic>
#include <thread>

#include "tests/store/bucket/bucket_test_support.h"
#include "tests/support/crash_points.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

constexpr size_t kBlock = kObjectBlockBytes;

BucketOptions WithThreads() {
  BucketOptions options = BucketBench::Options();
  options.upload_threads = 3;
  options.fetch_threads = 3;
  options.most_gets = 4;
  options.bucket_timeout = kPatience;
  options.room_timeout = kPatience;
  return options;
}

// Holds back calls of one kind until it is opened.
class Barrier {
 public:
  explicit Barrier(ObjectCall call) : call_(call) {}
  void Pass(ObjectCall call) {
    if (call != call_) return;
    MutexLock lock(mutex_);
    ++waiting_;
    most_ = std::max(most_, waiting_);
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mutex_);
    --waiting_;
  }
  void AwaitWaiting(int count) {
    MutexLock lock(mutex_);
    while (waiting_ < count) changed_.Wait(mutex_);
  }
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Close() {
    MutexLock lock(mutex_);
    open_ = false;
  }
  int most() {
    MutexLock lock(mutex_);
    return most_;
  }

 private:
  const ObjectCall call_;
  Mutex mutex_;
  CondVar changed_;
  int waiting_ SILTFS_GUARDED_BY(mutex_) = 0;
  int most_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool open_ SILTFS_GUARDED_BY(mutex_) = false;
};

MemoryObjectOptions Behind(Barrier& barrier) {
  return {.wait = [&barrier](ObjectCall call, const std::string&, auto) { barrier.Pass(call); }};
}

}  // namespace

TEST_CASE("bucket threads: segments are uploaded in the background, a bounded number at a time") {
  Barrier barrier(ObjectCall::kPut);
  BucketBench bench(WithThreads(), Behind(barrier));
  for (SegmentId id = 1; id <= 10; ++id) bench.Put(id, RandomContent(id, 1000));
  barrier.AwaitWaiting(3);
  CHECK(bench.store().GetStatus().uploads.uploading == 3);
  CHECK(bench.store().GetStatus().uploads.waiting == 10);
  barrier.Open();
  REQUIRE_OK(bench.store().WaitForUploads(kPatience));
  CHECK(barrier.most() == 3);
  CHECK(bench.objects().Keys().size() == 10);
}

TEST_CASE("bucket threads: a segment that cannot be uploaded does not delay the others") {
  BucketOptions options = WithThreads();
  options.upload_threads = 1;
  BucketBench bench(options);
  bench.objects().FailCall({.call = ObjectCall::kPut, .permanent = true, .key_part = "00000001-"});
  bench.Put(1, RandomContent(1, 1000));
  while (bench.store().GetStatus().uploads.failures == 0) std::this_thread::yield();
  bench.Put(2, RandomContent(2, 1000));
  while (bench.store().GetStatus().uploads.uploaded == 0) std::this_thread::yield();
  CHECK(bench.store().GetStatus().uploads.waiting == 1);
  bench.objects().ClearFaults();
  REQUIRE_OK(bench.store().WaitForUploads(kPatience));
}

TEST_CASE("bucket threads: a full cache lets writers wait until an upload has made room") {
  Barrier barrier(ObjectCall::kPut);
  BucketOptions options = WithThreads();
  options.cache_bytes = 2500;
  BucketBench bench(options, Behind(barrier));
  bench.Put(1, RandomContent(1, 1000));
  bench.Put(2, RandomContent(2, 1000));
  std::atomic<bool> done = false;
  const SegmentSource source = bench.Source(RandomContent(3, 1000));
  std::thread writer([&] {
    REQUIRE_OK(bench.store().Put(3, source));
    done = true;
  });
  while (bench.store().GetStatus().cache.waits == 0) std::this_thread::yield();
  CHECK_FALSE(done);
  barrier.Open();
  writer.join();
  REQUIRE_OK(bench.store().WaitForUploads(kPatience));
  for (SegmentId id = 1; id <= 3; ++id) CHECK(Must(bench.Read(id)) == RandomContent(id, 1000));
}

TEST_CASE("bucket threads: Interrupt ends a Put that waits for room, and changes nothing") {
  Barrier barrier(ObjectCall::kPut);
  BucketOptions options = WithThreads();
  options.cache_bytes = 1500;
  BucketBench bench(options, Behind(barrier));
  bench.Put(1, RandomContent(1, 1000));
  const SegmentSource source = bench.Source(RandomContent(2, 1000));
  std::atomic<StatusCode> code = StatusCode::kOk;
  std::thread writer([&] { code = bench.store().Put(2, source).code(); });
  while (bench.store().GetStatus().cache.waits == 0) std::this_thread::yield();
  bench.store().Interrupt();
  writer.join();
  CHECK(code == StatusCode::kIoError);
  CHECK(bench.env().GetFileInfo(source.path).ok());
  barrier.Open();
}

TEST_CASE("bucket threads: readers of one block share one request") {
  Barrier barrier(ObjectCall::kGet);
  barrier.Open();
  BucketBench bench(WithThreads(), Behind(barrier));
  const std::string content = RandomContent(1, 3 * kBlock);
  bench.Put(1, content);
  REQUIRE_OK(bench.store().WaitForUploads(kPatience));
  bench.DropImages();
  const auto file = Must(bench.store().Open(1));
  Bytes first(1);
  REQUIRE_OK(file->Read(2 * kBlock, first));  // fetches the trailer
  const uint64_t before = bench.objects().Calls(ObjectCall::kGet);
  barrier.Close();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&, i] {
      Bytes bytes(100);
      const auto got = file->Read(static_cast<uint64_t>(i) * 100, bytes);
      if (!got.ok() || AsText(bytes) != content.substr(static_cast<size_t>(i) * 100, 100)) ++wrong;
    });
  }
  barrier.AwaitWaiting(1);
  // All readers have missed the block by now, or will find it in the cache.
  while (bench.store().GetStatus().cache.misses < 9) std::this_thread::yield();
  barrier.Open();
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(bench.objects().Calls(ObjectCall::kGet) == before + 1);
}

TEST_CASE("bucket threads: read-ahead fetches each block of a segment once") {
  BucketBench bench(WithThreads());
  const std::string content = RandomContent(1, 64 * kBlock);
  bench.Put(1, content);
  REQUIRE_OK(bench.store().WaitForUploads(kPatience));
  bench.DropImages();
  const uint64_t before = bench.objects().Counters().received_bytes;
  CHECK(Must(bench.Read(1, 30'000)) == content);
  const uint64_t received = bench.objects().Counters().received_bytes - before;
  CHECK(received >= content.size());
  CHECK(received <= ObjectBytes(static_cast<uint32_t>(content.size())) + 100);
}

TEST_CASE("bucket threads: from the third block in a row on, further ones are read ahead") {
  BucketBench bench(WithThreads());
  bench.Put(1, RandomContent(1, 64 * kBlock));
  REQUIRE_OK(bench.store().WaitForUploads(kPatience));
  bench.DropImages();
  const auto file = Must(bench.store().Open(1));
  Bytes byte(1);
  for (const uint64_t block : {0, 1}) REQUIRE_OK(file->Read(block * kBlock, byte));
  CHECK(bench.store().GetStatus().cache.used_bytes < 3 * kBlock);
  REQUIRE_OK(file->Read(2 * kBlock, byte));
  // The reader fetches the blocks 2 to 4, and threads those up to 6.
  while (bench.store().GetStatus().cache.used_bytes < 7 * kBlock) std::this_thread::yield();
}

TEST_CASE("bucket threads: BeginRead fetches a range in the background") {
  BucketBench bench(WithThreads());
  const std::string content = RandomContent(1, 20 * kBlock);
  bench.Put(1, content);
  REQUIRE_OK(bench.store().WaitForUploads(kPatience));
  bench.DropImages();
  const auto file = Must(bench.store().Open(1));
  file->BeginRead(3 * kBlock, 10 * kBlock);
  while (bench.store().GetStatus().cache.used_bytes < 10 * kBlock) std::this_thread::yield();
  const uint64_t before = bench.objects().Calls(ObjectCall::kGet);
  Bytes bytes(10 * kBlock);
  REQUIRE_OK(file->Read(3 * kBlock, bytes));
  CHECK(AsText(bytes) == content.substr(3 * kBlock, 10 * kBlock));
  CHECK(bench.objects().Calls(ObjectCall::kGet) <= before + 2);
}

TEST_CASE("bucket threads: objects of removed segments are deleted in the background") {
  BucketBench bench(WithThreads());
  for (SegmentId id = 1; id <= 5; ++id) bench.Put(id, RandomContent(id, 1000));
  REQUIRE_OK(bench.store().WaitForUploads(kPatience));
  auto reader = Must(bench.store().Open(3));
  for (SegmentId id = 1; id <= 5; ++id) REQUIRE_OK(bench.store().Remove(id));
  while (bench.store().GetStatus().deleted < 4) std::this_thread::yield();
  CHECK(bench.objects().Keys() == std::vector<std::string>{SegmentObjectKey({3, 3})});
  CHECK(Must(ReadWhole(*reader)) == RandomContent(3, 1000));
  reader = nullptr;
  while (!bench.objects().Keys().empty()) std::this_thread::yield();
}

TEST_CASE("bucket threads: readers, writers and a failing bucket at the same time") {
  BucketOptions options = WithThreads();
  options.cache_bytes = 6 * kBlock;
  BucketBench bench(
      options, {.wait = [](ObjectCall, const std::string&, auto) { std::this_thread::yield(); }});
  constexpr SegmentId kSegments = 12;
  constexpr size_t kSize = kBlock + 5000;
  // The content of a segment tells its seed: the first 8 bytes of its stream.
  const auto content_of = [](uint64_t seed) {
    std::string content = RandomContent(seed, kSize);
    for (size_t i = 0; i < 8; ++i) content[i] = static_cast<char>(seed >> (8 * i));
    return content;
  };
  for (SegmentId id = 1; id <= kSegments; ++id) bench.Put(id, content_of(id));
  for (uint64_t nth = 3; nth < 200; nth += 7) {
    bench.objects().FailCall({.call = ObjectCall::kGet, .nth = nth});
    bench.objects().FailCall({.call = ObjectCall::kPut, .nth = nth});
    bench.objects().FailCall(
        {.call = ObjectCall::kPut, .nth = nth + 3, .effect = ObjectFault::Effect::kAnswerLost});
  }
  // Three in all, because a read fails if one block gets four wrong answers.
  for (const uint64_t nth : {5, 26, 47}) {
    bench.objects().FailCall(
        {.call = ObjectCall::kGet, .nth = nth, .effect = ObjectFault::Effect::kWrongBody});
  }
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  Mutex failure_mutex;
  std::string failure;  // the last one
  std::vector<std::thread> readers;
  for (uint64_t i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      Random random(i);
      while (!done) {
        const auto id = static_cast<SegmentId>(1 + random.Below(kSegments));
        const auto file = bench.store().Open(id);
        if (!file.ok()) {
          if (!file.status().Is(StatusCode::kNotFound)) ++wrong;
          continue;
        }
        const auto content = ReadWhole(**file, 1 + random.Below(100'000));
        uint64_t seed = 0;
        if (content.ok() && content->size() == kSize) {
          for (size_t b = 0; b < 8; ++b)
            seed |= static_cast<uint64_t>(static_cast<uint8_t>((*content)[b])) << (8 * b);
        }
        if (seed == 0 || *content != content_of(seed)) {
          ++wrong;
          MutexLock lock(failure_mutex);
          failure = content.ok() ? "wrong bytes" : content.status().ToString();
        }
      }
    });
  }
  std::map<SegmentId, uint64_t> seeds;
  for (SegmentId id = 1; id <= kSegments; ++id) seeds[id] = id;
  Random random(9);
  const int rounds = kIsSanitized ? 40 : 150;
  for (int round = 1; round <= rounds; ++round) {
    const auto id = static_cast<SegmentId>(1 + random.Below(kSegments));
    const uint64_t seed = 1000 + static_cast<uint64_t>(round);
    if (random.OneIn(4)) {
      REQUIRE_OK(bench.store().Remove(id));
      seeds.erase(id);
    } else {
      bench.Replace(id, content_of(seed));
      seeds[id] = seed;
    }
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  INFO(failure);
  CHECK(wrong == 0);
  bench.objects().ClearFaults();
  REQUIRE_OK(bench.store().WaitForUploads(kPatience));
  for (const auto& [id, seed] : seeds) CHECK(Must(bench.Read(id)) == content_of(seed));
  while (bench.store().GetStatus().deletions_waiting > 0) std::this_thread::yield();
  CHECK(bench.objects().Keys().size() == seeds.size());
  CHECK(bench.store().GetStatus().cache.used_bytes <= options.cache_bytes);
}
