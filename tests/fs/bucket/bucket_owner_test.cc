// Claims of a prefix that are killed, lose answers, or would nest two stores.
#include "fs/bucket/bucket_owner.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/env/sim_env.h"
#include "store/object/memory_object_store.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

StoreUuid UuidOf(uint8_t byte) {
  StoreUuid uuid;
  uuid.bytes.fill(byte);
  return uuid;
}

TEST_CASE("a claim that is cut off at any call leaves at most a probe, or its owner") {
  for (const auto effect : {ObjectFault::Effect::kNone, ObjectFault::Effect::kAnswerLost}) {
    for (uint64_t nth = 1; nth <= 10; ++nth) {
      INFO("PUT " << nth);
      MemoryObjectStore objects;
      objects.FailCall({.call = ObjectCall::kPut, .nth = nth, .effect = effect});
      const Status claimed = ClaimBucket(objects, UuidOf(1));
      const auto owner = ReadBucketOwner(objects);
      if (claimed.ok()) {
        REQUIRE_OK(owner);
        CHECK(*owner == UuidOf(1));
        CHECK(objects.Keys() == std::vector<std::string>{kBucketOwnerKey});
      } else {
        REQUIRE_CODE(owner, kNotFound);
        objects.ClearFaults();
        REQUIRE_OK(ClaimBucket(objects, UuidOf(2)));
        CHECK(objects.Keys() == std::vector<std::string>{kBucketOwnerKey});
      }
    }
  }
}

TEST_CASE("probes of killed claims are removed by the next one") {
  MemoryObjectStore objects;
  REQUIRE_OK(objects.Put("siltfs-probe", AsBytes("probe 1"), PutCondition::Always()));
  REQUIRE_OK(objects.Put("siltfs-probe-x", AsBytes("probe 2"), PutCondition::Always()));
  REQUIRE_OK(ClaimBucket(objects, UuidOf(1)));
  CHECK(objects.Keys() == std::vector<std::string>{kBucketOwnerKey});
}

TEST_CASE("a prefix below that of another store is refused") {
  std::map<std::string, std::unique_ptr<MemoryObjectStore>> places;
  const auto open = [&](const std::string& address) -> Result<std::unique_ptr<ObjectStore>> {
    auto& place = places[address];
    if (!place) place = std::make_unique<MemoryObjectStore>();
    return std::unique_ptr<ObjectStore>(place->Fork());
  };
  REQUIRE_OK(CheckNoOuterStore("s3://bucket/x/y/z", open));
  CHECK(places.size() == 3);
  REQUIRE_OK(ClaimBucket(*places["s3://bucket/x"], UuidOf(1)));
  const Status refused = CheckNoOuterStore("s3://bucket/x/y/z", open);
  REQUIRE_CODE(refused, kAlreadyExists);
  CHECK(refused.ToString().find("s3://bucket/x with everything below it") != std::string::npos);
  // Its own prefix, and one beside it, do not count.
  REQUIRE_OK(CheckNoOuterStore("s3://bucket/x", open));
  REQUIRE_OK(CheckNoOuterStore("s3://bucket/xy/z", open));
  REQUIRE_OK(ClaimBucket(*places["s3://bucket"], UuidOf(2)));
  REQUIRE_CODE(CheckNoOuterStore("s3://bucket/x", open), kAlreadyExists);
}

TEST_CASE("an outer prefix that may not be read is passed over, a silent bucket is not") {
  const auto with = [](StatusCode code) {
    return [code](const std::string&) -> Result<std::unique_ptr<ObjectStore>> {
      auto place = std::make_unique<MemoryObjectStore>();
      place->FailCall({.call = ObjectCall::kGet, .code = code, .permanent = true});
      return std::unique_ptr<ObjectStore>(std::move(place));
    };
  };
  REQUIRE_OK(CheckNoOuterStore("s3://bucket/x", with(StatusCode::kAccessDenied)));
  REQUIRE_CODE(CheckNoOuterStore("s3://bucket/x", with(StatusCode::kIoError)), kIoError);
}

TEST_CASE("the id of a writer is drawn once for each copy of a store") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/store"));
  REQUIRE_OK(env.SyncDirectory("/"));
  const auto id = BucketWriterOf(env, "/store");
  REQUIRE_OK(id);
  env.PowerCut();
  const auto again = BucketWriterOf(env, "/store");
  REQUIRE_OK(again);
  CHECK(*id == *again);
}

}  // namespace
}  // namespace siltfs
