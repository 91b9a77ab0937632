// Lookup counts behave like a map, within the documented memory.
#include "fs/inodes/lookup_counts.h"

#include <limits>
#include <thread>
#include <unordered_map>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("lookup counts equal those of a map, however inodes come and go") {
  const uint64_t seed = GENERATE(range(1, 5));
  INFO("seed " << seed);
  Random random(seed);
  LookupCounts counts;
  std::unordered_map<uint64_t, uint64_t> model;
  // The number of inodes in use grows and shrinks, so that the table is resized both ways.
  for (int step = 0; step < 60'000; ++step) {
    const uint64_t span = step / 10'000 % 2 == 0 ? 4000 : 50;
    const uint64_t inode = 1 + random.Below(span) * (seed % 2 == 0 ? 1 : 4096);
    if (random.OneIn(2)) {
      counts.Add(inode);
      ++model[inode];
    } else {
      const uint64_t take = 1 + random.Below(3);
      uint64_t& have = model[inode];
      have -= std::min(have, take);
      const uint64_t left = have;
      if (left == 0) model.erase(inode);
      if (counts.Remove(inode, take) != left) FAIL("step " << step);
    }
    if (step % 1000 == 0) {
      for (const auto& [number, count] : model)
        if (counts.Of(number) != count) FAIL("inode " << number << " at step " << step);
      REQUIRE(counts.inodes() == model.size());
    }
  }
  for (const auto& [number, count] : model) REQUIRE(counts.Remove(number, count) == 0);
  REQUIRE(counts.inodes() == 0);
}

TEST_CASE("an inode that was never looked up has no count") {
  LookupCounts counts;
  REQUIRE(counts.Of(5) == 0);
  REQUIRE(counts.Remove(5, 1) == 0);
  counts.Add(5);
  REQUIRE(counts.Remove(5, 1000) == 0);  // more than the count
  REQUIRE(counts.Of(5) == 0);
  REQUIRE(counts.inodes() == 0);
}

TEST_CASE("the largest inode numbers are counted like any other") {
  LookupCounts counts;
  for (uint64_t i = 0; i < 1000; ++i) counts.Add(std::numeric_limits<uint64_t>::max() - i);
  for (uint64_t i = 0; i < 1000; ++i)
    REQUIRE(counts.Of(std::numeric_limits<uint64_t>::max() - i) == 1);
}

TEST_CASE("an inode looked up takes at most 16 bytes, which are freed when it is forgotten") {
  LookupCounts counts;
  const uint64_t empty = counts.memory_bytes();
  uint64_t worst = 0;
  for (uint64_t inode = 1; inode <= 100'000; ++inode) {
    counts.Add(inode);
    if (inode >= 1000) worst = std::max(worst, counts.memory_bytes() * 100 / inode);
  }
  REQUIRE(worst <= 1600);
  for (uint64_t inode = 1; inode <= 100'000; ++inode) counts.Remove(inode, 1);
  REQUIRE(counts.memory_bytes() <= 2 * empty);
}

TEST_CASE("lookup counts of several threads add up") {
  LookupCounts counts;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&counts, t] {
      for (uint64_t i = 1; i <= 2000; ++i) {
        counts.Add(i);                     // counted by all threads
        counts.Add(10'000 * (t + 1) + i);  // counted by this thread only
      }
      for (uint64_t i = 1; i <= 2000; ++i) counts.Remove(10'000 * (t + 1) + i, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(counts.inodes() == 2000);
  for (uint64_t i = 1; i <= 2000; ++i) REQUIRE(counts.Of(i) == 4);
}

}  // namespace siltfs::testing
