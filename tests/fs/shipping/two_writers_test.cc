// Two writers whose calls of the bucket are interleaved in every way.
//
// Each writer runs in a thread of its own. Before each call of the bucket it waits for its turn. A
// schedule says which writer makes the next call, so a run is deterministic. After a run the log is
// read and checked, and the store is restored.
#include <array>
#include <set>
#include <thread>

#include "store/base/thread_annotations.h"
#include "tests/fs/shipping/shipping_bench.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

// Lets one of two threads run at a time. Thread-safe.
class Turns {
 public:
  // Bit i of the schedule: which thread makes the call number i. Later calls alternate.
  explicit Turns(uint64_t schedule, unsigned bits) : schedule_(schedule), bits_(bits) {}

  // The calling thread is this one of the two from now on.
  static void Enter(size_t self) { self_ = static_cast<int>(self); }
  // Called before a call of the bucket by a thread that has entered.
  void Await() {
    if (self_ < 0) return;
    const auto self = static_cast<size_t>(self_);
    MutexLock lock(mutex_);
    waits_[self] = true;
    changed_.NotifyAll();
    // Each call begins when the other thread waits, too, or has ended.
    while (!(Settled() && Next() == self)) changed_.Wait(mutex_);
    waits_[self] = false;
    ++calls_;
    running_ = self;
  }
  void Leave() {
    MutexLock lock(mutex_);
    ended_[static_cast<size_t>(self_)] = true;
    self_ = -1;
    changed_.NotifyAll();
  }

 private:
  bool Settled() const SILTFS_REQUIRES(mutex_) {
    return (waits_[0] || ended_[0]) && (waits_[1] || ended_[1]);
  }
  size_t Next() const SILTFS_REQUIRES(mutex_) {
    if (ended_[0]) return 1;
    if (ended_[1]) return 0;
    return calls_ < bits_ ? (schedule_ >> calls_) & 1 : calls_ & 1;
  }

  static thread_local int self_;
  const uint64_t schedule_;
  const unsigned bits_;
  Mutex mutex_;
  CondVar changed_;
  std::array<bool, 2> waits_ SILTFS_GUARDED_BY(mutex_){};
  std::array<bool, 2> ended_ SILTFS_GUARDED_BY(mutex_){};
  unsigned calls_ SILTFS_GUARDED_BY(mutex_) = 0;
  size_t running_ SILTFS_GUARDED_BY(mutex_) = 0;
};

thread_local int Turns::self_ = -1;

// What a writer has achieved.
struct Outcome {
  std::vector<std::string> acknowledged;  // keys of its commits
  bool opened = false;
  int fenced = 0;
};

// The log is one chain, each epoch has one writer, and epochs ascend.
void CheckLog(const MemoryObjectStore& objects) {
  uint64_t previous = 0;
  uint64_t number = 0;
  uint32_t epoch = 0;
  std::map<uint32_t, WriterIdentity> writers;
  for (const std::string& key : KeysBelow(objects, kLogPrefix)) {
    const auto content = objects.Content(key);
    REQUIRE_OK(content);
    const auto object = DecodeLogObject(AsBytes(*content));
    REQUIRE_OK(object);
    if (number > 0) {
      REQUIRE(object->number == number + 1);
      REQUIRE(object->previous == previous);
      REQUIRE(object->epoch == epoch + (object->kind == LogKind::kEpoch ? 1 : 0));
    }
    const auto [writer, is_new] = writers.try_emplace(object->epoch, object->writer);
    REQUIRE((is_new || writer->second == object->writer));
    number = object->number;
    previous = ChecksumOfLogObject(AsBytes(*content));
    epoch = object->epoch;
  }
}

void CheckRace(uint64_t schedule, unsigned bits, bool checkpoints) {
  INFO("schedule " << schedule);
  std::unique_ptr<Turns> turns;
  MemoryObjectOptions options;
  options.wait = [&turns](ObjectCall, const std::string&, std::chrono::nanoseconds) {
    if (turns) turns->Await();
  };
  MemoryObjectStore objects(options);
  std::array<std::unique_ptr<Machine>, 2> machines;
  for (size_t i = 0; i < 2; ++i) {
    machines[i] = std::make_unique<Machine>(objects, static_cast<uint8_t>(i + 1));
    machines[i]->options.wait_for_bucket = true;
  }
  // The first writer is open; the second one takes over while it goes on.
  REQUIRE_OK(machines[0]->Open());
  REQUIRE_OK(machines[0]->Write({{"a", "1"}}));
  std::array<Outcome, 2> outcomes;
  outcomes[0].opened = true;
  const auto write = [&](size_t self, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = fmt::format("w{}-{}", self, i);
      if (!machines[self]->Write({{key, "1"}}).ok()) return;
      outcomes[self].acknowledged.push_back(key);
      if (checkpoints) machines[self]->shipper->NeedCheckpoint(machines[self]->shipper->Position());
    }
  };
  turns = std::make_unique<Turns>(schedule, bits);
  std::thread first([&] {
    Turns::Enter(0);
    write(0, 4);
    turns->Leave();
  });
  std::thread second([&] {
    Turns::Enter(1);
    const auto restored = machines[1]->Restore({.reads_ahead = false});
    outcomes[1].opened = restored.ok() && machines[1]->Open().ok();
    if (outcomes[1].opened) write(1, 3);
    turns->Leave();
  });
  first.join();
  second.join();
  turns = nullptr;
  CheckLog(objects);
  for (size_t i = 0; i < 2; ++i) outcomes[i].fenced = machines[i]->fenced;
  // Only one of them can still write.
  if (outcomes[1].opened) {
    CHECK(machines[0]->Write({{"late", "1"}}).Is(StatusCode::kReadOnly));
    CHECK(machines[0]->fenced == 1);
    CHECK(outcomes[1].fenced == 0);
    CHECK(outcomes[1].acknowledged.size() == 3);
  } else {
    CHECK(outcomes[0].fenced == 0);
    CHECK(outcomes[0].acknowledged.size() == 4);
  }
  Machine third(objects, 3);
  REQUIRE_OK(third.Restore());
  CHECK(third.contents.contains("a"));
  CHECK(!third.contents.contains("late"));
  for (const Outcome& outcome : outcomes) {
    for (const std::string& key : outcome.acknowledged) {
      INFO(key);
      CHECK(third.contents.contains(key));
    }
  }
}

TEST_CASE("two writers: whatever the order of their calls, none loses an acknowledged commit") {
  const unsigned kBits = TestScale() == kWholeScale ? 13 : 10;
  for (uint64_t schedule = 0; schedule < uint64_t{1} << kBits; schedule += kIsSanitized ? 37 : 1)
    CheckRace(schedule, kBits, false);
}

TEST_CASE("two writers: the same at random, with checkpoints that remove the log") {
  Random random(1);
  for (uint64_t i = 0; i < (kIsSanitized ? 100 : Share(10000)); ++i)
    CheckRace(random.Next(), 64, true);
}

}  // namespace
}  // namespace siltfs::testing
