// The parts of siltfs-bench index: latencies, the order of updates, strategies, memory traces.
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "index/open_index.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/index_gets.h"
#include "tools/bench/index_strategy.h"
#include "tools/bench/latency_histogram.h"
#include "tools/bench/memory_trace.h"
#include "tools/bench/timed_step.h"
#include "tools/bench/update_order.h"

namespace siltfs::testing {

TEST_CASE("A histogram's percentiles are at most a 32nd too high and never too low") {
  LatencyHistogram empty;
  CHECK(empty.Percentile(0.5) == 0);
  CHECK(empty.Mean() == 0);
  LatencyHistogram histogram;
  for (uint64_t value = 1; value <= 100'000; ++value) histogram.Record(value);
  CHECK(histogram.count() == 100'000);
  CHECK(histogram.Mean() == Approx(50'000.5));
  CHECK(histogram.max() == 100'000);
  for (const double share : {0.0001, 0.01, 0.5, 0.9, 0.99, 0.999}) {
    const auto exact = static_cast<uint64_t>(share * 100'000 + 0.5);
    const uint64_t measured = histogram.Percentile(share);
    INFO(share);
    CHECK(measured >= exact);
    CHECK(measured <= exact + exact / 32);
  }
  CHECK(histogram.Percentile(1) == 100'000);
}

TEST_CASE("A histogram takes any latency, and counts small ones exactly") {
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{1}, uint64_t{31}, uint64_t{32}, uint64_t{63}}) {
    LatencyHistogram histogram;
    histogram.Record(value);
    histogram.Record(1'000'000);
    CHECK(histogram.Percentile(0.5) == value);
  }
  LatencyHistogram histogram;
  for (unsigned bits = 0; bits < 64; ++bits) histogram.Record(uint64_t{1} << bits);
  histogram.Record(UINT64_MAX);
  CHECK(histogram.Percentile(1) == UINT64_MAX);
  CHECK(histogram.max() == UINT64_MAX);
  for (unsigned bits = 1; bits < 63; ++bits) {
    const uint64_t percentile = histogram.Percentile((bits + 1) / 65.0);
    INFO(bits);
    CHECK(percentile >= uint64_t{1} << bits);
    CHECK(percentile < (uint64_t{1} << bits) + (uint64_t{1} << bits) / 32 + 1);
  }
}

TEST_CASE("Histograms of several threads add up") {
  LatencyHistogram all;
  LatencyHistogram fast;
  LatencyHistogram slow;
  for (uint64_t i = 0; i < 990; ++i) fast.Record(10);
  for (uint64_t i = 0; i < 10; ++i) slow.Record(5000);
  all.Add(fast);
  all.Add(slow);
  CHECK(all.count() == 1000);
  CHECK(all.Percentile(0.99) == 10);
  CHECK(all.Percentile(0.991) == 5000);
  CHECK(all.max() == 5000);
  CHECK(all.Mean() == Approx(59.9));
}

TEST_CASE("Each round of updates changes every entry once, and versions can be computed") {
  for (const uint64_t entries : {1, 2, 7, 64, 1000}) {
    const UpdateOrder order(entries, entries + 3);
    std::vector<uint32_t> versions(entries);
    for (uint64_t update = 0; update < 3 * entries; ++update) {
      if (update < 50 || update % 97 == 0) {
        for (uint64_t number = 0; number < entries; ++number) {
          REQUIRE(order.VersionAfter(update, number) == versions[number]);
        }
      }
      const uint64_t number = order.NumberOf(update);
      REQUIRE(number < entries);
      ++versions[number];
      REQUIRE(order.VersionOf(update) == versions[number]);
    }
    for (const uint32_t version : versions) REQUIRE(version == 3);
  }
}

TEST_CASE("The order of updates is not the order of puts, also for very many entries") {
  const UpdateOrder order(1000, 1);
  unsigned neighbours = 0;
  for (uint64_t update = 1; update < 1000; ++update) {
    neighbours += order.NumberOf(update) == order.NumberOf(update - 1) + 1 ? 1 : 0;
  }
  CHECK(neighbours == 0);
  const UpdateOrder large(UpdateOrder::kMostEntries, 1);
  for (const uint64_t update : {uint64_t{0}, uint64_t{12345}, UpdateOrder::kMostEntries - 1}) {
    const uint64_t number = large.NumberOf(update);
    CHECK(large.VersionAfter(update, number) == 0);
    CHECK(large.VersionAfter(update + 1, number) == 1);
  }
}

TEST_CASE("Every version of an entry has its own location, which leads back to the number") {
  const IndexKeys keys(5);
  constexpr uint64_t kLast = UpdateOrder::kMostEntries - 1;
  for (const uint64_t number : {uint64_t{0}, uint64_t{65536}, uint64_t{123456789}, kLast}) {
    for (const uint32_t version : {0U, 1U, 2U, IndexKeys::kMostVersion}) {
      CHECK(keys.NumberOf(keys.LocationOf(number, version)) == number);
      CHECK(keys.LocationOf(number, version) != keys.LocationOf(number, version ^ 3U));
    }
  }
}

TEST_CASE("A lookup that returns an older version fails") {
  const TemporaryDirectory directory;
  const auto env = NewPosixEnv();
  auto index = OpenIndex(*env, {.engine = IndexEngine::kMap, .directory = directory.path()});
  REQUIRE(index.ok());
  const IndexKeys keys(7);
  const UpdateOrder order(10, 1);
  std::vector<IndexEntry> entries;
  for (uint64_t number = 0; number < 10; ++number) entries.push_back(keys.EntryOf(number));
  REQUIRE((*index)->Put(entries, 1).ok());
  IndexGets gets(**index, keys, 64, 1);
  gets.ExpectUpdates(order, 0);
  gets.GetPresent(64, 10);
  gets.ExpectUpdates(order, 1);
  CHECK_THROWS_AS(gets.GetPresent(64, 10), BenchFailure);
  const std::array updated = {keys.EntryOf(order.NumberOf(0), order.VersionOf(0))};
  REQUIRE((*index)->Put(updated, 2).ok());
  gets.GetPresent(64, 10);
  gets.ExpectUpdates(order, 0);
  CHECK_THROWS_AS(gets.GetPresent(64, 10), BenchFailure);
}

TEST_CASE("Threads take steps together, and a thread that fails does not stop the others") {
  constexpr unsigned kThreads = 4;
  TimedStep step(kThreads);
  CHECK(step.seconds() == 0);
  std::atomic<unsigned> ready{0};
  std::atomic<unsigned> steps{0};
  const auto work = [&](unsigned thread) {
    TimedStep::Member member(step);
    for (unsigned turn = 1; turn <= 100; ++turn) {
      if (thread == 0 && turn == 51) throw BenchFailure("the first thread ends");
      ++ready;
      member.Begin();
      if (turn <= 50 && ready < turn * kThreads) throw BenchFailure("a step began too early");
      ++steps;
      member.End();
    }
  };
  CHECK_THROWS_WITH(RunThreads(kThreads, work), "the first thread ends");
  CHECK(steps == 50 * kThreads + 50 * (kThreads - 1));
  CHECK(step.seconds() > 0);
}

TEST_CASE("A strategy becomes parameters of the engine, and others can be added") {
  const auto parameters = [](const IndexChoice& choice) {
    const auto found = ParametersOf(choice);
    if (!found.ok()) return std::string("refused");
    std::string text;
    for (const EngineParameter& parameter : *found) {
      text += parameter.name + "=" + std::to_string(parameter.value) + " ";
    }
    return text;
  };
  CHECK(parameters({}) == "");
  CHECK(parameters({.strategy = "paper"}) == "named_slots=1 tries=1 ");
  CHECK(parameters({.strategy = "hashed+bounds"}) == "sorted_runs=0 ");
  CHECK(parameters({.strategy = "runs+bounds"}).empty());
  CHECK_FALSE(ParametersOf({.strategy = "named+bounds"}).ok());  // named slots have tries
  CHECK(parameters({.strategy = "hashed+tries", .parameters = {"bucket_bits=3"}}) ==
        "tries=1 sorted_runs=0 bucket_bits=3 ");
  CHECK(parameters({.engine = "map"}) == "");
  CHECK(parameters({.strategy = "quick"}) == "refused");
  CHECK(parameters({.strategy = "paper", .parameters = {"tries=0"}}) == "refused");
  CHECK(parameters({.parameters = {"bucket_bits=99"}}) == "refused");
  CHECK(parameters({.parameters = {"bucket_bits"}}) == "refused");
  CHECK(parameters({.engine = "map", .strategy = "paper"}) == "refused");
  CHECK(parameters({.engine = "map", .without = {"hash"}}) == "refused");
}

TEST_CASE("Memory is counted by kind of store") {
  IndexStats stats;
  stats.memory_bytes = 1000;
  stats.stores = {{.kind = "log_store", .memory_bytes = 100},
                  {.kind = "log_store", .memory_bytes = 50},
                  {.kind = "hash_store", .memory_bytes = 20},
                  {.kind = "sorted_store", .memory_bytes = 300, .filter_memory_bytes = 200}};
  const IndexMemory memory = MemoryOf(stats);
  CHECK(memory.log_stores == 150);
  CHECK(memory.hash_store_filters == 20);
  CHECK(memory.page_indexes == 100);
  CHECK(memory.sorted_store_filters == 200);
  CHECK(memory.other == 530);
  CHECK(memory.total == 1000);
}

TEST_CASE("A memory trace has a line for each sample, keeps the peak, and overwrites no file") {
  const TemporaryDirectory directory;
  const auto env = NewPosixEnv();
  std::filesystem::create_directory(directory / "index");
  auto index = OpenIndex(*env, {.engine = IndexEngine::kMap, .directory = directory / "index"});
  REQUIRE(index.ok());
  const MemoryMeter meter;
  IndexProgress progress;
  const std::string path = directory / "trace.csv";
  {
    MemoryTrace trace(*env, path, std::chrono::hours(1), **index, meter, progress);
    progress.entries = 5;
    trace.Sample();
    CHECK(trace.TakePeak().entries == 5);
    CHECK(trace.TakePeak().entries == 0);
    CHECK_THROWS_AS(MemoryTrace(*env, path, std::chrono::hours(1), **index, meter, progress),
                    BenchFailure);
    trace.End();
    std::ifstream file(path);
    uint64_t lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    CHECK(lines == trace.samples() + 1);
    CHECK(trace.samples() >= 2);
  }
}

}  // namespace siltfs::testing
