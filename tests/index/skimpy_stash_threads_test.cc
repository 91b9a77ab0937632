// Lookups, listings and limit changes run while puts flush, collect and split partitions.
#include <atomic>
#include <thread>

#include "history.h"
#include "index/flash/flash_index.h"
#include "index/skimpy_stash/skimpy_stash_engine.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("Lookups of a SkimpyStash index are right while another thread puts") {
  const uint64_t enhanced = GENERATE(0, 1);
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/index"));
  auto opened = OpenFlashIndex(env,
                               {.directory = "/index",
                                .partition_bits = 1,
                                .hash_secret = 3,
                                .pages_per_checkpoint = 16,
                                .least_log_pages = 2,
                                .most_pages_per_file = 4},
                               MakeSkimpyStashEngine({{"capacity_bits", 9},
                                                      {"entries_per_bucket", 4},
                                                      {"enhanced", enhanced},
                                                      {"garbage", 2}}));
  REQUIRE_OK(opened);
  ChunkIndex& index = **opened;
  // The segment of a name's location tells how often it was put; the ordinal is its number.
  constexpr uint64_t kStable = 600;
  constexpr uint64_t kChanging = 300;
  const auto put = [&](uint64_t number, uint32_t version, uint64_t sequence) {
    const IndexEntry entry{NameOf(number),
                           {.segment = version, .ordinal = static_cast<uint32_t>(number)}};
    return index.Put({&entry, 1}, sequence);
  };
  uint64_t sequence = 1;
  for (uint64_t i = 0; i < kStable + kChanging; ++i) REQUIRE_OK(put(i, 1, ++sequence));

  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<uint64_t> lookups{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      std::map<uint64_t, uint32_t> seen;  // versions never fall
      while (!stop) {
        std::vector<uint64_t> numbers;
        std::vector<ChunkName> names;
        for (int i = 0; i < 50; ++i) {
          numbers.push_back(random.Below(kStable + kChanging));
          names.push_back(NameOf(numbers.back()));
        }
        std::vector<Answer> answers(names.size());
        if (!index.Get(names, answers).ok()) ++wrong;
        for (size_t i = 0; i < names.size(); ++i) {
          if (!answers[i] || answers[i]->ordinal != numbers[i]) {
            ++wrong;
          } else if (numbers[i] < kStable && answers[i]->segment != 1) {
            ++wrong;
          } else if (std::exchange(seen[numbers[i]], answers[i]->segment) > answers[i]->segment) {
            ++wrong;
          }
        }
        lookups += names.size();
      }
    });
  }
  threads.emplace_back([&] {
    for (uint64_t round = 0; !stop; ++round) {
      uint64_t listed = 0;
      const Status all = index.ForEach([&](const OrderedEntry&) {
        ++listed;
        return Status::Ok();
      });
      if (!all.ok() || listed < kStable + kChanging) ++wrong;
      if (!index.Verify([&](const IndexFinding&) { ++wrong; }).ok()) ++wrong;
      if (!index.SetMemoryLimit(round % 2 == 0 ? kNoMemoryLimit : 0).ok()) ++wrong;
    }
  });
  for (uint32_t version = 2; version < 40 || lookups < 2000; ++version) {
    for (uint64_t i = 0; i < kChanging; ++i) {
      REQUIRE_OK(put(kStable + i, version, ++sequence));
    }
    for (uint64_t i = 0; i < 20; ++i) {
      REQUIRE_OK(put(kStable + kChanging + 20 * version + i, 1, ++sequence));
    }
    if (version % 4 == 0) REQUIRE_OK(index.Flush());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(index.stats().merges > 0);
  CHECK(index.stats().damaged_pages == 0);
  REQUIRE_OK(index.Close());
}

}  // namespace siltfs::testing
