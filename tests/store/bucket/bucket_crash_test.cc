// Power cuts at every call of the disk, during all kinds of changes of a BucketSegmentStore.
#include "tests/store/bucket/bucket_test_support.h"
#include "tests/support/crash_points.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

// What is known about the segments: each has one of these contents; an empty one means that the
// segment does not exist.
class Knowledge {
 public:
  void Begin(SegmentId id, const std::string& content) {
    auto& contents = contents_[id];
    if (contents.empty()) contents.push_back("");
    contents.push_back(content);
  }
  void End(const Status& done, SegmentId id) {
    if (done.ok()) contents_[id] = {contents_[id].back()};
  }
  // Compares all segments, and then knows what was found.
  void Check(BucketBench& bench) {
    for (auto& [id, contents] : contents_) {
      INFO("segment " << id);
      const auto found = bench.Read(id, 50'000);
      if (!found.ok()) REQUIRE_CODE(found, kNotFound);
      const std::string content = found.ok() ? *found : "";
      REQUIRE(std::ranges::find(contents, content) != contents.end());
      contents = {content};
    }
  }
  size_t segments() const {
    return static_cast<size_t>(std::ranges::count_if(
        contents_, [](const auto& entry) { return !entry.second.back().empty(); }));
  }

 private:
  std::map<SegmentId, std::vector<std::string>> contents_;
};

BucketOptions SmallCache() {
  BucketOptions options = BucketBench::Options();
  options.cache_bytes = 900 * kKiB;  // evicts now and then
  return options;
}

// Puts, replaces, uploads, reads, evicts and removes. The power may go at any call.
void Run(BucketBench& bench, Knowledge& known) {
  BucketSegmentStore& store = bench.store();
  const auto change = [&](SegmentId id, uint64_t seed, bool replace) {
    const std::string content = RandomContent(seed, 200 * kKiB + seed);
    const auto path = fmt::format("/built/s{}", seed);
    if (!ReplaceFile(bench.env(), path, AsBytes(content)).ok()) return;
    const SegmentSource source{bench.env(), path};
    known.Begin(id, content);
    known.End(replace ? store.Replace(id, source) : store.Put(id, source), id);
  };
  const auto remove = [&](SegmentId id) {
    known.Begin(id, "");
    known.End(store.Remove(id), id);
  };
  const auto work = [&] { store.RunBackground().IgnoreError("the power may be off"); };
  const auto read = [&](SegmentId id) {
    const auto file = store.Open(id);
    if (file.ok()) ReadWhole(**file).status().IgnoreError("the power may be off");
  };
  change(1, 11, false);
  change(2, 12, false);
  work();
  change(1, 13, true);  // of an uploaded content
  const auto held = store.Open(1);
  held.status().IgnoreError("the power may be off");
  change(1, 14, true);  // of a waiting content with a reader
  work();
  change(3, 15, false);
  remove(2);  // uploaded
  change(4, 16, false);
  remove(4);  // waiting
  work();
  change(5, 17, false);
  work();
  change(6, 18, false);
  work();  // by now, images have been evicted
  read(1);
  read(3);
  remove(3);
  change(1, 19, true);
  work();
  change(7, 20, false);
}

void RequireNoLeaks(BucketBench& bench, const Knowledge& known) {
  CHECK(bench.objects().Keys().size() == known.segments());
  CHECK(bench.Files("/cache/removed").empty());
  CHECK(bench.Waiting().empty());
  CHECK(bench.Images().size() <= known.segments());
  CHECK(bench.store().GetStatus().deletions_waiting == 0);
}

}  // namespace

TEST_CASE(
    "bucket crashes: after a power cut at any call, every segment has a content that it had") {
  const auto unsynced = GENERATE(CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                                 CrashPolicy::Unsynced::kSubset, CrashPolicy::Unsynced::kGarble);
  bool cut = true;
  uint64_t cuts = 0;
  for (uint64_t nth = 1; cut; nth += SanitizedStep()) {
    BucketBench bench(SmallCache());
    Knowledge known;
    bench.env().CutAtCall(nth);
    Run(bench, known);
    cut = !bench.env().PowerIsOn();
    cuts += cut ? 1 : 0;
    INFO("cut at call " << nth << ", policy " << static_cast<int>(unsynced));
    const CrashPolicy policy{.unsynced = unsynced, .seed = nth, .names_in_any_order = nth % 2 == 0};
    bench.PowerCut(policy);
    REQUIRE_OK(bench.store().Recover());
    known.Check(bench);
    // What was found is durable: after another cut, the same is there.
    if (nth % 3 == 0) {
      bench.PowerCut(policy);
      known.Check(bench);
    }
    bench.Work();
    bench.Work();
    known.Check(bench);
    RequireNoLeaks(bench, known);
    // The bucket has the same without this disk.
    bench.LoseMachine();
    known.Check(bench);
  }
  CHECK(cuts > 0);
}

TEST_CASE("bucket crashes: a power cut while an earlier one is being repaired changes nothing") {
  uint64_t cuts = 0;
  for (uint64_t first = 3; first < 130; first += CallStep()) {
    bool cut = true;
    for (uint64_t second = 1; cut; second += 2) {
      BucketBench bench(SmallCache());
      Knowledge known;
      bench.env().CutAtCall(first);
      Run(bench, known);
      bench.PowerCut(
          {.unsynced = CrashPolicy::Unsynced::kSubset, .seed = first, .names_in_any_order = true});
      REQUIRE_OK(bench.store().List());
      INFO("cuts at calls " << first << " and " << second);
      bench.env().CutAtCall(second);
      const auto recovered = bench.store().Recover();
      // What the store shows after a successful Recover is durable. (Reads change the cache, so the
      // cut must wait for them.)
      if (recovered.ok()) {
        bench.env().CutAtCall(1'000'000);
        known.Check(bench);
        bench.env().CutAtCall(second);
      }
      bench.store().RunBackground().IgnoreError("the power may be off");
      cut = !bench.env().PowerIsOn();
      cuts += cut ? 1 : 0;
      bench.PowerCut(
          {.unsynced = CrashPolicy::Unsynced::kSubset, .seed = second, .names_in_any_order = true});
      REQUIRE_OK(bench.store().Recover());
      known.Check(bench);
      bench.Work();
      bench.Work();
      RequireNoLeaks(bench, known);
    }
  }
  CHECK(cuts > 0);
}

TEST_CASE("bucket crashes: what a restarted process shows survives a power cut") {
  // The process dies at a call; the disk keeps its unsynced changes until the power cut.
  bool failed = true;
  for (uint64_t nth = 1; failed; nth += SanitizedStep()) {
    BucketBench bench(SmallCache());
    Knowledge known;
    bench.env().FailCall(
        {.calls = SimCall::kMutating, .nth = nth, .sticky = true, .path_part = "/cache"});
    const uint64_t before = bench.env().Calls(SimCall::kMutating);
    Run(bench, known);
    failed = nth < 150 && bench.env().Calls(SimCall::kMutating) - before >= nth;
    bench.env().ClearFaults();
    bench.Reopen();
    INFO("killed at call " << nth);
    REQUIRE_OK(bench.env().SyncDirectory("/built"));  // as StagedSegmentStore::Recover does
    REQUIRE_OK(bench.store().Recover());
    known.Check(bench);
    bench.PowerCut();
    known.Check(bench);
    REQUIRE_OK(bench.store().Recover());
    bench.Work();
    bench.Work();
    known.Check(bench);
    RequireNoLeaks(bench, known);
  }
}

TEST_CASE("bucket crashes: the old file stays until the new one is known to be durable") {
  BucketBench bench;
  bench.Put(5, RandomContent(1, 1000));
  auto reader = Must(bench.store().Open(5));
  bench.env().FailCall({.calls = SimCall::kSyncDirectory, .path_part = "/cache/files"});
  REQUIRE_CODE(bench.store().Replace(5, bench.Source(RandomContent(2, 500))), kIoError);
  reader = nullptr;
  CHECK(bench.Waiting().size() == 2);
  bench.PowerCut();
  CHECK(Must(bench.Read(5)) == RandomContent(1, 1000));
}

TEST_CASE("bucket crashes: a lost machine leaves a state in which each segment is whole") {
  // Cuts the machine off after each request, instead of the power.
  for (uint64_t nth = 1; nth <= 25; ++nth) {
    BucketBench bench(SmallCache());
    Knowledge known;
    for (const ObjectCall call : {ObjectCall::kPut, ObjectCall::kRemove}) {
      bench.objects().FailCall({.call = call, .nth = nth, .permanent = true});
    }
    Run(bench, known);
    bench.objects().ClearFaults();
    const auto before = Must(bench.store().List()).ids;
    bench.LoseMachine();
    for (const SegmentId id : Must(bench.store().List()).ids) {
      const std::string content = Must(bench.Read(id));
      bool is_known = false;
      for (uint64_t seed = 11; seed <= 20; ++seed)
        is_known = is_known || content == RandomContent(seed, 200 * kKiB + seed);
      CHECK(is_known);
    }
  }
}
