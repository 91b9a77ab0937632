// A reader follows the log of a writer.
#include "fs/shipping/log_follower.h"

#include "tests/fs/shipping/shipping_bench.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

// A copy of the store on another machine, which follows the log.
class Follower {
 public:
  explicit Follower(ObjectStore& objects) : objects_(objects) {}

  void Restore() {
    ++restores;
    const auto make_empty = [this](const Manifest&) {
      disk_ = std::make_unique<MemoryDisk>();
      return Result<std::unique_ptr<KvStore>>(OpenMemoryKvStore(*disk_));
    };
    kv = nullptr;
    auto restored = RestoreKvStore(objects_, make_empty, {});
    REQUIRE_OK(restored);
    kv = std::move(restored->kv);
    log.emplace(objects_, restored->state);
  }
  Status Poll() {
    return log
        ->Poll(1000, [&](const std::vector<Mutation>& mutations) { return kv->Write(mutations); })
        .status();
  }

  std::unique_ptr<KvStore> kv;
  std::optional<LogFollower> log;
  int restores = 0;

 private:
  ObjectStore& objects_;
  std::unique_ptr<MemoryDisk> disk_;
};

TEST_CASE("follower: it always has a state of the writer, and states never go back") {
  for (uint64_t seed = 1; seed <= (kIsSanitized ? 10 : 60); ++seed) {
    INFO("seed " << seed);
    MemoryObjectStore objects;
    Random random(seed);
    uint8_t number = 1;
    auto machine = std::make_unique<Machine>(objects, number);
    const auto set_up = [&](Machine& one) {
      one.options.checkpoint_bytes = 300 + random.Below(2000);
      one.options.queue_bytes = random.Below(3) == 0 ? 400 : 1u << 20;
      one.options.object_bytes = 200;
    };
    set_up(*machine);
    REQUIRE_OK(machine->Open());
    REQUIRE_OK(machine->shipper->Ship());
    History history(seed);
    Follower follower(objects);
    follower.Restore();
    size_t shown = 0;  // of history.states
    for (int step = 0; step < 150; ++step) {
      const uint64_t choice = random.Below(20);
      if (choice < 10) {
        REQUIRE_OK(history.Write(*machine->kv));
      } else if (choice < 13) {
        REQUIRE_OK(machine->shipper->Ship());
      } else if (choice == 13) {
        machine->Crash();
        REQUIRE_OK(machine->Open());
      } else if (choice == 14) {
        // The machine is lost, and another one takes over.
        machine->Crash();
        auto other = std::make_unique<Machine>(objects, ++number);
        set_up(*other);
        REQUIRE_OK(other->Restore());
        while (history.states.back() != other->contents) history.states.pop_back();
        REQUIRE_OK(other->Open());
        machine = std::move(other);
      } else {
        const Status polled = follower.Poll();
        if (polled.Is(StatusCode::kStale)) {
          follower.Restore();
        } else {
          REQUIRE_OK(polled);
        }
        const Contents contents = ContentsOf(*follower.kv);
        size_t now = shown;
        while (now < history.states.size() && history.states[now] != contents) ++now;
        REQUIRE(now < history.states.size());
        shown = now;
      }
    }
    REQUIRE_OK(machine->shipper->Ship());
    if (follower.Poll().Is(StatusCode::kStale)) follower.Restore();
    CHECK(ContentsOf(*follower.kv) == history.states.back());
  }
}

TEST_CASE("follower: checkpoints do not make it begin again") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  machine.options.checkpoint_bytes = 300;
  machine.options.object_bytes = 100;
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.shipper->Ship());
  Follower follower(objects);
  follower.Restore();
  History history(1);
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 7; ++i) REQUIRE_OK(history.Write(*machine.kv));
    REQUIRE_OK(machine.shipper->Ship());
    REQUIRE_OK(follower.Poll());
    REQUIRE(ContentsOf(*follower.kv) == history.states.back());
  }
  CHECK(machine.shipper->lag().checkpoints > 10);
}

TEST_CASE("follower: if the log is gone, it says so") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->Write({{"a", "0"}}));
  REQUIRE_OK(machine.shipper->Ship());
  Follower follower(objects);
  follower.Restore();
  for (int i = 0; i < 4; ++i) {
    REQUIRE_OK(machine.kv->Write({{"a", fmt::format("{}", i)}}));
    machine.shipper->NeedCheckpoint(machine.shipper->Position());
    REQUIRE_OK(machine.shipper->Ship());
  }
  CHECK(follower.Poll().Is(StatusCode::kStale));
  follower.Restore();
  CHECK(ContentsOf(*follower.kv) == Contents{{"a", "3"}});
  REQUIRE_OK(follower.Poll());
}

TEST_CASE(
    "follower: an object of a writer that was asleep while the log was removed is no part of it") {
  MemoryObjectStore objects;
  Machine first(objects, 1);
  REQUIRE_OK(first.Open());
  REQUIRE_OK(first.kv->Write({{"a", "1"}}));
  REQUIRE_OK(first.shipper->Ship());
  Follower follower(objects);
  follower.Restore();
  Machine second(objects, 2);
  REQUIRE_OK(second.Restore());
  REQUIRE_OK(second.Open());
  for (int i = 0; i < 3; ++i) {
    REQUIRE_OK(second.kv->Write({{"b", fmt::format("{}", i)}}));
    second.shipper->NeedCheckpoint(second.shipper->Position());
    REQUIRE_OK(second.shipper->Ship());
  }
  // The number is free again, so the Put succeeds. The writer then notices that it is fenced.
  REQUIRE_OK(first.kv->Write({{"a", "2"}}));
  CHECK(!first.shipper->Ship().ok());
  REQUIRE(objects.Get(LogKey(follower.log->position().next), 1u << 20, nullptr).ok());
  CHECK(follower.Poll().Is(StatusCode::kStale));
  CHECK(ContentsOf(*follower.kv) == Contents{{"a", "1"}});
}

TEST_CASE("follower: a damaged object is an error, and changes nothing") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->Write({{"a", "1"}}));
  REQUIRE_OK(machine.shipper->Ship());
  Follower follower(objects);
  follower.Restore();
  REQUIRE_OK(machine.kv->Write({{"a", "2"}}));
  REQUIRE_OK(machine.shipper->Ship());
  const std::string key = LogKey(follower.log->position().next);
  const auto whole = objects.Get(key, 1u << 20, nullptr);
  REQUIRE_OK(whole);
  for (size_t i = 0; i < whole->size(); i += 5) {
    Bytes damaged = *whole;
    damaged[i] ^= 4;
    REQUIRE_OK(objects.Put(key, damaged, PutCondition::Always()));
    const Status polled = follower.Poll();
    CHECK(polled.Is(StatusCode::kCorruption));
    REQUIRE(ContentsOf(*follower.kv) == Contents{{"a", "1"}});
  }
  REQUIRE_OK(objects.Put(key, *whole, PutCondition::Always()));
  REQUIRE_OK(follower.Poll());
  CHECK(ContentsOf(*follower.kv) == Contents{{"a", "2"}});
}

}  // namespace
}  // namespace siltfs::testing
