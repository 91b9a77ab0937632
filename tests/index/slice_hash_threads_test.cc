// Lookups, listings, verification and limit changes run while another thread puts.
#include <atomic>
#include <thread>

#include "slice_hash_fixture.h"
#include "store/base/random.h"

namespace siltfs::testing {

TEST_CASE("SliceHash answers in all threads while one puts and another changes the limit") {
  const uint64_t seed = GENERATE(1, 2);
  SliceHashFixture fixture({{"table_bits", 1},
                            {"incarnations", 16},
                            {"filter_bits", 10},
                            {"directories", 2},
                            {"spread", seed - 1}});
  fixture.options.partition_bits = 1;
  fixture.options.pages_per_checkpoint = 30;
  fixture.options.least_log_pages = 2;
  auto index = fixture.Open();
  fixture.Put(*index, 0, 2000);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> rounds{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed * 10 + t);
      while (!stop) {
        std::vector<uint64_t> numbers;
        std::vector<ChunkName> names;
        for (uint64_t i = 1 + random.Below(60); i-- > 0;) {
          numbers.push_back(random.Below(2000));
          names.push_back(NameOf(numbers.back()));
        }
        std::vector<Answer> answers(names.size());
        if (!index->Get(names, answers).ok()) ++wrong;
        for (size_t i = 0; i < names.size(); ++i) {
          if (answers[i] != SliceEntry(numbers[i]).location) ++wrong;
        }
        ++rounds;
      }
    });
  }
  threads.emplace_back([&] {
    Random random(seed);
    while (!stop) {
      const uint64_t limits[] = {0, kNoMemoryLimit, (1U << 20) + random.Below(1U << 18)};
      if (!index->SetMemoryLimit(limits[random.Below(3)]).ok()) ++wrong;
      uint64_t seen = 0;
      const Status all = index->ForEach([&](const OrderedEntry&) {
        ++seen;
        return Status::Ok();
      });
      if (!all.ok() || seen < 2000) ++wrong;
      const Status verified = index->Verify([&](const IndexFinding&) { ++wrong; });
      if (!verified.ok() || index->stats().engine != "slice_hash") ++wrong;
    }
  });
  for (uint64_t part = 0; part < 60 || rounds < 50; ++part) {
    fixture.Put(*index, 2000 + part * 50, 50);
    if (part % 9 == 0) REQUIRE_OK(index->Flush());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(index->stats().merges > 0);
  CHECK(index->stats().damaged_pages == 0);
  REQUIRE_OK(index->Close());
}

}  // namespace siltfs::testing
