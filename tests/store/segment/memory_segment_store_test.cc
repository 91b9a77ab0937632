// Faults, latency and damage of MemorySegmentStore.
#include "tests/store/segment/segment_store_bench.h"

using namespace siltfs;
using namespace siltfs::testing;

TEST_CASE("MemorySegmentStore: the n-th call of a kind fails once, or permanently") {
  SegmentStoreBench bench(StoreKind::kMemory);
  bench.Put(1, ContentOf(1, 10));
  bench.memory().FailCall({.call = SegmentCall::kOpen, .nth = 2, .code = StatusCode::kIoError});
  REQUIRE_OK(bench.Read(1));
  REQUIRE_OK(bench.store().List());  // a call of another kind
  REQUIRE_CODE(bench.Read(1), kIoError);
  REQUIRE_OK(bench.Read(1));
  bench.memory().FailCall(
      {.call = SegmentCall::kOpen, .code = StatusCode::kInUse, .permanent = true});
  REQUIRE_CODE(bench.Read(1), kInUse);
  REQUIRE_CODE(bench.Read(1), kInUse);
  bench.memory().ClearFaults();
  REQUIRE_OK(bench.Read(1));
  CHECK(bench.memory().Calls(SegmentCall::kOpen) == 6);
  CHECK(bench.memory().Calls(SegmentCall::kPut) == 1);
}

TEST_CASE("MemorySegmentStore: a failed change has no effect, unless only its answer is lost") {
  SegmentStoreBench bench(StoreKind::kMemory);
  const bool lost = GENERATE(false, true);
  SECTION("Put") {
    bench.memory().FailCall({.call = SegmentCall::kPut, .answer_lost = lost});
    const SegmentSource source = bench.Source(ContentOf(1, 10));
    REQUIRE_CODE(bench.store().Put(1, source), kIoError);
    CHECK(bench.Read(1).ok() == lost);
    REQUIRE_OK(bench.store().Put(1, source));  // the source is still there
    CHECK(Must(bench.Read(1)) == ContentOf(1, 10));
  }
  SECTION("Replace") {
    bench.Put(1, ContentOf(1, 10));
    bench.memory().FailCall({.call = SegmentCall::kReplace, .answer_lost = lost});
    REQUIRE_CODE(bench.store().Replace(1, bench.Source(ContentOf(2, 10))), kIoError);
    CHECK(Must(bench.Read(1)) == ContentOf(lost ? 2 : 1, 10));
  }
  SECTION("Remove") {
    bench.Put(1, ContentOf(1, 10));
    bench.memory().FailCall({.call = SegmentCall::kRemove, .answer_lost = lost});
    REQUIRE_CODE(bench.store().Remove(1), kIoError);
    CHECK(bench.Read(1).ok() != lost);
    REQUIRE_OK(bench.store().Remove(1));
  }
}

TEST_CASE("MemorySegmentStore: a full store changes nothing, and the call may be repeated") {
  SegmentStoreBench bench(StoreKind::kMemory);
  bench.memory().SetCapacity(1000);
  bench.Put(1, ContentOf(1, 100));
  const SegmentSource second = bench.Source(ContentOf(2, 50));
  REQUIRE_CODE(bench.store().Put(2, second), kNoSpace);
  REQUIRE_CODE(bench.Read(2), kNotFound);
  REQUIRE_CODE(bench.store().Replace(1, bench.Source(ContentOf(3, 126))), kNoSpace);
  CHECK(Must(bench.Read(1)) == ContentOf(1, 100));
  bench.Replace(1, ContentOf(3, 60));  // the old content does not count
  REQUIRE_OK(bench.store().Put(2, second));
  CHECK(Must(bench.Read(2)) == ContentOf(2, 50));
}

TEST_CASE("MemorySegmentStore: each call waits for its latency before it takes effect") {
  TestStore device;
  std::vector<std::pair<SegmentCall, int64_t>> waits;
  MemorySegmentStore* self = nullptr;
  MemorySegmentOptions options;
  options.name = "bucket";
  options.latency = std::chrono::microseconds(5);
  options.nanoseconds_per_byte = 2;
  options.wait = [&](SegmentCall call, const std::string& segment, std::chrono::nanoseconds time) {
    waits.emplace_back(call, time.count());
    if (call == SegmentCall::kList) CHECK(segment == "bucket");
    if (call == SegmentCall::kPut) CHECK_FALSE(self->Content(1).ok());
  };
  MemorySegmentStore store(options);
  self = &store;
  CHECK(store.NameOf(1) == "bucket/00000001.seg");
  REQUIRE_OK(ReplaceFile(device.env, "/store/source", AsBytes(ContentOf(1, 10))));
  REQUIRE_OK(store.Put(1, {device.env, "/store/source"}));
  const auto file = Must(store.Open(1));
  Bytes bytes(30);
  REQUIRE_OK(file->Read(0, bytes));
  REQUIRE_OK(store.List());
  REQUIRE_OK(store.Remove(1));
  CHECK(waits == std::vector<std::pair<SegmentCall, int64_t>>{{SegmentCall::kPut, 5160},
                                                              {SegmentCall::kOpen, 5000},
                                                              {SegmentCall::kRead, 5060},
                                                              {SegmentCall::kList, 5000},
                                                              {SegmentCall::kRemove, 5000}});
}

TEST_CASE("MemorySegmentStore: a corrupted range reads as other bytes, also for open readers") {
  SegmentStoreBench bench(StoreKind::kMemory);
  bench.Put(1, ContentOf(1, 10));
  const auto file = Must(bench.store().Open(1));
  const auto fork = bench.memory().Fork();
  REQUIRE_OK(bench.memory().Corrupt(1, 16, 2));
  std::string damaged = ContentOf(1, 10);
  damaged[16] = static_cast<char>(damaged[16] ^ 0x40);
  damaged[17] = static_cast<char>(damaged[17] ^ 0x40);
  CHECK(Must(bench.ReadAll(*file)) == damaged);
  CHECK(Must(bench.Read(1)) == damaged);
  CHECK(Must(fork->Content(1)) == ContentOf(1, 10));
  REQUIRE_CODE(bench.memory().Corrupt(1, 79, 2), kInvalidArgument);
  REQUIRE_CODE(bench.memory().Corrupt(2, 0, 1), kNotFound);
}
