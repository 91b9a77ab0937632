// Commits of a key-value store in a bucket: what a machine gets that has only the bucket.
#include <algorithm>

#include "tests/fs/shipping/shipping_bench.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

TEST_CASE("shipping: another machine gets the commits that were shipped") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  REQUIRE_OK(machine.Open());
  History history(1);
  for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Write(*machine.kv));
  REQUIRE_OK(machine.shipper->Ship());
  const Contents shipped = history.states.back();
  CHECK(machine.shipper->lag().commits == 0);
  for (int i = 0; i < 5; ++i) REQUIRE_OK(history.Write(*machine.kv));
  CHECK(machine.shipper->lag().commits == 5);
  CHECK(machine.shipper->lag().bytes > 0);

  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == shipped);
}

TEST_CASE("shipping: without a store in the bucket, a restore says so") {
  MemoryObjectStore objects;
  CHECK(Machine(objects, 1).Restore().status().Is(StatusCode::kNotFound));
}

TEST_CASE("shipping: a machine that crashed brings the rest to the bucket when it opens again") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  REQUIRE_OK(machine.Open());
  History history(2);
  for (int i = 0; i < 9; ++i) REQUIRE_OK(history.Write(*machine.kv));
  machine.Crash();
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->Ship());
  machine.Crash();
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == history.states.back());
}

TEST_CASE("shipping: the lag of a store does not begin again when the store is opened") {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  machine.env.SetClock(1000 * kNsPerSecond);
  REQUIRE_OK(machine.Open());
  History history(2);
  REQUIRE_OK(history.Write(*machine.kv));
  REQUIRE_OK(machine.shipper->Ship());
  CHECK(machine.shipper->lag().seconds == 0);
  machine.env.AdvanceClock(10 * kNsPerSecond);
  REQUIRE_OK(history.Write(*machine.kv));
  machine.env.AdvanceClock(3600 * kNsPerSecond);
  CHECK(machine.shipper->lag().seconds == 3600);
  // Each open puts an object, and then the bucket gives no further answer.
  for (int hour = 1; hour < 4; ++hour) {
    REQUIRE_OK(machine.Open());
    REQUIRE_OK(history.Write(*machine.kv));
    objects.FailCall({.call = ObjectCall::kPut, .permanent = true});
    CHECK_FALSE(machine.shipper->Ship().ok());
    const BucketLag lag = machine.shipper->lag();
    CHECK(lag.commits > 0);
    // The commit itself may be younger than the last one in the bucket.
    CHECK(lag.seconds >= 3600.0 * hour);
    CHECK(lag.seconds <= 3600.0 * hour + 10);
    objects.ClearFaults();
    machine.env.AdvanceClock(3600 * kNsPerSecond);
  }
  REQUIRE_OK(machine.shipper->Ship());
  CHECK(machine.shipper->lag().seconds == 0);
  CHECK(machine.shipper->lag().commits == 0);
}

TEST_CASE("shipping: the lag has all commits and bytes that wait, and the age of the first") {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  constexpr uint64_t kValueBytes = 300;
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  machine.options.queue_bytes = 2000;
  machine.env.SetClock(1000 * kNsPerSecond);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->Ship());
  // The queue has room for the first commits only, and drops them then.
  for (uint64_t commits = 1; commits <= 20; ++commits) {
    INFO("commit " << commits);
    machine.env.AdvanceClock(10 * kNsPerSecond);
    REQUIRE_OK(machine.kv->Write({{"key", std::string(kValueBytes, 'v')}}));
    const BucketLag lag = machine.shipper->lag();
    CHECK(lag.commits == commits);
    CHECK(lag.bytes >= commits * kValueBytes);
    CHECK(lag.bytes <= commits * kValueBytes * 2);
    CHECK(lag.seconds == 10.0 * static_cast<double>(commits - 1));
  }
  CHECK(machine.shipper->lag().checkpoint_waits);
  REQUIRE_OK(machine.shipper->Ship());
  const BucketLag lag = machine.shipper->lag();
  CHECK(lag.commits == 0);
  CHECK(lag.bytes == 0);
  CHECK(lag.seconds == 0);
}

TEST_CASE("shipping: after a clean close nothing is behind, and no checkpoint is needed") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  History history(3);
  for (int round = 0; round < 3; ++round) {
    REQUIRE_OK(machine.Open());
    REQUIRE_OK(history.Write(*machine.kv));
    REQUIRE_OK(machine.kv->CloseCleanly());
    CHECK(machine.shipper->lag().commits == 0);
    CHECK(machine.shipper->lag().checkpoints == (round == 0 ? 1 : 0));
  }
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == history.states.back());
}

TEST_CASE("shipping: a clean close ends the lease, unless the bucket lacks commits") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  machine.options.lease = std::chrono::seconds(60);
  const auto lease_ended = [&] {
    const auto end = ReadLogEnd(objects);
    REQUIRE_OK(end);
    return end->lease_end_ns <= machine.env.NowNanoseconds();
  };
  History history(5);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(history.Write(*machine.kv));
  REQUIRE_OK(machine.shipper->Ship());
  machine.Crash();
  CHECK_FALSE(lease_ended());
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(history.Write(*machine.kv));
  REQUIRE_OK(machine.kv->CloseCleanly());
  CHECK(lease_ended());
  REQUIRE_OK(machine.Open());
  CHECK_FALSE(lease_ended());
  REQUIRE_OK(history.Write(*machine.kv));
  objects.FailCall({.call = ObjectCall::kPut, .permanent = true});
  REQUIRE_OK(machine.kv->CloseCleanly());
  CHECK_FALSE(lease_ended());
  objects.ClearFaults();
  // The last object of a close changes nothing of what a restore finds.
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->CloseCleanly());
  CHECK(lease_ended());
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == history.states.back());
}

TEST_CASE("shipping: a store that was changed without the bucket is put there as a whole") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->Write({{"a", "1"}}));
  REQUIRE_OK(machine.shipper->Ship());
  machine.Crash();
  {
    const auto kv = OpenMemoryKvStore(*machine.disk);
    REQUIRE_OK(kv->Write({{"a", "repaired"}, {std::string(kBucketPositionKey), std::nullopt}}));
  }
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->Ship());
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == Contents{{"a", "repaired"}});
}

TEST_CASE("shipping: commits that do not fit the queue are replaced by a checkpoint") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  machine.options.queue_bytes = 2000;
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->Ship());
  History history(4);
  for (int i = 0; i < 100; ++i) REQUIRE_OK(history.Write(*machine.kv));
  CHECK(machine.shipper->lag().checkpoint_waits);
  CHECK(machine.shipper->lag().commits == 100);
  REQUIRE_OK(machine.shipper->Ship());
  CHECK(machine.shipper->lag().checkpoints == 2);
  for (int i = 0; i < 3; ++i) REQUIRE_OK(history.Write(*machine.kv));
  REQUIRE_OK(machine.shipper->Ship());
  CHECK(machine.shipper->lag().checkpoints == 2);
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == history.states.back());
}

TEST_CASE("shipping: a load reaches the bucket with a checkpoint, and no commit overtakes it") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->Ship());
  REQUIRE_OK(machine.kv->Write({{"a", "1"}}));
  {
    auto load = machine.kv->NewLoad();
    REQUIRE_OK(load);
    REQUIRE_OK((*load)->Add({{"x1", "one"}, {"x2", "two"}}));
    REQUIRE_OK((*load)->Load());
  }
  REQUIRE_OK(machine.kv->Write({{"b", "refers to x1"}}));
  REQUIRE_OK(machine.shipper->Ship());
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents ==
        Contents{{"a", "1"}, {"b", "refers to x1"}, {"x1", "one"}, {"x2", "two"}});
}

TEST_CASE("shipping: a checkpoint puts only parts that have changed, and removes what is old") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  REQUIRE_OK(machine.Open());
  std::vector<Mutation> mutations;
  for (int i = 0; i < 60000; ++i)
    mutations.push_back({fmt::format("key{:08}", i), fmt::format("{:0100}", i)});
  REQUIRE_OK(machine.kv->Write(mutations));
  machine.shipper->NeedCheckpoint(machine.shipper->Position());
  REQUIRE_OK(machine.shipper->Ship());
  const size_t first = KeysBelow(objects, kPartPrefix).size();
  CHECK(first > 5);
  for (int i = 0; i < 5; ++i) {
    REQUIRE_OK(machine.kv->Write({{"key00030000", std::string(300 + i, 'x')}}));
    machine.shipper->NeedCheckpoint(machine.shipper->Position());
    REQUIRE_OK(machine.shipper->Ship());
    // The changed part, its neighbour, and those of the last checkpoint.
    CHECK(KeysBelow(objects, kPartPrefix).size() <= first + 4);
  }
  CHECK(machine.shipper->lag().checkpoints >= 6);
  CHECK(KeysBelow(objects, kManifestPrefix).size() == 2);
  CHECK(KeysBelow(objects, kLogPrefix).size() < 6);
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == ContentsOf(*machine.kv));
}

TEST_CASE("shipping: a long log leads to a checkpoint") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  machine.options.checkpoint_bytes = 1000;
  REQUIRE_OK(machine.Open());
  History history(8);
  for (int i = 0; i < 200; ++i) {
    REQUIRE_OK(history.Write(*machine.kv));
    REQUIRE_OK(machine.shipper->Ship());
  }
  CHECK(machine.shipper->lag().checkpoints > 5);
  CHECK(KeysBelow(objects, kLogPrefix).size() < 80);
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == history.states.back());
}

TEST_CASE("shipping: ten thousand log objects are replayed") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  machine.options.object_bytes = 1;
  machine.options.checkpoint_objects = 100000;
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->Ship());
  constexpr int kObjects = kIsSanitized ? 2500 : 10000;
  for (int i = 0; i < kObjects; ++i) REQUIRE_OK(machine.kv->Write({{fmt::format("k{}", i), "v"}}));
  REQUIRE_OK(machine.shipper->Ship());
  CHECK(machine.shipper->lag().log_objects > kObjects);
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents.size() == kObjects);
  REQUIRE_OK(other.Open());
}

// --- Damage.

TEST_CASE("shipping: damage in the log is an error that says what is lost, or the end") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  machine.options.object_bytes = 1;
  REQUIRE_OK(machine.Open());
  History history(5);
  REQUIRE_OK(machine.shipper->Ship());
  for (int i = 0; i < 12; ++i) REQUIRE_OK(history.Write(*machine.kv));
  REQUIRE_OK(machine.shipper->Ship());
  const auto log = KeysBelow(objects, kLogPrefix);
  const bool removed = GENERATE(false, true);
  // The first two objects are those of the epoch and of the checkpoint. That the last one is
  // missing cannot be noticed.
  for (size_t i = 2; i < log.size() - (removed ? 1 : 0); ++i) {
    const auto fork = objects.Fork();
    if (removed) {
      REQUIRE_OK(fork->Remove(log[i]));
    } else {
      Damage(*fork, log[i]);
    }
    Machine other(*fork, 2);
    const auto refused = other.Restore();
    REQUIRE(refused.status().Is(StatusCode::kCorruption));
    CHECK(refused.status().ToString().find("are lost") != std::string::npos);
    RestoreOptions options;
    options.stop_at_damage = true;
    const auto restored = other.Restore(options);
    REQUIRE_OK(restored);
    CHECK(restored->damaged);
    CHECK(other.contents == history.states.at(i - 2));
    // The store goes on, and its new state replaces the damaged log.
    REQUIRE_OK(other.Open());
    REQUIRE_OK(other.kv->Write({{"new", "1"}}));
    REQUIRE_OK(other.shipper->Ship());
    const Contents expected = ContentsOf(*other.kv);
    Machine third(*fork, 3);
    REQUIRE_OK(third.Restore());
    CHECK(third.contents == expected);
  }
}

TEST_CASE("shipping: if the newest checkpoint is damaged, the one before it and the log are used") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  machine.options.checkpoint_objects = 2;
  REQUIRE_OK(machine.Open());
  History history(6);
  for (int i = 0; i < 20; ++i) {
    REQUIRE_OK(history.Write(*machine.kv));
    REQUIRE_OK(machine.shipper->Ship());
  }
  CHECK(machine.shipper->lag().checkpoints > 3);
  for (const std::string_view prefix : {kManifestPrefix, kPartPrefix}) {
    const auto fork = objects.Fork();
    const auto keys = KeysBelow(*fork, prefix);
    // The names of parts are not ordered: the damage may be in either checkpoint.
    for (const std::string& key : keys) {
      const auto damaged = fork->Fork();
      Damage(*damaged, key);
      Machine other(*damaged, 2);
      REQUIRE_OK(other.Restore());
      CHECK(other.contents == history.states.back());
    }
  }
}

TEST_CASE("shipping: a manifest that arrives late is not the one of its log object") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  std::string attachment = "old";
  machine.options.attachment = [&attachment] { return Result<std::string>(attachment); };
  machine.options.checkpoint_objects = 1;
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->Ship());
  REQUIRE_OK(machine.kv->Write({{"a", "1"}}));
  REQUIRE_OK(machine.shipper->Ship());
  // The checkpoint fails. The next one has another manifest, and leaves this one alone.
  objects.FailCall({.call = ObjectCall::kPut,
                    .effect = ObjectFault::Effect::kAnswerLost,
                    .key_part = std::string(kManifestPrefix)});
  REQUIRE_OK(machine.kv->Write({{"a", "2"}}));
  REQUIRE_CODE(machine.shipper->Ship(), kIoError);
  const std::string late_key = KeysBelow(objects, kManifestPrefix).back();
  const std::string late = objects.Content(late_key).value();
  attachment = "new";
  REQUIRE_OK(machine.shipper->Ship());
  CHECK(objects.Content(late_key).value() == late);
  const std::string key = KeysBelow(objects, kManifestPrefix).back();
  REQUIRE(key > late_key);
  Machine other(objects, 2);
  auto restored = other.Restore();
  REQUIRE_OK(restored);
  CHECK(restored->attachment == "new");
  CHECK(other.contents == Contents{{"a", "2"}});
  // A manifest with the same number that is not the one of the log object does not count.
  auto manifest = DecodeManifest(AsBytes(objects.Content(key).value()));
  REQUIRE_OK(manifest);
  manifest->attachment = "old";
  objects.SetContent(key, EncodeManifest(*manifest));
  restored = other.Restore();
  REQUIRE_OK(restored);
  CHECK(restored->attachment == "new");
  CHECK(other.contents == Contents{{"a", "2"}});
}

TEST_CASE("shipping: commits during a checkpoint need no other one") {
  std::function<void()> during_checkpoint;
  MemoryObjectStore objects({.wait = [&](ObjectCall call, const std::string& key, auto) {
    if (call == ObjectCall::kPut && key.starts_with(kPartPrefix) && during_checkpoint)
      during_checkpoint();
  }});
  Machine machine(objects, 1);
  machine.options.queue_bytes = 2000;
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->Ship());
  const uint64_t before = machine.shipper->lag().checkpoints;
  int commits = 0;
  during_checkpoint = [&] {
    REQUIRE_OK(machine.kv->Write({{"b", std::to_string(++commits)}}));
    REQUIRE_OK(machine.kv->Write({{"c", std::to_string(commits)}}));
    REQUIRE(commits < 20);
  };
  SECTION("as many as the queue has room for") {
    REQUIRE_OK(machine.kv->Write({{"a", std::string(3000, 'v')}}));
    REQUIRE(machine.shipper->lag().checkpoint_waits);
    REQUIRE_OK(machine.shipper->Ship());
    CHECK(machine.shipper->lag().checkpoints == before + 1);
  }
  SECTION("after a checkpoint that has failed") {
    REQUIRE_OK(machine.kv->Write({{"a", std::string(3000, 'v')}}));
    objects.FailCall({.call = ObjectCall::kPut, .key_part = std::string(kManifestPrefix)});
    REQUIRE_CODE(machine.shipper->Ship(), kIoError);
    REQUIRE_OK(machine.kv->Write({{"d", "4"}}));
    CHECK(machine.shipper->lag().checkpoint_waits);
    REQUIRE_OK(machine.shipper->Ship());
    CHECK(machine.shipper->lag().checkpoints == before + 1);
  }
  SECTION("more than the queue has room for") {
    const auto one = during_checkpoint;
    during_checkpoint = [&, one] {
      one();
      if (commits == 1) REQUIRE_OK(machine.kv->Write({{"d", std::string(3000, 'w')}}));
    };
    REQUIRE_OK(machine.kv->Write({{"a", std::string(3000, 'v')}}));
    REQUIRE_OK(machine.shipper->Ship());
    CHECK(machine.shipper->lag().checkpoints == before + 2);
  }
  during_checkpoint = nullptr;
  const BucketLag lag = machine.shipper->lag();
  CHECK(lag.commits == 0);
  CHECK(lag.bytes == 0);
  CHECK(lag.seconds == 0);
  CHECK(commits > 0);
  const Contents contents = ContentsOf(*machine.kv);
  Machine other(objects, 2);
  REQUIRE_OK(other.Restore());
  CHECK(other.contents == contents);
}

// --- Faults.

TEST_CASE("shipping: after a fault at any object call, the machine is lost and nothing else") {
  const bool wait_for_bucket = GENERATE(false, true);
  const auto call = GENERATE(ObjectCall::kPut, ObjectCall::kGet, ObjectCall::kStat,
                             ObjectCall::kRemove, ObjectCall::kList);
  const auto effect = GENERATE(ObjectFault::Effect::kNone, ObjectFault::Effect::kAnswerLost);
  const bool changes = call == ObjectCall::kPut || call == ObjectCall::kRemove;
  if (effect == ObjectFault::Effect::kAnswerLost && !changes) return;
  for (uint64_t nth = 1; nth < 60; ++nth) {
    INFO("call " << static_cast<int>(call) << ", " << nth);
    MemoryObjectStore objects;
    Machine machine(objects, 1);
    machine.options.wait_for_bucket = wait_for_bucket;
    machine.options.object_bytes = 64;
    machine.options.checkpoint_bytes = 500;
    REQUIRE_OK(machine.Open());
    REQUIRE_OK(machine.shipper->Ship());
    History history(nth);
    const uint64_t before = objects.Calls(call);
    objects.FailCall({.call = call, .nth = nth, .effect = effect});
    size_t acknowledged = 0;
    for (int i = 0; i < 15; ++i) {
      if (!history.Write(*machine.kv).ok()) break;
      const bool shipped = wait_for_bucket || (i % 3 == 2 && machine.shipper->Ship().ok());
      if (shipped) acknowledged = history.last();
    }
    const size_t shipped = history.last() - machine.shipper->lag().commits;
    CHECK(shipped >= acknowledged);
    const bool fault_met = objects.Calls(call) - before >= nth;
    machine.Crash();
    objects.ClearFaults();
    Machine other(objects, 2);
    REQUIRE_OK(other.Restore());
    REQUIRE(history.Has(other.contents, shipped));
    CHECK(machine.fenced == 0);
    // The first machine goes on, as its disk was not lost.
    REQUIRE_OK(machine.Open());
    REQUIRE_OK(history.Write(*machine.kv));
    REQUIRE_OK(machine.shipper->Ship());
    const Contents last = ContentsOf(*machine.kv);
    REQUIRE_OK(other.Restore());
    REQUIRE(other.contents == last);
    if (!fault_met) break;
  }
}

}  // namespace
}  // namespace siltfs::testing
