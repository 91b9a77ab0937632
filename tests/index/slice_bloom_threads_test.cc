// Threads look names up while another thread adds segments, removes them and ends groups.
#include <atomic>
#include <thread>

#include "slice_bloom_fixture.h"

namespace siltfs::testing {

TEST_CASE("SliceBloom finds names in all threads while groups end and segments move") {
  const uint64_t seed = GENERATE(1, 2);
  SliceBloomShape shape = kSmallBloom;
  shape.groups_per_filter = 3;
  SliceBloomFixture fixture(shape);
  constexpr SegmentId kStaying = 30;  // these are never removed, but some of them move
  constexpr uint64_t kNames = 50;
  for (SegmentId segment = 1; segment <= kStaying; ++segment) fixture.Add(segment, kNames);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> rounds{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed * 10 + t);
      while (!stop) {
        std::vector<uint64_t> names;
        std::vector<SegmentId> expected;
        for (uint64_t i = 1 + random.Below(60); i-- > 0;) {
          expected.push_back(static_cast<SegmentId>(1 + random.Below(kStaying)));
          names.push_back(NamesOf(expected.back(), kNames)[random.Below(kNames)]);
        }
        std::vector<std::vector<SegmentId>> found;
        if (!fixture.bloom->Find(names, found).ok()) ++wrong;
        for (size_t i = 0; i < names.size(); ++i) {
          if (std::ranges::count(found[i], expected[i]) != 1) ++wrong;
        }
        ++rounds;
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop) {
      if (!fixture.bloom->Covers(kStaying)) ++wrong;
      if (fixture.bloom->stats().segments < kStaying) ++wrong;
      fixture.bloom->Sparse();
      const Status verified = fixture.bloom->Verify([&](const std::string&) { ++wrong; });
      if (!verified.ok()) ++wrong;
    }
  });
  Random random(seed);
  SegmentId segment = kStaying;
  while (segment < 200 || rounds < 100) {
    ++segment;
    REQUIRE_OK(fixture.bloom->Add(segment, NamesOf(segment, kNames)));
    if (segment % 3 != 0) REQUIRE_OK(fixture.bloom->Remove(segment));
    const auto moved = static_cast<SegmentId>(1 + random.Below(kStaying));
    if (segment % 2 == 0) REQUIRE_OK(fixture.bloom->Add(moved, NamesOf(moved, kNames)));
    if (segment % 31 == 0) REQUIRE_OK(fixture.bloom->EndGroup());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(fixture.bloom->stats().damaged_pages == 0);
  REQUIRE_OK(fixture.bloom->Close());
  fixture.Open();
  CHECK(fixture.Check() == kStaying);
}

}  // namespace siltfs::testing
