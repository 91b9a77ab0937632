// Threads look chunks up while another thread adds chunks and merges them.
#include <atomic>
#include <thread>

#include "slice_lsh_fixture.h"

namespace siltfs::testing {

TEST_CASE("SliceLSH finds chunks in all threads while slicetables are merged") {
  const uint64_t seed = GENERATE(1, 2);
  SliceLshFixture fixture({.growth = 2, .most_levels = 3});
  constexpr uint64_t kStaying = 500;
  fixture.AddAll(0, kStaying);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> rounds{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed * 10 + t);
      while (!stop) {
        std::vector<uint64_t> features;
        std::vector<uint64_t> chunks;
        for (uint64_t i = 1 + random.Below(60); i-- > 0;) {
          chunks.push_back(random.Below(kStaying));
          const auto one = FeaturesOf(chunks.back(), 3);
          features.insert(features.end(), one.begin(), one.end());
        }
        std::vector<std::vector<SliceLshCandidate>> found;
        if (!fixture.lsh->Find(features, found).ok()) ++wrong;
        for (size_t i = 0; i < chunks.size(); ++i) {
          const SliceLshCandidate expected{.place = PlaceOf(chunks[i]), .tables = 3};
          if (std::ranges::count(found[i], expected) != 1) ++wrong;
        }
        ++rounds;
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop) {
      if (fixture.lsh->stats().entries > 300'000) ++wrong;
      const Status verified = fixture.lsh->Verify([&](const std::string&) { ++wrong; });
      if (!verified.ok()) ++wrong;
    }
  });
  for (uint64_t chunk = kStaying; chunk < 3000 || rounds < 100; ++chunk) {
    REQUIRE_OK(fixture.lsh->Add(FeaturesOf(chunk, 3), PlaceOf(chunk)));
    if (chunk % 97 == 0) REQUIRE_OK(fixture.lsh->Flush());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(fixture.lsh->stats().damaged_pages == 0);
  REQUIRE_OK(fixture.lsh->Close());
  fixture.Open();
  CHECK(fixture.CountFound(0, kStaying) == kStaying);
}

}  // namespace siltfs::testing
