// Objects that are read before they are needed: each Get has the answer that the ObjectStore gives.
#include "fs/shipping/objects_ahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "store/base/random.h"
#include "store/base/thread_annotations.h"
#include "store/object/memory_object_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kLimit = 64u << 20;

std::string Key(size_t number) { return fmt::format("log/{:06}", number); }

std::vector<ObjectInfo> Fill(ObjectStore& objects, size_t count, size_t most_bytes) {
  std::vector<ObjectInfo> list;
  Random random(count);
  for (size_t i = 0; i < count; ++i) {
    const Bytes bytes = Bytes(random.Below(most_bytes), static_cast<uint8_t>(i));
    REQUIRE_OK(objects.Put(Key(i), bytes, PutCondition::Always()).status());
    list.push_back({Key(i), bytes.size(), ""});
  }
  return list;
}

TEST_CASE("objects ahead: each call has the answer of the bucket") {
  Random random(7);
  for (uint64_t round = 0; round < 50; ++round) {
    INFO("round " << round);
    MemoryObjectStore objects;
    const size_t count = random.Below(30);
    auto list = Fill(objects, count, 5000);
    // The list need not be right.
    for (ObjectInfo& object : list)
      if (random.OneIn(8)) object.size = random.Below(5000);
    // Removed after they were listed.
    for (size_t i = 0; i < count; ++i)
      if (random.OneIn(8)) REQUIRE_OK(objects.Remove(Key(i)));
    REQUIRE_OK(objects.Put("log/x", Bytes(5), PutCondition::Always()).status());
    if (random.OneIn(2)) {
      objects.FailCall({.code = StatusCode::kAccessDenied,
                        .permanent = true,
                        .key_part = Key(random.Below(count + 1))});
    }
    const uint64_t limit = random.OneIn(4) ? 2500 : kLimit;
    ObjectsAhead ahead(objects, list, limit);
    const size_t end = random.Below(count + 5);
    for (size_t i = 0; i < end; ++i) {
      if (random.OneIn(4)) continue;  // left out
      INFO("object " << i);
      const auto expected = objects.Get(Key(i), limit, nullptr);
      const auto got = ahead.Get(Key(i));
      REQUIRE(got.status().code() == expected.status().code());
      if (got.ok()) REQUIRE((*got == *expected));
      if (random.OneIn(10)) REQUIRE_OK(ahead.Get("log/x").status());
      if (i > 0 && random.OneIn(10)) {
        const auto before = ahead.Get(Key(i - 1));
        REQUIRE(before.status().code() == objects.Get(Key(i - 1), limit, nullptr).status().code());
      }
    }
  }
}

TEST_CASE("objects ahead: several requests run at a time") {
  Mutex mutex;
  CondVar changed;
  size_t running = 0;
  size_t most = 0;
  MemoryObjectOptions options;
  // A request waits until as many run as may.
  options.wait = [&](ObjectCall call, const std::string&, std::chrono::nanoseconds) {
    if (call != ObjectCall::kGet) return;
    MutexLock lock(mutex);
    most = std::max(most, ++running);
    changed.NotifyAll();
    // The number of waits is bounded, so that fewer requests fail the test.
    for (int i = 0; i < 600 && most < ObjectsAhead::kMostRequests; ++i)
      changed.WaitFor(mutex, std::chrono::milliseconds(100));
    --running;
  };
  MemoryObjectStore objects(options);
  const auto list = Fill(objects, 20, 100);
  ObjectsAhead ahead(objects, list, kLimit);
  for (size_t i = 0; i < list.size(); ++i) REQUIRE_OK(ahead.Get(Key(i)).status());
  MutexLock lock(mutex);
  CHECK(most == ObjectsAhead::kMostRequests);
}

TEST_CASE("objects ahead: no more bytes are held than may be, except for a single object") {
  constexpr uint64_t kObjectBytes = 3u << 20;
  constexpr uint64_t kLargeBytes = 2 * ObjectsAhead::kMostBytesAhead;
  // The sizes are those of the list.
  const auto size = [](const std::string& key) {
    return key == Key(3) ? kLargeBytes : kObjectBytes;
  };
  Mutex mutex;
  uint64_t held = 0;  // of objects whose request has begun, and that were not asked for
  uint64_t most = 0;
  uint64_t beside_large = 0;
  MemoryObjectOptions options;
  options.wait = [&](ObjectCall call, const std::string& key, std::chrono::nanoseconds) {
    if (call != ObjectCall::kGet) return;
    MutexLock lock(mutex);
    if (size(key) == kLargeBytes) beside_large = held;
    held += size(key);
    if (held < kLargeBytes) most = std::max(most, held);
  };
  MemoryObjectStore objects(options);
  std::vector<ObjectInfo> list;
  for (size_t i = 0; i < 400; ++i) {
    list.push_back({Key(i), size(Key(i)), ""});
    REQUIRE_OK(objects.Put(Key(i), Bytes(1), PutCondition::Always()).status());
  }
  ObjectsAhead ahead(objects, list, kLimit);
  for (size_t i = 0; i < list.size(); ++i) {
    REQUIRE_OK(ahead.Get(Key(i)).status());
    MutexLock lock(mutex);
    held -= size(Key(i));
  }
  MutexLock lock(mutex);
  // A request may begin between the end of Get and the subtraction here.
  CHECK(most <= ObjectsAhead::kMostBytesAhead + kObjectBytes);
  CHECK(beside_large <= kObjectBytes);
}

// Otherwise the objects that are held could have more bytes than may be.
TEST_CASE("objects ahead: an object that is larger than its entry in the list is read alone") {
  MemoryObjectStore objects;
  std::vector<ObjectInfo> list;
  for (size_t i = 0; i < 10; ++i) {
    list.push_back({Key(i), 10, ""});
    REQUIRE_OK(objects.Put(Key(i), Bytes(i == 5 ? 11 : 10), PutCondition::Always()).status());
  }
  {
    ObjectsAhead ahead(objects, list, kLimit);
    for (size_t i = 0; i < list.size(); ++i) {
      const auto object = ahead.Get(Key(i));
      REQUIRE_OK(object);
      CHECK(object->size() == (i == 5 ? 11 : 10));
    }
  }
  CHECK(objects.Calls(ObjectCall::kGet) == list.size() + 1);
}

TEST_CASE("objects ahead: after a failure no more requests begin") {
  MemoryObjectStore objects;
  const auto list = Fill(objects, 100, 100);
  objects.FailCall({.nth = 20, .permanent = true});
  ObjectsAhead ahead(objects, list, kLimit);
  size_t failures = 0;
  for (const ObjectInfo& object : list) {
    const auto got = ahead.Get(object.key);
    if (got.ok()) continue;
    CHECK(got.status().Is(StatusCode::kIoError));
    ++failures;
    break;
  }
  CHECK(failures == 1);
  // Those that ran beside the failed one, at most.
  CHECK(objects.Calls(ObjectCall::kGet) <= 20 + ObjectsAhead::kMostRequests);
  objects.ClearFaults();
  for (size_t i = 60; i < 70; ++i) REQUIRE_OK(ahead.Get(Key(i)).status());
}

TEST_CASE("objects ahead: objects that were not asked for are dropped at the end") {
  MemoryObjectStore objects;
  const auto list = Fill(objects, 10, 100);
  objects.FailCall({.nth = 2, .permanent = true});
  const ObjectsAhead unused(objects, list, kLimit);
  ObjectsAhead used(objects, list, kLimit);
  used.Get(Key(4)).status().IgnoreError("the others are of interest");
}

}  // namespace
}  // namespace siltfs::testing
