// The objects of a bucket are compared with the store's metadata.
#include "fs/bucket/verify_bucket.h"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fs/bucket/bucket_owner.h"
#include "tests/fs/bucket/conversion_machine.h"

namespace siltfs::testing {
namespace {

std::string FindingsAfter(Machine& machine, const std::function<void(MemoryObjectStore&)>& damage,
                          bool alone, bool data = false) {
  damage(*machine.objects);
  const auto report = alone ? machine.VerifyAlone(data) : machine.Verify(data);
  REQUIRE_OK(report);
  CHECK(report->errors == report->findings.size());
  return Codes(report->findings);
}

TEST_CASE("verify finds each kind of damage") {
  const bool alone = GENERATE(false, true);
  Machine machine = BucketMachine();
  const std::vector<std::string> keys = machine.KeysOfSegments();
  REQUIRE(keys.size() >= 3);
  const auto stem = [](const std::string& key) { return key.substr(0, key.rfind('-')); };
  const auto content = [&](const std::string& key) {
    const auto text = machine.objects->Content(key);
    REQUIRE_OK(text);
    return *text;
  };
  SECTION("an object that was deleted") {
    CHECK(FindingsAfter(
              machine, [&](MemoryObjectStore& objects) { REQUIRE_OK(objects.Remove(keys[1])); },
              alone) == "missing-object " + stem(keys[1]));
  }
  SECTION("one that was cut off") {
    CHECK(FindingsAfter(
              machine,
              [&](MemoryObjectStore& objects) {
                objects.SetContent(keys[1], content(keys[1]).substr(0, 1000));
              },
              alone) == "wrong-size " + keys[1]);
  }
  SECTION("one with the bytes of another one") {
    const std::string other = content(keys[0]);
    const std::string expected =
        content(keys[1]).size() == other.size() ? "damaged-object " : "wrong-size ";
    CHECK(FindingsAfter(
              machine, [&](MemoryObjectStore& objects) { objects.SetContent(keys[1], other); },
              alone) == expected + keys[1]);
  }
  SECTION("one with a damaged trailer") {
    std::string bytes = content(keys[1]);
    bytes[bytes.size() - 20] ^= 1;
    CHECK(FindingsAfter(
              machine, [&](MemoryObjectStore& objects) { objects.SetContent(keys[1], bytes); },
              alone) == "damaged-object " + keys[1]);
  }
  SECTION("a byte of the data, but only with --data") {
    std::string bytes = content(keys[1]);
    bytes[5000] ^= 1;
    const auto damage = [&](MemoryObjectStore& objects) { objects.SetContent(keys[1], bytes); };
    CHECK(FindingsAfter(machine, damage, alone) == "");
    CHECK(FindingsAfter(machine, damage, alone, /*data=*/true) == "damaged-object " + keys[1]);
  }
  SECTION("foreign objects, also those of another store") {
    CHECK(FindingsAfter(
              machine,
              [&](MemoryObjectStore& objects) {
                for (const char* key : {"b/siltfs", "notes.txt", "segments/x"})
                  REQUIRE_OK(objects.Put(key, AsBytes("x"), PutCondition::Always()));
              },
              alone) ==
          "foreign-object b/siltfs, foreign-object notes.txt, foreign-object segments/x");
  }
  SECTION("another owner, or none") {
    REQUIRE_OK(machine.objects->Remove(kBucketOwnerKey));
    CHECK(FindingsAfter(
              machine, [](MemoryObjectStore&) {}, alone) == "missing-object siltfs");
    StoreUuid other;
    other.bytes.fill(7);
    const std::string text = "siltfs store " + other.ToText() + "\n";
    REQUIRE_OK(machine.objects->Put(kBucketOwnerKey, AsBytes(text), PutCondition::Always()));
    CHECK(FindingsAfter(
              machine, [](MemoryObjectStore&) {}, alone) == "foreign-owner siltfs");
  }
  SECTION("damaged commits") {
    std::string last;
    for (const std::string& key : machine.objects->Keys()) {
      if (key.starts_with("log/")) last = key;
    }
    std::string bytes = content(last);
    bytes[bytes.size() / 2] ^= 1;
    const std::string found = FindingsAfter(
        machine, [&](MemoryObjectStore& objects) { objects.SetContent(last, bytes); }, alone);
    CHECK(found.find("damaged-log") != std::string::npos);
  }
  SECTION("a missing part of a checkpoint") {
    std::string part;
    for (const std::string& key : machine.objects->Keys()) {
      if (key.starts_with("checkpoint/parts/")) part = key;
    }
    const std::string found = FindingsAfter(
        machine, [&](MemoryObjectStore& objects) { REQUIRE_OK(objects.Remove(part)); }, alone);
    CHECK(found.find("missing-object " + part) != std::string::npos);
  }
}

TEST_CASE("objects that are left over are no damage") {
  Machine machine = BucketMachine();
  const std::vector<std::string> keys = machine.KeysOfSegments();
  const auto content = machine.objects->Content(keys[0]);
  REQUIRE_OK(content);
  auto newest = ParseSegmentObjectKey(keys[0]);
  REQUIRE(newest);
  newest->generation = 1;
  const ContentId unknown{4000, 1};
  machine.objects->SetContent(SegmentObjectKey(*newest), *content);
  machine.objects->SetContent(SegmentObjectKey(unknown), *content);
  machine.objects->SetContent("siltfs-probe-1", "probe 1");
  for (const bool alone : {false, true}) {
    const auto report = alone ? machine.VerifyAlone() : machine.Verify();
    REQUIRE_OK(report);
    CHECK(Codes(report->findings) == "");
    CHECK(report->leftover_objects == 3);
  }
}

TEST_CASE("segments and commits that wait for the bucket are no damage") {
  Machine machine = BucketMachine();
  machine.objects->FailCall({.call = ObjectCall::kPut, .nth = 2, .permanent = true});
  machine.Use(
      [&](FileSystem& fs) {
        for (uint64_t i = 0; i < 4; ++i) machine.Write(fs, fmt::format("new{}", i), 200 + i);
        REQUIRE_OK(fs.SyncAll());
      },
      /*ship=*/false);
  machine.objects->ClearFaults();
  const auto report = machine.Verify(/*data=*/true);
  REQUIRE_OK(report);
  CHECK(Codes(report->findings) == "");
  CHECK(report->waiting_segments > 0);
  CHECK(report->commits_behind.value_or(0) > 0);
  const auto alone = machine.VerifyAlone(/*data=*/true);
  REQUIRE_OK(alone);
  CHECK(Codes(alone->findings) == "");
  // A pull takes them from the local disk.
  REQUIRE_OK(machine.Pull());
  machine.RequireFiles();
  machine.RequireSound();
}

TEST_CASE("a bucket without a store cannot be verified alone") {
  MemoryObjectStore objects;
  REQUIRE_CODE(VerifyBucket(objects, {}), kNotFound);
}

}  // namespace
}  // namespace siltfs::testing
