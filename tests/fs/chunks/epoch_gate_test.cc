#include "fs/chunks/epoch_gate.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "fs/segments/segment_set.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("WaitForOthers waits for all threads that are inside, but for none that enters later") {
  EpochGate gate;
  gate.WaitForOthers();  // none is inside
  std::optional<EpochGate::Pin> first(gate);
  std::optional<EpochGate::Pin> second(gate);
  std::atomic<bool> waiting = false;
  std::atomic<bool> over = false;
  std::thread waiter([&] {
    waiting = true;
    gate.WaitForOthers();
    over = true;
  });
  while (!waiting) std::this_thread::yield();
  first.reset();
  CHECK_FALSE(over);
  second.reset();
  waiter.join();
  const EpochGate::Pin later(gate);
  CHECK(over);
}

TEST_CASE("after WaitForOthers, no thread is inside that entered before the call") {
  EpochGate gate;
  constexpr uint64_t kWaits = 300;
  std::atomic<uint64_t> waits = 0;
  std::atomic<bool> wrong = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (waits < kWaits) {
        const EpochGate::Pin pin(gate);
        const uint64_t over = waits;
        for (int i = 0; i < 20; ++i) std::this_thread::yield();
        // One wait may be over but not counted yet, and the next may have begun before this thread
        // entered.
        if (waits > over + 2) wrong = true;
      }
    });
  }
  while (waits < kWaits) {
    gate.WaitForOthers();
    ++waits;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(wrong);
}

TEST_CASE("a set of segments has what was added and not removed") {
  SegmentSet set({9, 3, 5});
  CHECK(set.Contains(3));
  CHECK(set.Contains(9));
  CHECK_FALSE(set.Contains(4));
  set.Add(4);
  set.Add(4);
  set.Remove(9);
  set.Remove(8);
  CHECK(set.Contains(4));
  CHECK_FALSE(set.Contains(9));
  set.Remove(4);
  CHECK_FALSE(set.Contains(4));
  set.Remove(3);
  set.Remove(5);
  CHECK_FALSE(set.Contains(5));
}

}  // namespace siltfs::testing
