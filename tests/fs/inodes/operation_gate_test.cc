// The gate that keeps operations out while a rollback replaces the records of all inodes.
#include "fs/inodes/operation_gate.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

constexpr std::chrono::hours kForever{1};

using Closure = OperationGate::Closure;

std::optional<Closure> Close(OperationGate& gate, std::chrono::nanoseconds patience = kForever) {
  auto closure = gate.Close(patience);
  REQUIRE_OK(closure);
  return std::move(closure).value();
}

TEST_CASE("passes do not exclude each other, and a closure ends its patience while one exists") {
  OperationGate gate;
  std::optional<OperationGate::Pass> first(std::move(gate.Enter()).value());
  {
    const auto second = gate.Enter();
    REQUIRE_OK(second);
    CHECK_FALSE(Close(gate, std::chrono::nanoseconds(1)));
  }
  CHECK_FALSE(Close(gate, std::chrono::nanoseconds(0)));
  REQUIRE_OK(gate.Enter());  // an attempt to close it leaves the gate open
  first.reset();
  CHECK(Close(gate, std::chrono::nanoseconds(0)));
  REQUIRE_OK(gate.Enter());
}

TEST_CASE("a pass waits for the end of a closure, and a closure for the end of passes") {
  OperationGate gate;
  // Plain variables: a thread sanitizer reports passes and closures that overlap.
  uint64_t changed_by_closures = 0;
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> seen = 0;
  std::atomic<int> inside = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const auto pass = gate.Enter();
        ++inside;
        if (pass.ok()) seen = changed_by_closures;
        --inside;
      }
    });
  }
  uint64_t closures = 0;
  uint64_t overlaps = 0;
  while (closures < 300) {
    const auto closure = Close(gate);
    REQUIRE(closure);
    overlaps += inside != 0 ? 1 : 0;
    ++changed_by_closures;
    ++closures;
  }
  while (seen != closures) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(overlaps == 0);
}

TEST_CASE("two closures exclude each other") {
  OperationGate gate;
  uint64_t changes = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        const auto closure = gate.Close(kForever);
        if (closure.ok() && *closure) ++changes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(changes == 600);
}

TEST_CASE("a broken gate refuses all passes, also those that wait") {
  OperationGate gate;
  std::thread waiting;
  std::atomic<bool> begun = false;
  Status outcome;
  {
    const auto closure = Close(gate);
    REQUIRE(closure);
    waiting = std::thread([&] {
      begun = true;
      outcome = gate.Enter().status();
    });
    while (!begun) std::this_thread::yield();
    gate.Break({StatusCode::kIoError, "broken"});
  }
  waiting.join();
  REQUIRE_CODE(outcome, kIoError);
  REQUIRE_CODE(gate.Enter(), kIoError);
  REQUIRE_CODE(gate.Close(kForever), kIoError);
  CHECK(gate.broken());
}

}  // namespace
}  // namespace siltfs
