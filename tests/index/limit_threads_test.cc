// Limit changes, lookups, puts, flushes and stats run concurrently, also during recovery.
#include <atomic>
#include <thread>

#include "silt_fixture.h"

namespace siltfs::testing {

TEST_CASE("limits change concurrently with all other calls, even during recovery") {
  const uint64_t seed = GENERATE(1, 2, 3, 4);
  SiltFixture fixture;
  fixture.options.partition_bits = 3;
  fixture.options.bucket_bits = seed % 2 == 0 ? 6 : 9;
  fixture.options.write_batch_pages = 1;
  fixture.options.background = true;
  {
    auto index = fixture.Open();
    for (uint64_t part = 0; part < 10; ++part) PutNumbers(*index, part * 2000, 2000, part + 1);
    REQUIRE_OK(index->Flush());
  }
  for (int life = 0; life < 6; ++life) {
    fixture.options.serve_early = life % 3 != 2;
    fixture.options.read_only = life == 4;
    fixture.options.memory_limit = life % 2 == 0 ? 0 : kNoMemoryLimit;
    auto index = fixture.Open();
    if (life == 3) continue;  // the index is destroyed while its thread recovers partitions
    if (life == 5) {
      REQUIRE_OK(index->Close());
      continue;
    }
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        Random random(seed * 10 + t);
        while (!stop) {
          std::vector<uint64_t> numbers;
          std::vector<ChunkName> names;
          for (int i = 0; i < 100; ++i) {
            numbers.push_back(random.Below(18'000));
            names.push_back(NameOf(numbers.back()));
          }
          std::vector<Answer> answers(names.size());
          if (!index->Get(names, answers).ok()) ++wrong;
          for (size_t i = 0; i < names.size(); ++i) {
            if (answers[i] != NumberedEntry(numbers[i]).location) ++wrong;
          }
        }
      });
    }
    threads.emplace_back([&] {
      Random random(seed);
      while (!stop) {
        const uint64_t limits[] = {0, kNoMemoryLimit, random.Below(1U << 21)};
        if (!index->SetMemoryLimit(limits[random.Below(3)]).ok()) ++wrong;
      }
    });
    threads.emplace_back([&] {
      while (!stop) {
        if (index->stats().engine.empty()) ++wrong;
        if (index->durable_sequence() == 0) ++wrong;
      }
    });
    threads.emplace_back([&] {
      while (!stop) {
        uint64_t seen = 0;
        const Status all = index->ForEach([&](const OrderedEntry&) {
          ++seen;
          return Status::Ok();
        });
        if (!all.ok() || seen < 18'000) ++wrong;
        const Status verified = index->Verify([&](const IndexFinding&) { ++wrong; });
        if (!verified.ok()) ++wrong;
      }
    });
    if (fixture.options.read_only) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    } else {
      for (uint64_t part = 0; part < 30; ++part) {
        const auto sequence = 100 * (static_cast<uint64_t>(life) + 1) + part;
        REQUIRE_OK(index->Put(NumberedEntries(18'000 + part * 300, 300), sequence));
        if (part % 5 == 0) REQUIRE_OK(index->Flush());
      }
    }
    stop = true;
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    if (life == 0) REQUIRE_OK(index->Close());
  }
}

}  // namespace siltfs::testing
