#include "index/key_value/segregated_store.h"

#include "key_value_history.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct SegregatedFixture {
  SegregatedFixture() {
    const KeyValueOptions tiny = TinyKeyValueOptions(32);
    options = {.directory = "/stores",
               .slot_sizes = {32, 64, 256, 2048},
               .index = tiny.index,
               .values = tiny.values};
    REQUIRE_OK(env.CreateDirectory(options.directory));
    REQUIRE_OK(env.SyncDirectory("/"));
  }
  std::unique_ptr<SegregatedStore> Open() {
    auto store = SegregatedStore::Open(env, options);
    REQUIRE_OK(store);
    return std::move(*store);
  }

  SimEnv env;
  SegregatedOptions options;
};

}  // namespace

TEST_CASE(
    "an item goes into the smallest slots that hold it, or if none do, into the smallest slots") {
  SegregatedFixture fixture;
  auto store = fixture.Open();
  CHECK(store->InstanceFor(8, 0) == 1);
  CHECK(store->InstanceFor(8, 64 - 32 - 8 - 6) == 1);
  CHECK(store->InstanceFor(8, 64 - 32 - 8 - 6 + 1) == 2);
  CHECK(store->InstanceFor(8, 256 - 32 - 8 - 7) == 2);
  CHECK(store->InstanceFor(8, 256) == 3);
  CHECK(store->InstanceFor(8, 2048) == 0);
}

TEST_CASE("segregated stores answer like a map of instances and keys") {
  SegregatedFixture fixture;
  std::map<std::pair<SegregatedStore::InstanceId, std::string>, Bytes> model;
  Random random(8);
  for (int life = 0; life < 3; ++life) {
    auto store = fixture.Open();
    for (int step = 0; step < 600; ++step) {
      const std::string key = KeyOf(random.Below(80));
      if (random.OneIn(4)) {
        const auto instance =
            static_cast<SegregatedStore::InstanceId>(random.Below(store->instance_count()));
        REQUIRE_OK(store->Delete(instance, AsBytes(key)));
        model.erase({instance, key});
        continue;
      }
      const Bytes value = RandomValue(random);
      auto instance = store->Put(AsBytes(key), value);
      REQUIRE_OK(instance);
      REQUIRE(*instance == store->InstanceFor(key.size(), value.size()));
      model[{*instance, key}] = value;
    }
    REQUIRE_OK(store->Flush());
    auto reclaimed = store->Reclaim({.most_in_use = 0.6});
    REQUIRE_OK(reclaimed);
    REQUIRE(reclaimed->segments_removed > 0);
    for (uint64_t number = 0; number < 80; ++number) {
      for (size_t i = 0; i < store->instance_count(); ++i) {
        const auto instance = static_cast<SegregatedStore::InstanceId>(i);
        auto got = store->Get(instance, AsBytes(KeyOf(number)));
        REQUIRE_OK(got);
        const auto expected = model.find({instance, KeyOf(number)});
        REQUIRE(got->has_value() == (expected != model.end()));
        if (*got) REQUIRE(**got == expected->second);
      }
    }
    REQUIRE(store->stats().index.entries >= model.size());
    REQUIRE_OK(store->Close());
  }
}

TEST_CASE("unknown instances and slot sizes that do not rise are refused") {
  SegregatedFixture fixture;
  auto store = fixture.Open();
  CHECK(store->Get(4, AsBytes("key")).status().Is(StatusCode::kInvalidArgument));
  CHECK(store->Delete(200, AsBytes("key")).Is(StatusCode::kInvalidArgument));
  REQUIRE_OK(store->Close());
  for (const std::vector<size_t>& sizes : {std::vector<size_t>{}, {64, 64}, {128, 64}, {64, 100}}) {
    fixture.options.slot_sizes = sizes;
    CHECK(SegregatedStore::Open(fixture.env, fixture.options)
              .status()
              .Is(StatusCode::kInvalidArgument));
  }
}

TEST_CASE("slot sizes that would change the number of an existing instance are refused") {
  SegregatedFixture fixture;
  const Bytes value(40, 1);
  auto store = fixture.Open();
  auto instance = store->Put(AsBytes("key"), value);
  REQUIRE_OK(instance);
  REQUIRE_OK(store->Close());
  const uint64_t before = fixture.env.Calls(SimCall::kMutating);
  for (const std::vector<size_t>& sizes :
       {std::vector<size_t>{64, 256, 2048}, {32, 64, 256}, {32, 64, 128, 256, 2048}}) {
    fixture.options.slot_sizes = sizes;
    const auto opened = SegregatedStore::Open(fixture.env, fixture.options);
    REQUIRE(opened.status().Is(StatusCode::kInvalidArgument));
  }
  CHECK(fixture.env.Calls(SimCall::kMutating) == before);
}

TEST_CASE("larger slots may be added, and an interrupted creation is completed") {
  SegregatedFixture fixture;
  const std::vector<size_t> all = fixture.options.slot_sizes;
  fixture.options.slot_sizes = {32, 64};
  REQUIRE_OK(fixture.Open()->Close());
  fixture.options.slot_sizes = all;
  REQUIRE_OK(fixture.Open()->Close());
  fixture.options.slot_sizes.push_back(3000);
  const uint64_t before = fixture.env.Calls(SimCall::kMutating);
  REQUIRE(SegregatedStore::Open(fixture.env, fixture.options)
              .status()
              .Is(StatusCode::kInvalidArgument));
  CHECK(fixture.env.Calls(SimCall::kMutating) == before);
  for (uint64_t cut = 1;; ++cut) {
    SegregatedFixture other;
    other.env.CutAtCall(cut);
    SegregatedStore::Open(other.env, other.options).status().IgnoreError("the power fails");
    const bool struck = !other.env.PowerIsOn();
    other.env.Reboot({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = cut});
    REQUIRE_OK(other.Open()->Close());
    if (!struck) break;
  }
}

TEST_CASE("instances with an interrupted creation are durable after the next opening") {
  const Bytes value(3000, 7);
  for (uint64_t nth = 1;; ++nth) {
    INFO("call " << nth << " fails");
    SegregatedFixture fixture;
    fixture.options.slot_sizes = {32, 64};
    fixture.env.FailCall({.calls = SimCall::kMutating,
                          .nth = nth,
                          .code = StatusCode::kIoError,
                          .sticky = true,
                          .path_part = "",
                          .bytes_written = 0});
    const bool made = SegregatedStore::Open(fixture.env, fixture.options).ok();
    fixture.env.ClearFaults();
    SegregatedStore::InstanceId instance = 0;
    {
      auto store = fixture.Open();
      auto put = store->Put(AsBytes("key"), value);
      REQUIRE_OK(put);
      instance = *put;
      REQUIRE_OK(store->Put(AsBytes("small"), {}));
      REQUIRE_OK(store->Flush());
    }
    fixture.env.PowerCut({.unsynced = CrashPolicy::Unsynced::kDrop});
    auto store = fixture.Open();
    auto got = store->Get(instance, AsBytes("key"));
    REQUIRE_OK(got);
    REQUIRE(*got == value);
    got = store->Get(1, AsBytes("small"));
    REQUIRE_OK(got);
    REQUIRE(*got == Bytes());
    if (made) break;
  }
}

}  // namespace siltfs::testing
