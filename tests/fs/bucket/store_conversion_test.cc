// A store moves to a bucket and back, with faults and power cuts at each step, and the bucket is
// compared with the store's metadata.
#include "fs/bucket/store_conversion.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/bucket/bucket_owner.h"
#include "fs/bucket/verify_bucket.h"
#include "fs/check/check_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/snapshots.h"
#include "fs/open/make_store.h"
#include "fs/open/store_layout.h"
#include "fs/shipping/bucket_log.h"
#include "fs/shipping/bucket_session.h"
#include "store/bucket/bucket_names.h"
#include "store/env/process.h"
#include "store/env/sim_env.h"
#include "store/object/memory_object_store.h"
#include "store/segment/segment_files.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

const std::string kStore = "/store";
const BucketConfig kConfig{.address = "s3://bucket/a"};

// A machine with a store, and the objects of its bucket.
struct Machine {
  std::unique_ptr<SimEnv> env = std::make_unique<SimEnv>();
  std::unique_ptr<MemoryObjectStore> objects = std::make_unique<MemoryObjectStore>();
  std::map<std::string, Bytes> files;

  Machine Fork() const {
    Machine fork;
    fork.env = env->Fork();
    fork.objects = objects->Fork();
    fork.files = files;
    return fork;
  }

  bool InBucket() {
    const auto state = ReadSuperblock(*env, kStore);
    REQUIRE_OK(state);
    return state->superblock.in_bucket();
  }
  StoreUuid Uuid() {
    const auto state = ReadSuperblock(*env, kStore);
    REQUIRE_OK(state);
    return state->superblock.uuid;
  }

  void Make() {
    REQUIRE_OK(MakeStore(*env, {.path = kStore, .index_memory = 1u << 20}));
    auto state = ReadSuperblock(*env, kStore);
    REQUIRE_OK(state);
    state->superblock.segment_bytes = 64u << 10;
    REQUIRE_OK(WriteSuperblock(*env, kStore, state->superblock));
    Use([this](FileSystem& fs) {
      for (uint64_t i = 1; i <= 6; ++i) Write(fs, fmt::format("file{}", i), i);
      REQUIRE_OK(fs.SyncAll());
      REQUIRE_OK(fs.snapshots().Create("first"));
      Write(fs, "file5", 50);
    });
  }
  void Write(FileSystem& fs, const std::string& name, uint64_t seed) {
    const Bytes bytes = RandomBytes(seed, 160'000 + seed * 100);
    WriteFile(fs, name, bytes);
    files[name] = bytes;
  }

  // Opens the store as a mount does, and closes it.
  void Use(const std::function<void(FileSystem&)>& use, bool ship = true) {
    FileSystemOptions options;
    options.store = kStore;
    options.commit_interval = std::chrono::hours(1);
    options.worker_threads = 1;
    options.readahead_threads = 0;
    std::unique_ptr<BucketSession> session;
    if (InBucket()) {
      BucketSessionOptions shipping;
      shipping.store = kStore;
      shipping.bucket.directory = BucketCachePath(kStore);
      shipping.bucket.upload_threads = 0;
      shipping.bucket.fetch_threads = 0;
      shipping.shipping.background = false;
      shipping.shipping.close_timeout = std::chrono::nanoseconds(0);
      const auto id = BucketWriterOf(*env, kStore);
      REQUIRE_OK(id);
      shipping.shipping.writer = {*id, HostName()};
      session = std::make_unique<BucketSession>(*env, *objects, shipping);
      options.segments = &session->segments();
      options.metadata_layer = [&session](std::unique_ptr<KvStore> kv) {
        return session->Layer(std::move(kv));
      };
    }
    auto opened = FileSystem::Open(*env, std::move(options));
    REQUIRE_OK(opened);
    use(**opened);
    if (session && ship) REQUIRE_OK(session->shipper().Ship());
    REQUIRE_OK((*opened)->Close());
    if (session && ship) REQUIRE_OK(session->bucket()->RunBackground());
  }

  void RequireFiles() {
    Use([this](FileSystem& fs) {
      for (const auto& [name, bytes] : files) {
        INFO(name);
        const auto read = ReadFile(fs, RequireInode(fs, name));
        REQUIRE_OK(read);
        REQUIRE(*read == bytes);
      }
      REQUIRE_OK(fs.snapshots().Find("first"));
    });
  }
  // fsck with all data.
  void RequireSound() {
    CheckOptions options;
    options.store = kStore;
    options.data = true;
    std::string findings;
    options.on_finding = [&](const Finding& finding) {
      findings += finding.code + ": " + finding.message + "\n";
    };
    std::unique_ptr<BucketSegmentStore> segments;
    if (InBucket()) {
      BucketOptions bucket;
      bucket.directory = BucketCachePath(kStore);
      bucket.upload_threads = 0;
      bucket.fetch_threads = 0;
      segments = std::make_unique<BucketSegmentStore>(*env, *objects, bucket);
      options.segments = segments.get();
    }
    const auto report = CheckStore(*env, options);
    REQUIRE_OK(report);
    INFO(findings);
    REQUIRE(findings.empty());
  }

  ConversionOptions Options() const { return {.store = kStore, .threads = 1}; }
  Result<Conversion> Push() { return ConvertToBucket(*env, *objects, kConfig, Options()); }
  Result<Conversion> Pull() { return ConvertToDirectory(*env, *objects, Options()); }

  void LoseCache() {
    const std::string files_of_cache = FilesDirectory(BucketCachePath(kStore));
    const auto entries = env->ListDirectory(files_of_cache);
    REQUIRE_OK(entries);
    for (const DirectoryEntry& entry : *entries)
      REQUIRE_OK(env->RemoveFile(files_of_cache + "/" + entry.name));
  }
  std::vector<std::string> KeysOfSegments() const {
    std::vector<std::string> keys;
    for (const std::string& key : objects->Keys()) {
      if (key.starts_with(kSegmentKeyPrefix)) keys.push_back(key);
    }
    return keys;
  }

  Result<BucketVerifyReport> Verify(bool data = false) {
    return VerifyBucketOfStore(*env, *objects, kStore, {.data = data, .threads = 1});
  }
  Result<BucketVerifyReport> VerifyAlone(bool data = false) {
    return VerifyBucket(*objects, {.data = data, .threads = 1});
  }
};

Machine LocalMachine() {
  Machine machine;
  machine.Make();
  return machine;
}

// A store that was converted, and whose commits are in the bucket.
Machine BucketMachine() {
  Machine machine = LocalMachine();
  REQUIRE_OK(machine.Push());
  machine.Use([](FileSystem&) {});
  return machine;
}

std::string Codes(const std::vector<BucketFinding>& findings) {
  std::string codes;
  for (const BucketFinding& finding : findings)
    codes += fmt::format("{}{} {}", codes.empty() ? "" : ", ", finding.code, finding.key);
  return codes;
}

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

// --- What the verification finds.

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
