// What is remembered of the calls to a bucket: outages, and the last failure.
#include "store/object/monitored_object_store.h"

#include <memory>
#include <utility>

#include "store/env/sim_env.h"
#include "store/object/memory_object_store.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

struct Bench {
  SimEnv env;
  MemoryObjectStore* base = nullptr;
  std::unique_ptr<MonitoredObjectStore> objects;

  Bench() {
    auto made = std::make_unique<MemoryObjectStore>();
    base = made.get();
    objects = std::make_unique<MonitoredObjectStore>(env, std::move(made));
  }
  Status Put(const std::string& key) {
    return objects->Put(key, AsBytes("x"), PutCondition::Always()).status();
  }
};

TEST_CASE("a call without an answer begins an outage, and an answer ends it") {
  Bench bench;
  REQUIRE_OK(bench.Put("a"));
  CHECK(bench.objects->Health().is_out == false);
  CHECK(bench.objects->Health().last_error.empty());
  for (const StatusCode code : {StatusCode::kIoError, StatusCode::kAccessDenied}) {
    bench.base->FailCall({.call = ObjectCall::kPut, .code = code});
    CHECK(bench.Put("a").Is(code));
    const ObjectStoreHealth out = bench.objects->Health();
    CHECK(out.is_out);
    CHECK(out.outage.count() > 0);
    CHECK(out.present_outage <= out.outage);
    CHECK(out.last_error.find('a') != std::string::npos);
    // A second failure belongs to the same outage.
    bench.base->FailCall({.call = ObjectCall::kGet, .code = code});
    CHECK(bench.objects->Get("a", 10, nullptr).status().Is(code));
    CHECK(bench.objects->Health().outage >= out.outage);
    // The refusal is an answer.
    REQUIRE_CODE(bench.objects->Stat("b"), kNotFound);
    const ObjectStoreHealth after = bench.objects->Health();
    CHECK(after.is_out == false);
    CHECK(after.outage >= out.outage);
    CHECK(after.outage == bench.objects->Health().outage);
    CHECK_FALSE(after.last_error.empty());
  }
}

TEST_CASE("a full bucket is a failure and no outage, and an interrupted call is neither") {
  Bench bench;
  bench.base->SetCapacity(0);
  REQUIRE_CODE(bench.Put("a"), kNoSpace);
  CHECK(bench.objects->Health().is_out == false);
  const std::string error = bench.objects->Health().last_error;
  CHECK_FALSE(error.empty());
  bench.objects->Interrupt();
  REQUIRE_CODE(bench.Put("b"), kInterrupted);
  CHECK(bench.objects->Health().last_error == error);
  CHECK(bench.objects->Health().outage.count() == 0);
}

TEST_CASE("each kind of call is passed on, and its failure is noted") {
  Bench bench;
  REQUIRE_OK(bench.Put("a"));
  Bytes out(1);
  auto got = bench.objects->Get("a", 10, nullptr);
  REQUIRE_OK(got);
  CHECK(AsText(*got) == "x");
  REQUIRE_OK(bench.objects->Read("a", "", 0, out));
  REQUIRE_OK(bench.objects->Stat("a"));
  REQUIRE_OK(bench.objects->List("", "", 10));
  REQUIRE_OK(bench.objects->Remove("a"));
  CHECK(bench.base->Keys().empty());
  CHECK(bench.objects->Counters().puts == 1);
  for (const ObjectCall call : {ObjectCall::kPut, ObjectCall::kGet, ObjectCall::kStat,
                                ObjectCall::kRemove, ObjectCall::kList}) {
    REQUIRE_OK(bench.Put("a"));
    REQUIRE(bench.objects->Health().is_out == false);
    bench.base->FailCall({.call = call, .permanent = true});
    CHECK(bench.Put("a").Is(StatusCode::kIoError) == (call == ObjectCall::kPut));
    const bool read = bench.objects->Read("a", "", 0, out).ok();
    CHECK(read == (call != ObjectCall::kGet));
    const bool found = bench.objects->Stat("a").ok();
    CHECK(found == (call != ObjectCall::kStat));
    const bool listed = bench.objects->List("", "", 10).ok();
    CHECK(listed == (call != ObjectCall::kList));
    const bool removed = bench.objects->Remove("b").ok();
    CHECK(removed == (call != ObjectCall::kRemove));
    CHECK(bench.objects->Health().outage.count() > 0);
    bench.base->ClearFaults();
  }
}

}  // namespace
}  // namespace siltfs
