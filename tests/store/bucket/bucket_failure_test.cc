// A bucket or a disk that fails: no call damages anything, and later calls succeed.
#include "tests/store/bucket/bucket_test_support.h"
#include "tests/support/crash_points.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

constexpr size_t kBlock = kObjectBlockBytes;

// All segments of a scenario that were put, replaced and removed; the calls may fail. Work that
// failed is not repeated here.
struct Scenario {
  std::map<SegmentId, std::string> certain;             // acknowledged
  std::map<SegmentId, std::vector<std::string>> maybe;  // of calls that failed; empty: removed

  void Note(const Status& done, SegmentId id, const std::string& content) {
    if (!done.ok()) {
      maybe[id].push_back(content);
    } else if (content.empty()) {
      certain.erase(id);
    } else {
      certain[id] = content;
    }
  }
  void Run(BucketBench& bench) {
    auto& store = bench.store();
    const auto put = [&](SegmentId id, uint64_t seed, bool replace) {
      const std::string content = RandomContent(seed, kBlock + seed);
      const SegmentSource source = bench.Source(content);
      Note(replace ? store.Replace(id, source) : store.Put(id, source), id, content);
    };
    const auto work = [&] { store.RunBackground().IgnoreError("the call may fail"); };
    put(1, 11, false);
    put(2, 12, false);
    work();
    put(1, 13, true);
    work();
    const auto file = store.Open(2);
    if (file.ok()) ReadWhole(**file).status().IgnoreError("the call may fail");
    Note(store.Remove(2), 2, "");
    put(3, 14, false);
    work();
  }
  void Check(BucketBench& bench) {
    for (SegmentId id = 1; id <= 3; ++id) {
      INFO("segment " << id);
      const auto found = bench.Read(id);
      if (!found.ok()) REQUIRE_CODE(found, kNotFound);
      const std::string content = found.ok() ? *found : "";
      const bool is_certain = certain.contains(id) ? content == certain[id] : content.empty();
      const auto& others = maybe[id];
      REQUIRE((is_certain || std::ranges::find(others, content) != others.end()));
    }
  }
};

void RequireNoLeaks(BucketBench& bench) {
  const auto ids = Must(bench.store().List()).ids;
  CHECK(bench.objects().Keys().size() == ids.size());
  CHECK(bench.Files("/cache/removed").empty());
  CHECK(bench.Waiting().empty());
  CHECK(bench.Images().size() <= ids.size());
}

}  // namespace

TEST_CASE("bucket failures: a bucket that does not answer delays reads, and damages nothing") {
  BucketBench bench;
  const std::string content = RandomContent(1, 3 * kBlock);
  bench.PutUploaded(1, content);
  bench.DropImages();
  const auto file = Must(bench.store().Open(1));
  const auto code =
      GENERATE(StatusCode::kIoError, StatusCode::kAccessDenied, StatusCode::kNotFound);
  bench.objects().FailCall({.call = ObjectCall::kGet, .code = code, .permanent = true});
  Bytes bytes(16);
  const Status failed = file->Read(40, bytes).status();
  REQUIRE_CODE(failed, kIoError);
  CHECK(failed.path() == bench.store().NameOf(1));
  CHECK(failed.offset() == 40);
  CHECK(failed.cause().find("injected failure") != std::string::npos);
  bench.objects().ClearFaults();
  // After the outage, reads go on to fail at once until one of them is sent (outage.h).
  while (!file->Read(40, bytes).ok()) continue;
  // Its answer has ended the outage.
  CHECK(Must(ReadWhole(*file)) == content);
}

TEST_CASE("bucket failures: requests are repeated until the timeout") {
  BucketOptions options = BucketBench::Options();
  options.bucket_timeout = kPatience;
  BucketBench bench(options);
  const std::string content = RandomContent(1, 3 * kBlock);
  bench.PutUploaded(1, content);
  bench.DropImages();
  for (const uint64_t nth : {1, 2}) {
    bench.objects().FailCall({.call = ObjectCall::kList, .nth = nth});
    bench.objects().FailCall({.call = ObjectCall::kGet, .nth = nth});
  }
  CHECK(Must(bench.Read(1)) == content);
}

TEST_CASE("bucket failures: after InterruptReads reads fail at once, and uploads go on", "[race]") {
  BucketOptions options = BucketBench::Options();
  options.bucket_timeout = kPatience;
  uint64_t gets = 0;
  MemoryObjectStore* objects = nullptr;
  BucketBench bench(options, {.wait = [&](ObjectCall call, const std::string&, auto) {
                      // A request that has failed is being repeated.
                      if (call == ObjectCall::kGet && ++gets == 3) objects->InterruptReads();
                    }});
  objects = &bench.objects();
  bench.PutUploaded(1, RandomContent(1, 3 * kBlock));
  bench.DropImages();
  bench.objects().FailCall({.call = ObjectCall::kGet, .permanent = true});
  const Status failed = bench.Read(1).status();
  REQUIRE_CODE(failed, kIoError);
  CHECK(failed.cause().find("reads of the bucket have ended") != std::string::npos);
  CHECK(gets == 3);
  bench.PutUploaded(2, RandomContent(2, 100));
  CHECK(bench.objects().Keys().size() == 2);
}

TEST_CASE(
    "bucket failures: without the bucket's list nothing is known, and a later call tries again") {
  BucketBench bench;
  bench.PutUploaded(1, RandomContent(1, 100));
  bench.Reopen();
  for (uint64_t nth = 1; nth <= 5; ++nth)
    bench.objects().FailCall({.call = ObjectCall::kList, .nth = nth});
  REQUIRE_CODE(bench.Read(1), kIoError);
  REQUIRE_CODE(bench.store().List().status(), kIoError);
  REQUIRE_CODE(bench.store().Recover().status(), kIoError);
  const Status put = bench.store().Put(2, bench.Source("x"));
  REQUIRE_CODE(put, kIoError);
  CHECK(put.path() == bench.store().name());
  REQUIRE_CODE(bench.store().Remove(1), kIoError);
  CHECK(Must(bench.Read(1)) == RandomContent(1, 100));
}

TEST_CASE("bucket failures: wrong and truncated bodies reach neither readers nor the cache") {
  const auto effect = GENERATE(ObjectFault::Effect::kWrongBody, ObjectFault::Effect::kTruncated);
  BucketBench bench;
  const std::string content = RandomContent(1, 3 * kBlock + 17);
  bench.PutUploaded(1, content);
  bench.DropImages();
  SECTION("once") {
    for (uint64_t nth = 1; nth <= 4; ++nth) {
      bench.objects().FailCall({.call = ObjectCall::kGet, .nth = nth, .effect = effect});
      CHECK(Must(bench.Read(1)) == content);
      bench.objects().ClearFaults();
      bench.DropImages();
    }
  }
  SECTION("always") {
    const auto file = Must(bench.store().Open(1));
    Bytes bytes(16);
    if (GENERATE(false, true)) REQUIRE_OK(file->Read(2 * kBlock, bytes));  // the trailer is known
    bench.objects().FailCall({.call = ObjectCall::kGet, .effect = effect, .permanent = true});
    REQUIRE_CODE(file->Read(40, bytes).status(), kCorruption);
    bench.objects().ClearFaults();
    CHECK(Must(ReadWhole(*file)) == content);
    bench.Reopen();
    CHECK(Must(bench.Read(1)) == content);
  }
}

TEST_CASE("bucket failures: the right bytes of another block or segment are refused") {
  BucketBench bench;
  bench.PutUploaded(1, RandomContent(1, 3 * kBlock));
  bench.PutUploaded(2, RandomContent(2, 3 * kBlock));
  bench.DropImages();
  const std::string key = SegmentObjectKey({1, 1});
  const std::string object = bench.objects().Content(key).value();
  SECTION("blocks have changed places") {
    bench.objects().SetContent(
        key, object.substr(kBlock, kBlock) + object.substr(0, kBlock) + object.substr(2 * kBlock));
  }
  SECTION("the object of another segment") {
    bench.objects().SetContent(key, bench.objects().Content(SegmentObjectKey({2, 2})).value());
  }
  REQUIRE_CODE(bench.Read(1), kCorruption);
  bench.objects().SetContent(key, object);
  CHECK(Must(bench.Read(1)) == RandomContent(1, 3 * kBlock));
}

TEST_CASE("bucket failures: any request may fail, with or without its effect") {
  const auto call =
      GENERATE(ObjectCall::kPut, ObjectCall::kGet, ObjectCall::kRemove, ObjectCall::kList);
  const auto effect = GENERATE(ObjectFault::Effect::kNone, ObjectFault::Effect::kAnswerLost);
  if (effect == ObjectFault::Effect::kAnswerLost && call != ObjectCall::kPut &&
      call != ObjectCall::kRemove) {
    return;
  }
  const bool restart = GENERATE(false, true);
  uint64_t calls = 0;
  for (uint64_t nth = 1; nth == 1 || nth <= calls + 1; ++nth) {
    BucketBench bench;
    bench.objects().FailCall({.call = call, .nth = nth, .effect = effect});
    Scenario scenario;
    scenario.Run(bench);
    calls = bench.objects().Calls(call);
    bench.objects().ClearFaults();
    INFO("call " << nth << " of kind " << static_cast<int>(call));
    if (restart) bench.Reopen();
    scenario.Check(bench);
    bench.Work();
    bench.Work();
    scenario.Check(bench);
    RequireNoLeaks(bench);
  }
}

TEST_CASE("bucket failures: any call of the disk may fail") {
  const auto code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  bool failed = true;
  for (uint64_t nth = 1; failed; nth += SanitizedStep()) {
    BucketBench bench;
    Scenario scenario;
    const uint64_t before = bench.env().Calls(SimCall::kAny);
    bench.env().FailCall({.calls = SimCall::kAny, .nth = nth, .code = code, .path_part = "/cache"});
    scenario.Run(bench);
    failed = bench.env().Calls(SimCall::kAny) - before >= nth && nth < 400;
    bench.env().ClearFaults();
    INFO("call " << nth);
    bench.PowerCut();
    REQUIRE_OK(bench.store().Recover());
    scenario.Check(bench);
    bench.Work();
    bench.Work();
    scenario.Check(bench);
    RequireNoLeaks(bench);
  }
}
