// A store moves to a bucket and back, with faults and power cuts at each step.
#include "fs/bucket/store_conversion.h"

#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "fs/bucket/bucket_owner.h"
#include "fs/shipping/bucket_log.h"
#include "store/segment/segment_files.h"
#include "tests/fs/bucket/conversion_machine.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

TEST_CASE("a store moves to a bucket and back", "[race]") {
  Machine machine = LocalMachine();
  const auto before = ListSegments(*machine.env, kStore);
  REQUIRE_OK(before);
  const auto pushed = machine.Push();
  REQUIRE_OK(pushed);
  CHECK(pushed->converted);
  CHECK(pushed->segments >= 4);
  CHECK(pushed->moved_segments == pushed->segments);
  CHECK(machine.InBucket());
  CHECK(machine.KeysOfSegments().size() == pushed->segments);
  // Only open segments are left.
  const auto after = ListSegments(*machine.env, kStore);
  REQUIRE_OK(after);
  CHECK(after->ids.size() == before->ids.size() - pushed->segments);
  const auto again = machine.Push();
  REQUIRE_OK(again);
  CHECK_FALSE(again->converted);

  machine.RequireFiles();
  machine.LoseCache();
  machine.Use([&](FileSystem& fs) { machine.Write(fs, "late", 99); });
  machine.RequireFiles();
  machine.RequireSound();
  const auto verified = machine.Verify(/*data=*/true);
  REQUIRE_OK(verified);
  CHECK(Codes(verified->findings) == "");
  CHECK(verified->segments > pushed->segments);
  CHECK(verified->data_bytes == verified->segment_bytes);
  CHECK(verified->commits_behind == 0);
  const auto alone = machine.VerifyAlone(/*data=*/true);
  REQUIRE_OK(alone);
  CHECK(Codes(alone->findings) == "");

  const std::vector<std::string> keys = machine.objects->Keys();
  const auto pulled = machine.Pull();
  REQUIRE_OK(pulled);
  CHECK(pulled->converted);
  CHECK(pulled->moved_segments == pulled->segments);
  CHECK_FALSE(machine.InBucket());
  CHECK(machine.objects->Keys() == keys);
  for (const std::string& path :
       {BucketConfigPath(kStore), BucketCachePath(kStore), kStore + "/bucket.pull"})
    CHECK_FALSE(machine.env->GetFileInfo(path).ok());
  machine.RequireFiles();
  machine.RequireSound();

  // The same bucket again, after changes without it.
  machine.Use([&](FileSystem& fs) { machine.Write(fs, "file1", 77); });
  REQUIRE_OK(machine.Push());
  machine.RequireFiles();
  machine.RequireSound();
  const auto last = machine.Verify();
  REQUIRE_OK(last);
  CHECK(Codes(last->findings) == "");
}

// Calls `convert` until no armed fault or cut hits it. After each failure the store is whole.
void SurviveEachFailure(const Machine& start, const std::function<bool(Machine&, uint64_t)>& arm,
                        const std::function<Result<Conversion>(Machine&)>& convert,
                        const std::function<void(Machine&)>& recover) {
  const uint64_t step = TestScale() == kWholeScale ? 1 : 7;
  const bool was_in_bucket = start.Fork().InBucket();
  bool between = false;
  for (uint64_t nth = 1;; nth += step) {
    Machine machine = start.Fork();
    const bool hits = arm(machine, nth);
    const auto converted = convert(machine);
    recover(machine);
    INFO("call " << nth << ": " << converted.status().ToString());
    if (!hits && converted.ok()) break;
    REQUIRE(nth < 5000);
    // After every second failure, the store is used before the next attempt.
    if (std::exchange(between, !between)) {
      machine.RequireFiles();
      machine.Use([&](FileSystem& fs) { machine.Write(fs, "file2", nth + 100); });
    }
    const auto again = convert(machine);
    REQUIRE_OK(again);
    REQUIRE(machine.InBucket() != was_in_bucket);
    machine.RequireFiles();
    machine.RequireSound();
  }
}

bool ArmObjectCall(Machine& machine, uint64_t nth, ObjectFault::Effect effect) {
  constexpr ObjectCall kCalls[] = {ObjectCall::kPut, ObjectCall::kGet, ObjectCall::kStat,
                                   ObjectCall::kRemove, ObjectCall::kList};
  const ObjectCall call = kCalls[nth % std::size(kCalls)];
  machine.objects->FailCall(
      {.call = call, .nth = nth / std::size(kCalls) + 1, .effect = effect, .permanent = true});
  return nth < 60;
}

void HealBucket(Machine& machine) { machine.objects->ClearFaults(); }

TEST_CASE("each request of a push may fail, with or without its effect") {
  const auto effect = GENERATE(ObjectFault::Effect::kNone, ObjectFault::Effect::kAnswerLost);
  SurviveEachFailure(
      LocalMachine(),
      [&](Machine& machine, uint64_t nth) { return ArmObjectCall(machine, nth, effect); },
      [](Machine& machine) { return machine.Push(); }, HealBucket);
}

TEST_CASE("each request of a pull may fail") {
  const auto effect = GENERATE(ObjectFault::Effect::kNone, ObjectFault::Effect::kTruncated,
                               ObjectFault::Effect::kWrongBody);
  SurviveEachFailure(
      BucketMachine(),
      [&](Machine& machine, uint64_t nth) { return ArmObjectCall(machine, nth, effect); },
      [](Machine& machine) { return machine.Pull(); }, HealBucket);
}

TEST_CASE("a power cut at any call of a conversion leaves a whole store") {
  const bool push = GENERATE(true, false);
  CrashPolicy policy;
  policy.unsynced = GENERATE(CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kPrefix);
  policy.names_in_any_order = true;
  SurviveEachFailure(
      push ? LocalMachine() : BucketMachine(),
      [&](Machine& machine, uint64_t nth) {
        policy.seed = nth;
        machine.env->CutAtCall(nth);
        return false;
      },
      [&](Machine& machine) { return push ? machine.Push() : machine.Pull(); },
      [&](Machine& machine) { machine.env->Reboot(policy); });
}

TEST_CASE("an interrupted conversion goes on where it was", "[race]") {
  Machine machine = LocalMachine();
  const auto stop_after = [&](int segments) {
    ConversionOptions options = machine.Options();
    auto left = std::make_shared<int>(segments);
    options.on_progress = [&machine, left](uint64_t, uint64_t) {
      if (--*left < 0) machine.objects->FailCall({.call = ObjectCall::kPut, .permanent = true});
      if (*left < 0) machine.objects->FailCall({.call = ObjectCall::kGet, .permanent = true});
    };
    return options;
  };
  REQUIRE_CODE(ConvertToBucket(*machine.env, *machine.objects, kConfig, stop_after(2)), kIoError);
  CHECK_FALSE(machine.InBucket());
  machine.objects->ClearFaults();
  const size_t uploaded = machine.KeysOfSegments().size();
  CHECK(uploaded == 2);
  const auto pushed = machine.Push();
  REQUIRE_OK(pushed);
  CHECK(pushed->moved_segments == pushed->segments - uploaded);
  machine.LoseCache();

  REQUIRE_CODE(ConvertToDirectory(*machine.env, *machine.objects, stop_after(3)), kIoError);
  CHECK(machine.InBucket());
  machine.objects->ClearFaults();
  // A mount neither uses nor removes what was downloaded.
  machine.RequireFiles();
  const auto pulled = machine.Pull();
  REQUIRE_OK(pulled);
  CHECK(pulled->moved_segments < pulled->segments);
  machine.RequireFiles();
  machine.RequireSound();
}

TEST_CASE("a push compares what it has uploaded with the list of the bucket") {
  Machine machine = LocalMachine();
  ConversionOptions options = machine.Options();
  // An object that the bucket has confirmed disappears.
  options.on_progress = [&machine](uint64_t done, uint64_t total) {
    if (done == total) REQUIRE_OK(machine.objects->Remove(machine.KeysOfSegments().front()));
  };
  const auto pushed = ConvertToBucket(*machine.env, *machine.objects, kConfig, options);
  REQUIRE_CODE(pushed, kIoError);
  CHECK(pushed.status().ToString().find("does not list the segment") != std::string::npos);
  CHECK_FALSE(machine.InBucket());
  REQUIRE_OK(machine.Push());
  machine.RequireFiles();
  machine.RequireSound();
}

TEST_CASE("a push ends without effect if another machine uses the bucket meanwhile") {
  Machine machine = LocalMachine();
  ConversionOptions options = machine.Options();
  options.on_progress = [&machine](uint64_t done, uint64_t total) {
    if (done != total) return;
    WriterIdentity other{.host = "other"};
    other.id[0] = 0xff;
    BucketLog log(*machine.objects, other);
    REQUIRE_OK(log.Begin([](const LogEnd&) { return Status::Ok(); }, 1, 2));
  };
  REQUIRE_CODE(ConvertToBucket(*machine.env, *machine.objects, kConfig, options), kStale);
  CHECK_FALSE(machine.InBucket());
  machine.RequireFiles();
  machine.RequireSound();
}

TEST_CASE("a signal ends a conversion", "[race]") {
  Machine machine = LocalMachine();
  ConversionOptions options = machine.Options();
  options.interrupted = [] { return true; };
  // The conversion goes on when the signal has ended the requests.
  options.on_progress = [&machine](uint64_t, uint64_t) {
    Status status;
    do {
      status = machine.objects->Get("x", 1, nullptr).status();
    } while (!status.Is(StatusCode::kInterrupted));
  };
  REQUIRE_CODE(ConvertToBucket(*machine.env, *machine.objects, kConfig, options), kInterrupted);
  CHECK_FALSE(machine.InBucket());
  machine.objects = machine.objects->Fork();
  REQUIRE_OK(machine.Push());
  machine.RequireFiles();
}

TEST_CASE("conversions refuse what they cannot do, and change nothing") {
  SECTION("a bucket of another store") {
    Machine machine = LocalMachine();
    StoreUuid other;
    other.bytes.fill(7);
    REQUIRE_OK(ClaimBucket(*machine.objects, other));
    REQUIRE_CODE(machine.Push(), kAlreadyExists);
    CHECK_FALSE(machine.env->GetFileInfo(BucketConfigPath(kStore)).ok());
    machine.RequireFiles();
  }
  SECTION("another bucket than the one that was begun") {
    Machine machine = LocalMachine();
    machine.objects->FailCall(
        {.call = ObjectCall::kPut, .permanent = true, .key_part = "segments/"});
    REQUIRE_CODE(machine.Push(), kIoError);
    machine.objects->ClearFaults();
    REQUIRE_CODE(ConvertToBucket(*machine.env, *machine.objects, {.address = "s3://bucket/b"},
                                 machine.Options()),
                 kInvalidArgument);
    REQUIRE_OK(ForgetBucket(*machine.env, kStore));
    MemoryObjectStore second;
    REQUIRE_OK(
        ConvertToBucket(*machine.env, second, {.address = "s3://bucket/b"}, machine.Options()));
  }
  SECTION("a segment that is missing") {
    Machine machine = LocalMachine();
    const auto segments = ListSegments(*machine.env, kStore);
    REQUIRE_OK(segments);
    REQUIRE_OK(RemoveSegment(*machine.env, kStore, segments->ids.front()));
    REQUIRE_CODE(machine.Push(), kCorruption);
    CHECK(machine.objects->Keys().empty());
  }
  SECTION("a store that was not closed") {
    Machine machine = LocalMachine();
    {
      FileSystemOptions options;
      options.store = kStore;
      auto opened = FileSystem::Open(*machine.env, options);
      REQUIRE_OK(opened);
      machine.Write(**opened, "open", 5);
      REQUIRE_OK((*opened)->SyncAll());
      REQUIRE_CODE(machine.Push(), kInUse);
    }
    REQUIRE_CODE(machine.Push(), kInvalidArgument);
  }
  SECTION("a disk without room") {
    Machine machine = BucketMachine();
    machine.LoseCache();
    machine.env->SetCapacity(17u << 20);
    const auto pulled = machine.Pull();
    REQUIRE_CODE(pulled, kNoSpace);
    CHECK(machine.InBucket());
    machine.env->SetCapacity(SimEnv::kUnlimited);
    machine.RequireFiles();
  }
  SECTION("a bucket that another machine has taken over") {
    Machine machine = BucketMachine();
    BucketLog other(*machine.objects, {.id = {9}, .host = "elsewhere"});
    REQUIRE_OK(other.Begin([](const LogEnd&) { return Status::Ok(); }, 1, 2));
    const auto pulled = machine.Pull();
    REQUIRE_CODE(pulled, kStale);
    CHECK(pulled.status().ToString().find("elsewhere") != std::string::npos);
    CHECK(machine.InBucket());
  }
  SECTION("a push to a bucket that another machine has taken over since the pull") {
    Machine machine = BucketMachine();
    REQUIRE_OK(machine.Pull());
    BucketLog other(*machine.objects, {.id = {9}, .host = "elsewhere"});
    REQUIRE_OK(other.Begin([](const LogEnd&) { return Status::Ok(); }, 1, 2));
    REQUIRE_CODE(machine.Push(), kStale);
    CHECK_FALSE(machine.InBucket());
    machine.RequireFiles();
  }
}

TEST_CASE("a copy of a store cannot join the push of the other copy") {
  Machine machine = LocalMachine();
  Machine copy = machine.Fork();
  machine.objects->FailCall(
      {.call = ObjectCall::kPut, .nth = 3, .permanent = true, .key_part = "segments/"});
  REQUIRE_CODE(machine.Push(), kIoError);
  copy.objects = machine.objects->Fork();
  // Otherwise the random number would be the same.
  Bytes drawn(5);
  REQUIRE_OK(copy.env->FillRandom(drawn));
  REQUIRE_CODE(copy.Push(), kStale);
  CHECK_FALSE(copy.InBucket());
}

}  // namespace
}  // namespace siltfs::testing
