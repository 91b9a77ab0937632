// SliceBloom: no name of a covered segment is ever ruled out, whatever happens to the files; and
// its costs are those of the formulas.
#include "index/slice_bloom/slice_bloom.h"

#include <cmath>
#include <utility>

#include "hook_env.h"
#include "index/slice_bloom/slice_filter.h"
#include "slice_bloom_fixture.h"

namespace siltfs::testing {

TEST_CASE("names are found in memory, in slicefilters, and after each opening") {
  const uint32_t groups_per_filter = GENERATE(1U, 7U, 8U, 20U);
  SliceBloomShape shape = kSmallBloom;
  shape.groups_per_filter = groups_per_filter;
  SliceBloomFixture fixture(shape);
  Random random(groups_per_filter);
  for (SegmentId segment = 1; segment <= 150; ++segment) {
    fixture.Add(segment, random.Below(100));
    if (segment % 50 != 0) continue;
    CHECK(fixture.Check() == segment);
    REQUIRE_OK(fixture.bloom->Close());
    fixture.Open();
    CHECK(fixture.Check() == segment);  // the group in memory was saved
  }
  const SliceBloomStats stats = fixture.bloom->stats();
  CHECK(stats.groups > 25);
  CHECK(stats.filters == 4 * ((stats.groups + groups_per_filter - 1) / groups_per_filter));
  CHECK(stats.damaged_pages == 0);
  CHECK(fixture.Damaged() == 0);
}

TEST_CASE("few groups are reported that do not have the name") {
  const unsigned bits = GENERATE(15U, 32U);
  const unsigned probes = bits == 15 ? 8 : 3;
  constexpr uint32_t kGroups = 64;
  constexpr uint64_t kNames = 4000;
  SliceBloomFixture fixture({.partition_bits = 3,
                             .names_per_group = kNames,
                             .bits_per_name = bits,
                             .probes = probes,
                             .groups_per_filter = kGroups});
  for (SegmentId segment = 1; segment <= kGroups; ++segment) fixture.Add(segment, kNames);
  REQUIRE(fixture.bloom->stats().groups == kGroups);
  constexpr uint64_t kAbsent = 40'000;
  const uint64_t before = fixture.bloom->stats().flash_reads;
  uint64_t groups = 0;
  uint64_t passed = 0;
  for (const auto& found : fixture.Find(NamesOf(5'000'000, kAbsent))) {
    groups += found.size();
    passed += found.empty() ? 0 : 1;
  }
  const double h = probes;
  const double each = std::pow(1 - std::exp(-h / bits), h);
  INFO("theory " << each);
  CHECK(static_cast<double>(groups) / (kAbsent * kGroups) == Approx(each).epsilon(0.1));
  CHECK(static_cast<double>(passed) / kAbsent ==
        Approx(1 - std::pow(1 - each, kGroups)).epsilon(0.1));
  const double reads = static_cast<double>(fixture.bloom->stats().flash_reads - before) / kAbsent;
  CHECK(reads <= h);
}

TEST_CASE("each slicefilter rules groups out") {
  SliceBloomShape shape = kSmallBloom;
  shape.bits_per_name = 32;
  shape.groups_per_filter = 5;
  SliceBloomFixture fixture(shape);
  for (SegmentId segment = 1; segment <= 23; ++segment) fixture.Add(segment, 200);
  uint64_t groups = 0;
  for (const auto& found : fixture.Find(NamesOf(5'000'000, 2000))) groups += found.size();
  CHECK(static_cast<double>(groups) / (2000 * 23) < 0.0015);  // the theory gives 0.0007
}

TEST_CASE("memory for each name is the filter of one group, shared by all groups") {
  SliceBloomFixture fixture({.partition_bits = 4,
                             .names_per_group = 10'000,
                             .bits_per_name = 32,
                             .probes = 3,
                             .groups_per_filter = 256});
  const uint64_t filters = 10'000 * 32 / 8;
  CHECK(fixture.bloom->stats().memory_bytes >= filters);
  CHECK(fixture.bloom->stats().memory_bytes < filters + 4'000);
  const uint64_t before = fixture.bloom->stats().flash_bytes_written;
  for (SegmentId segment = 1; segment <= 64; ++segment) fixture.Add(segment, 10'000);
  // A row of c columns has c / 8 bytes, rounded up, for each of 32 positions of a name.
  double written = 0;
  for (uint32_t column = 1; column <= 64; ++column) {
    written += 32.0 * 10'000 * SliceFilter::RowBytes(column);
  }
  CHECK(static_cast<double>(fixture.bloom->stats().flash_bytes_written - before) ==
        Approx(written).epsilon(0.05));
  // The fixed part is that of the check above.
  CHECK(fixture.bloom->stats().memory_bytes < filters + 4'000 + 64 * 200);
}

TEST_CASE("a lookup reads a page for each position, and fewer if groups are ruled out early") {
  SliceBloomFixture fixture({.partition_bits = 0,
                             .names_per_group = 5'000,
                             .bits_per_name = 32,
                             .probes = 3,
                             .groups_per_filter = 16});
  for (SegmentId segment = 1; segment <= 16; ++segment) fixture.Add(segment, 5'000);
  const uint64_t before = fixture.bloom->stats().flash_reads;
  fixture.Find(NamesOf(3, 2000));
  const double hits = static_cast<double>(fixture.bloom->stats().flash_reads - before) / 2000;
  CHECK(hits > 2.9);
  CHECK(hits <= 3);
  const uint64_t between = fixture.bloom->stats().flash_reads;
  fixture.Find(NamesOf(1'000'000, 2000));
  const double misses = static_cast<double>(fixture.bloom->stats().flash_reads - between) / 2000;
  // A position is set in one of 16 groups with the probability 1 - 0.911^16 = 0.78.
  CHECK(misses < 2.5);
}

TEST_CASE("segments leave their groups, and slicefilters without groups are removed") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 200; ++segment) fixture.Add(segment, 100);
  const uint64_t before = fixture.FileBytes();
  // 100 groups of two segments; 80 of them lose one segment, which makes none sparse.
  for (SegmentId segment = 1; segment <= 160; segment += 2) {
    REQUIRE_OK(fixture.bloom->Remove(segment));
    fixture.counts.erase(segment);
  }
  CHECK(fixture.bloom->Sparse().empty());
  CHECK(fixture.Check() == 120);
  for (const auto& found : fixture.Find(NamesOf(1, 100))) {
    CHECK(std::ranges::find(found, 1U) == found.end());
  }
  // Two segments move to the present group.
  fixture.Add(2, 100);
  fixture.Add(4, 100);
  CHECK(fixture.Check() == 120);
  for (SegmentId segment = 6; segment <= 160; segment += 2) {
    REQUIRE_OK(fixture.bloom->Remove(segment));
    fixture.counts.erase(segment);
  }
  REQUIRE_OK(fixture.bloom->Close());
  CHECK(fixture.FileBytes() < before / 2);
  fixture.Open();
  CHECK(fixture.Check() == 42);
  CHECK(fixture.bloom->stats().groups == 21);
  CHECK(fixture.Damaged() == 0);
}

TEST_CASE("the newest slicefilter stays, even if its groups have no segments") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 6; ++segment) fixture.Add(segment, 100);
  for (SegmentId segment = 1; segment <= 6; ++segment) {
    REQUIRE_OK(fixture.bloom->Remove(segment));
    fixture.counts.erase(segment);
  }
  REQUIRE_OK(fixture.bloom->Close());
  fixture.Open();
  CHECK(fixture.bloom->stats().filters == 4);
  CHECK(fixture.bloom->stats().groups == 0);
  for (SegmentId segment = 11; segment <= 14; ++segment) fixture.Add(segment, 100);
  CHECK(fixture.Check() == 4);
  CHECK(fixture.bloom->stats().damaged_pages == 0);
}

TEST_CASE("a group with few names left is sparse, and is added again") {
  SliceBloomShape shape = kSmallBloom;
  shape.names_per_group = 1000;
  SliceBloomFixture fixture(shape);
  for (SegmentId segment = 1; segment <= 20; ++segment) fixture.Add(segment, 100);
  REQUIRE(fixture.bloom->stats().groups == 2);
  for (SegmentId segment = 1; segment <= 8; ++segment) {
    REQUIRE_OK(fixture.bloom->Remove(segment));
    fixture.counts.erase(segment);
  }
  CHECK(fixture.bloom->Sparse() == std::vector<SegmentId>{9, 10});
  for (const SegmentId segment : fixture.bloom->Sparse()) fixture.Add(segment, 100);
  CHECK(fixture.bloom->Sparse().empty());
  CHECK(fixture.bloom->stats().groups == 1);
  CHECK(fixture.Check() == 12);
}

TEST_CASE("shapes that make no sense are refused") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kBloomDirectory));
  const auto open = [&](const SliceBloomShape& shape) {
    return SliceBloom::Open(env, {.directory = kBloomDirectory, .shape = shape, .secret = 1})
        .status();
  };
  CHECK(open({.names_per_group = 0}).Is(StatusCode::kInvalidArgument));
  CHECK(open({.probes = 17}).Is(StatusCode::kInvalidArgument));
  CHECK(open({.groups_per_filter = 257}).Is(StatusCode::kInvalidArgument));
  CHECK(open({.partition_bits = 0, .names_per_group = 1U << 30}).Is(StatusCode::kInvalidArgument));
  CHECK(open({.partition_bits = 0, .names_per_group = 1U << 20}).Is(StatusCode::kInvalidArgument));
  CHECK(open({.partition_bits = 16, .names_per_group = 1U << 27}).Is(StatusCode::kInvalidArgument));
  REQUIRE_OK(open({}));
}

TEST_CASE("further names of a segment of the present group are added") {
  SliceBloomFixture fixture(kSmallBloom);
  const auto names = NamesOf(1, 80);
  REQUIRE_OK(fixture.bloom->Add(1, std::vector(names.begin(), names.begin() + 50)));
  REQUIRE_OK(fixture.bloom->Close());
  fixture.Open();
  REQUIRE_OK(fixture.bloom->Add(1, names));
  fixture.counts[1] = 80;
  CHECK(fixture.Check() == 1);
  REQUIRE_OK(fixture.bloom->Close());
  fixture.Open();
  CHECK(fixture.Check() == 1);
  REQUIRE_OK(fixture.bloom->EndGroup());
  CHECK(fixture.Check() == 1);
}

TEST_CASE("a segment that was added again while a name is looked up is found") {
  const bool ended = GENERATE(false, true);
  SliceBloomFixture fixture(kSmallBloom);
  HookEnv hooks(fixture.env);
  fixture.bloom.reset();
  auto opened = SliceBloom::Open(hooks, fixture.options);
  REQUIRE_OK(opened);
  fixture.bloom = std::move(*opened);
  for (SegmentId segment = 1; segment <= 10; ++segment) fixture.Add(segment, 100);
  bool moved = false;
  hooks.on_read = [&](const std::string&) {
    if (std::exchange(moved, true)) return;
    REQUIRE_OK(fixture.bloom->Add(3, NamesOf(3, 100)));
    if (ended) REQUIRE_OK(fixture.bloom->EndGroup());
  };
  const auto found = fixture.Find({NamesOf(3, 1)[0]})[0];
  CHECK(moved);
  CHECK(std::ranges::count(found, 3U) == 1);
  CHECK(fixture.Check() == 10);
  fixture.bloom.reset();  // before its Env
}

TEST_CASE("a name of the present group is found while the group ends") {
  SliceBloomFixture fixture(kSmallBloom);
  HookEnv hooks(fixture.env);
  fixture.bloom.reset();
  auto opened = SliceBloom::Open(hooks, fixture.options);
  REQUIRE_OK(opened);
  fixture.bloom = std::move(*opened);
  for (SegmentId segment = 1; segment <= 11; ++segment) fixture.Add(segment, 100);
  bool ended = false;
  hooks.on_read = [&](const std::string&) {
    if (std::exchange(ended, true)) return;
    REQUIRE_OK(fixture.bloom->EndGroup());
    fixture.Add(12, 100);
  };
  const auto found = fixture.Find({NamesOf(11, 1)[0]})[0];
  CHECK(ended);
  CHECK(std::ranges::count(found, 11U) == 1);
  fixture.bloom.reset();  // before its Env
}

TEST_CASE("a new segment is not reported for other names that are looked up meanwhile") {
  SliceBloomFixture fixture(kSmallBloom);
  HookEnv hooks(fixture.env);
  fixture.bloom.reset();
  auto opened = SliceBloom::Open(hooks, fixture.options);
  REQUIRE_OK(opened);
  fixture.bloom = std::move(*opened);
  for (SegmentId segment = 1; segment <= 10; ++segment) fixture.Add(segment, 100);
  bool added = false;
  hooks.on_read = [&](const std::string&) {
    if (!std::exchange(added, true)) fixture.Add(11, 10);
  };
  const auto found = fixture.Find({NamesOf(3, 1)[0]})[0];
  CHECK(added);
  CHECK(std::ranges::count(found, 3U) == 1);
  CHECK(std::ranges::count(found, 11U) == 0);
  fixture.bloom.reset();  // before its Env
}

TEST_CASE("a segment that was removed from a saved group stays removed") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 3; ++segment) fixture.Add(segment, 50);
  REQUIRE_OK(fixture.bloom->Close());
  fixture.Open();
  REQUIRE_OK(fixture.bloom->Remove(2));
  REQUIRE_OK(fixture.bloom->Close());
  fixture.Open();
  CHECK_FALSE(fixture.bloom->Covers(2));
  CHECK(fixture.Check() == 2);
}

TEST_CASE("groups that ended last come first") {
  SliceBloomShape shape = kSmallBloom;
  shape.groups_per_filter = 3;
  SliceBloomFixture fixture(shape);
  const auto names = NamesOf(1, 200);
  for (SegmentId segment = 1; segment <= 8; ++segment) {
    REQUIRE_OK(fixture.bloom->Add(segment, names));
  }
  REQUIRE_OK(fixture.bloom->Add(9, {names.data(), 100}));
  for (const auto& found : fixture.Find({names.begin(), names.begin() + 100})) {
    REQUIRE(found == std::vector<SegmentId>{9, 8, 7, 6, 5, 4, 3, 2, 1});
  }
}

TEST_CASE("one that was opened read-only answers and changes nothing") {
  SliceBloomFixture fixture(kSmallBloom);
  fixture.options.read_only = true;
  fixture.Open();
  for (SegmentId segment = 1; segment <= 9; ++segment) {
    REQUIRE_CODE(fixture.bloom->Add(segment, NamesOf(segment, 50)), kReadOnly);
  }
  fixture.options.read_only = false;
  fixture.Open();
  for (SegmentId segment = 1; segment <= 9; ++segment) fixture.Add(segment, 50);
  REQUIRE_OK(fixture.bloom->EndGroup());  // the manifest has edits
  fixture.options.read_only = true;
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  fixture.Open();
  CHECK(fixture.Check() == 9);
  CHECK(fixture.Damaged() == 0);
  REQUIRE_CODE(fixture.bloom->Add(10, NamesOf(10, 50)), kReadOnly);
  REQUIRE_CODE(fixture.bloom->Remove(1), kReadOnly);
  REQUIRE_CODE(fixture.bloom->EndGroup(), kReadOnly);
  CHECK(fixture.Check() == 9);
  REQUIRE_OK(fixture.bloom->Close());
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);

  // A directory without a SliceBloom is an empty one.
  SimEnv empty;
  REQUIRE_OK(empty.CreateDirectory(kBloomDirectory));
  auto opened = SliceBloom::Open(empty, fixture.options);
  REQUIRE_OK(opened);
  std::vector<std::vector<SegmentId>> segments;
  REQUIRE_OK((*opened)->Find(NamesOf(1, 10), segments));
  CHECK(segments == std::vector<std::vector<SegmentId>>(10));
  CHECK(empty.ListDirectory(kBloomDirectory)->empty());
}

TEST_CASE("a second Close does nothing, and further writes are refused") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 9; ++segment) fixture.Add(segment, 50);
  REQUIRE_OK(fixture.bloom->Close());
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  REQUIRE_OK(fixture.bloom->Close());
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);
  REQUIRE_CODE(fixture.bloom->Add(10, NamesOf(10, 50)), kInvalidArgument);
  REQUIRE_CODE(fixture.bloom->EndGroup(), kInvalidArgument);
  CHECK(fixture.Check() == 9);
  fixture.Open();
  const uint64_t bytes = fixture.bloom->stats().flash_bytes_written;
  REQUIRE_OK(fixture.bloom->Close());  // the group that is saved already is not written again
  CHECK(fixture.bloom->stats().flash_bytes_written - bytes < 4096);
  fixture.Open();
  CHECK(fixture.Check() == 9);
}

TEST_CASE("names without a segment are refused") {
  SliceBloomFixture fixture(kSmallBloom);
  REQUIRE_CODE(fixture.bloom->Add(kNoSegment, NamesOf(1, 10)), kInvalidArgument);
}

}  // namespace siltfs::testing
