// MemoryObjectStore: the contract of ObjectStore, and faults, latency, capacity and forks.
#include "store/object/memory_object_store.h"

#include <atomic>
#include <thread>

#include "store/env/sim_env.h"
#include "tests/store/object/object_store_contract.h"
#include "tests/support/catch.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

Status PutText(ObjectStore& store, const std::string& key, std::string_view text,
               const PutCondition& condition = {}) {
  const auto put = store.Put(key, AsBytes(text), condition);
  return put.ok() ? Status::Ok() : put.status();
}

Result<std::string> ReadText(ObjectStore& store, const std::string& key, uint64_t offset,
                             size_t size) {
  Bytes bytes(size);
  SILTFS_ASSIGN_OR_RETURN(const size_t got, store.Read(key, {}, offset, bytes));
  return std::string(AsText(ByteView(bytes).first(got)));
}

}  // namespace

TEST_CASE("MemoryObjectStore keeps the contract of object stores") {
  for (const ObjectStoreCheck& check : ObjectStoreContract()) {
    DYNAMIC_SECTION(check.name) {
      MemoryObjectStore store;
      check.run(store);
    }
  }
}

TEST_CASE("MemoryObjectStore: the chosen call fails, and has no effect") {
  MemoryObjectStore store;
  store.FailCall({.call = ObjectCall::kPut, .nth = 2, .code = StatusCode::kAccessDenied});
  REQUIRE_OK(PutText(store, "a", "1"));
  const Status failed = PutText(store, "b", "2");
  REQUIRE_CODE(failed, kAccessDenied);
  CHECK(failed.path() == "b");
  CHECK(store.Keys() == std::vector<std::string>{"a"});
  REQUIRE_OK(PutText(store, "b", "2"));
  CHECK(store.Calls(ObjectCall::kPut) == 3);
  CHECK(store.Counters().failures == 1);
}

TEST_CASE("MemoryObjectStore: faults can be limited to keys, and last until they are cleared") {
  MemoryObjectStore store;
  REQUIRE_OK(PutText(store, "x/a", "1"));
  REQUIRE_OK(PutText(store, "y/a", "1"));
  store.FailCall({.call = ObjectCall::kStat, .permanent = true, .key_part = "x/"});
  REQUIRE_CODE(store.Stat("x/a").status(), kIoError);
  REQUIRE_CODE(store.Stat("x/a").status(), kIoError);
  REQUIRE_OK(store.Stat("y/a"));
  store.ClearFaults();
  REQUIRE_OK(store.Stat("x/a"));
}

TEST_CASE("MemoryObjectStore: a call can take effect although its answer is lost") {
  MemoryObjectStore store;
  store.FailCall({.call = ObjectCall::kPut, .effect = ObjectFault::Effect::kAnswerLost});
  REQUIRE_CODE(PutText(store, "a", "1"), kIoError);
  CHECK(store.Content("a").value() == "1");
  store.FailCall({.call = ObjectCall::kRemove, .effect = ObjectFault::Effect::kAnswerLost});
  REQUIRE_CODE(store.Remove("a"), kIoError);
  CHECK(store.Keys().empty());
}

TEST_CASE("MemoryObjectStore: ranges can be truncated or wrong, whole objects are verified") {
  MemoryObjectStore store;
  REQUIRE_OK(PutText(store, "a", "0123456789"));
  store.FailCall({.call = ObjectCall::kGet, .effect = ObjectFault::Effect::kTruncated});
  CHECK(ReadText(store, "a", 2, 6).value() == "234");
  store.FailCall({.call = ObjectCall::kGet, .effect = ObjectFault::Effect::kWrongBody});
  const std::string wrong = ReadText(store, "a", 2, 6).value();
  CHECK(wrong.size() == 6);
  CHECK(wrong != "234567");
  store.FailCall({.call = ObjectCall::kGet, .effect = ObjectFault::Effect::kWrongBody});
  REQUIRE_CODE(store.Get("a", 100, nullptr).status(), kCorruption);
  CHECK(ReadText(store, "a", 2, 6).value() == "234567");
}

TEST_CASE("MemoryObjectStore: beyond its capacity a Put changes nothing") {
  MemoryObjectStore store({.capacity_bytes = 10, .wait = {}});
  REQUIRE_OK(PutText(store, "a", "12345678"));
  REQUIRE_CODE(PutText(store, "b", "123"), kNoSpace);
  REQUIRE_OK(PutText(store, "a", "1234567890"));  // takes the place of the old content
  REQUIRE_CODE(PutText(store, "a", "1234567890A"), kNoSpace);
  CHECK(store.Content("a").value() == "1234567890");
  REQUIRE_OK(store.Remove("a"));
  REQUIRE_OK(PutText(store, "b", "123"));
}

TEST_CASE("MemoryObjectStore: every call waits for its latency and its bytes") {
  std::vector<std::pair<ObjectCall, int64_t>> waits;
  MemoryObjectStore store({.latency = std::chrono::nanoseconds(100),
                           .nanoseconds_per_byte = 2,
                           .wait = [&](ObjectCall call, const std::string&, auto time) {
                             waits.emplace_back(call, time.count());
                           }});
  REQUIRE_OK(PutText(store, "a", "12345"));
  CHECK(ReadText(store, "a", 0, 3).value() == "123");
  REQUIRE_OK(store.List("", "", 10));
  CHECK(waits == std::vector<std::pair<ObjectCall, int64_t>>{
                     {ObjectCall::kPut, 110}, {ObjectCall::kGet, 106}, {ObjectCall::kList, 100}});
}

TEST_CASE("MemoryObjectStore: a fork has the objects, and changes apart") {
  MemoryObjectStore store;
  REQUIRE_OK(PutText(store, "a", "1"));
  store.FailCall({.call = ObjectCall::kStat, .permanent = true});
  const auto fork = store.Fork();
  REQUIRE_OK(fork->Stat("a"));
  REQUIRE_OK(PutText(*fork, "a", "22"));
  REQUIRE_OK(fork->Remove("b"));
  CHECK(store.Content("a").value() == "1");
  CHECK(fork->Content("a").value() == "22");
}

TEST_CASE("MemoryObjectStore: of conditional Puts at the same time, one succeeds") {
  MemoryObjectStore store;
  std::string version = store.Put("a", AsBytes("0"), PutCondition::Always()).value();
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> winners = 0;
    std::atomic<int> losers = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const std::string text = std::to_string(round * 4 + i + 1);
        const Status put = PutText(store, "a", text, PutCondition::IfVersion(version));
        (put.ok() ? winners : losers) += put.ok() || put.Is(StatusCode::kStale) ? 1 : 100;
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(winners == 1);
    REQUIRE(losers == 3);
    version = store.Stat("a").value().version;
  }
}

TEST_CASE("MemoryObjectStore: after Interrupt every call fails") {
  MemoryObjectStore store;
  REQUIRE_OK(PutText(store, "a", "1"));
  store.Interrupt();
  REQUIRE_CODE(PutText(store, "b", "1"), kInterrupted);
  REQUIRE_CODE(store.Get("a", 10, nullptr).status(), kInterrupted);
  REQUIRE_CODE(store.Remove("a"), kInterrupted);
  REQUIRE_CODE(store.List("", "", 1).status(), kInterrupted);
}

TEST_CASE("MemoryObjectStore: keys that no service takes as they are, are refused") {
  MemoryObjectStore store;
  REQUIRE_CODE(PutText(store, "a b", "1"), kInvalidArgument);
  REQUIRE_CODE(store.Stat("/a").status(), kInvalidArgument);
}
