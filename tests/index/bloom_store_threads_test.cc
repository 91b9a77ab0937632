// Lookups, listings and limit changes run while a thread puts, writes buffers and splits
// partitions.
#include <atomic>
#include <thread>

#include "history.h"
#include "index/bloom_store/bloom_store_engine.h"
#include "index/flash/flash_index.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";
constexpr uint64_t kOld = 1500;

IndexEntry Numbered(uint64_t number) {
  return {NameOf(number), {1, static_cast<uint32_t>(number), 1}};
}

}  // namespace

TEST_CASE("lookups from two threads are right while another puts and limits change") {
  const uint64_t prefilter_bits = GENERATE(0, 6);
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  auto opened = OpenFlashIndex(env,
                               {.directory = kDirectory,
                                .partition_bits = 1,
                                .hash_secret = 5,
                                .read_depth = 4,
                                .pages_per_checkpoint = 6,
                                .least_log_pages = 2,
                                .least_dead_pages = 4,
                                .most_pages_per_file = 8},
                               MakeBloomStoreEngine({{"chain_length", 5},
                                                     {"buffered_filters", 2},
                                                     {"prefilter_bits", prefilter_bits},
                                                     {"record_bytes", 64}}));
  REQUIRE_OK(opened);
  ChunkIndex& index = **opened;
  for (uint64_t i = 0; i < kOld; ++i) {
    const IndexEntry entry = Numbered(i);
    REQUIRE_OK(index.Put({&entry, 1}, 1));
  }
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<uint64_t> lookups{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(t + 1);
      while (!stop) {
        std::vector<ChunkName> names;
        std::vector<uint64_t> numbers;
        for (uint64_t i = 0; i < (t == 0 ? 2 : 40); ++i) {
          numbers.push_back(random.Below(kOld));
          names.push_back(NameOf(numbers.back()));
        }
        names.push_back(NameOf(1'000'000 + random.Below(1000)));
        std::vector<Answer> answers(names.size());
        if (!index.Get(names, answers).ok()) ++wrong;
        for (size_t i = 0; i < numbers.size(); ++i) {
          if (answers[i] != Numbered(numbers[i]).location) ++wrong;
        }
        if (answers.back()) ++wrong;
        ++lookups;
      }
    });
  }
  threads.emplace_back([&] {
    Random random(3);
    while (!stop) {
      const uint64_t limits[] = {0, kNoMemoryLimit, kLeastFlashMemory + random.Below(1U << 18)};
      if (!index.SetMemoryLimit(limits[random.Below(3)]).ok()) ++wrong;
      uint64_t seen = 0;
      const Status all = index.ForEach([&](const OrderedEntry&) {
        ++seen;
        return Status::Ok();
      });
      if (!all.ok() || seen < kOld) ++wrong;
      if (index.stats().stores.empty()) ++wrong;
    }
  });
  for (uint64_t i = 0; i < 6000 || lookups < 200; ++i) {
    // Old names are put again, so that their pages change.
    const IndexEntry entries[] = {Numbered(kOld + i % 6000), Numbered(i % kOld)};
    REQUIRE_OK(index.Put(entries, 2 + i));
    if (i % 500 == 0) REQUIRE_OK(index.Flush());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(index.stats().merges > 20);
  REQUIRE_OK(index.Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
  REQUIRE_OK(index.Close());
}

}  // namespace siltfs::testing
