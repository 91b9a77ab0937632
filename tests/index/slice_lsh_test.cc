// SliceLSH: chunks that agree in a super-feature are found, the newest first; and its costs are
// those of its description.
#include "index/slice_lsh/slice_lsh.h"

#include <deque>
#include <set>
#include <utility>

#include "hook_env.h"
#include "index/device_directories.h"
#include "index/slice_lsh/lsh_buffer.h"
#include "index/slice_lsh/lsh_entry.h"
#include "slice_lsh_fixture.h"

namespace siltfs::testing {
namespace {

std::vector<SliceLshPlace> PlacesOf(const std::vector<SliceLshCandidate>& candidates) {
  std::vector<SliceLshPlace> places;
  for (const SliceLshCandidate& candidate : candidates) places.push_back(candidate.place);
  return places;
}

}  // namespace

TEST_CASE("resembling chunks are found in memory, in slicetables, and after each opening") {
  const unsigned tables = GENERATE(1U, 2U, 3U, 10U);
  SliceLshFixture fixture({.tables = tables});
  for (uint64_t end = 500; end <= 3000; end += 500) {
    fixture.AddAll(end - 500, end);
    CHECK(fixture.CountFound(0, end) == end);
    if (end % 1000 == 0) {
      REQUIRE_OK(fixture.lsh->Close());
      fixture.Open();
      CHECK(fixture.CountFound(0, end) == end);
    }
  }
  CHECK(fixture.CountFound(1'000'000, 1'002'000) == 0);
  const SliceLshStats stats = fixture.lsh->stats();
  CHECK(stats.entries == uint64_t{3000} * tables);
  CHECK(stats.damaged_pages == 0);
  CHECK(stats.overwritten_entries + stats.gone_entries + stats.repeated_entries == 0);
  CHECK(fixture.Faults() == 0);
}

TEST_CASE("a chunk is found by any one of its super-features") {
  const bool flushed = GENERATE(false, true);
  SliceLshFixture fixture;
  fixture.AddAll(0, 50);
  if (flushed) REQUIRE_OK(fixture.lsh->Flush());
  for (unsigned table = 0; table < 3; ++table) {
    auto features = FeaturesOf(999, 3);
    features[table] = FeaturesOf(7, 3)[table];
    CHECK(fixture.Find(features)[0] ==
          std::vector<SliceLshCandidate>{{.place = PlaceOf(7), .tables = 1}});
    // The same number in another table is another super-feature.
    features = FeaturesOf(999, 3);
    features[(table + 1) % 3] = FeaturesOf(7, 3)[table];
    CHECK(fixture.Find(features)[0].empty());
  }
}

TEST_CASE("candidates come by the number of tables, then the newest first") {
  const std::vector<uint64_t> flush_after = GENERATE(
      std::vector<uint64_t>{}, std::vector<uint64_t>{3}, std::vector<uint64_t>{1, 2, 3, 4, 5, 6});
  SliceLshFixture fixture({.growth = 2});
  const auto query = FeaturesOf(1, 3);
  const auto others = FeaturesOf(2, 3);
  const std::vector<std::vector<uint64_t>> chunks = {
      {query[0], others[1], others[2]}, {query[0], query[1], others[2]},
      {others[0], others[1], query[2]}, {query[0], query[1], query[2]},
      {others[0], query[1], query[2]},  {query[0], others[1], others[2]}};
  for (uint32_t i = 0; i < chunks.size(); ++i) {
    REQUIRE_OK(fixture.lsh->Add(chunks[i], {.segment = 1, .ordinal = i}));
    if (std::ranges::count(flush_after, i + 1) > 0) REQUIRE_OK(fixture.lsh->Flush());
  }
  const auto found = fixture.Find(query)[0];
  REQUIRE(found.size() == 6);
  std::vector<unsigned> tables;
  for (const auto& candidate : found) tables.push_back(candidate.tables);
  CHECK(tables == std::vector<unsigned>{3, 2, 2, 1, 1, 1});
  CHECK(found[0].place.ordinal == 3);
  if (flush_after.size() != 1) {
    CHECK(PlacesOf(found) ==
          std::vector<SliceLshPlace>{{1, 3}, {1, 4}, {1, 1}, {1, 5}, {1, 2}, {1, 0}});
  }
}

TEST_CASE("of each super-feature the newest chunks stay, however many there were") {
  const unsigned most = GENERATE(1U, 4U, 7U);
  SliceLshFixture fixture({.most_per_feature = most, .most_levels = 1});
  const auto features = FeaturesOf(1, 3);
  fixture.AddAll(100, 400);
  for (uint32_t i = 1; i <= 5000; ++i)
    REQUIRE_OK(fixture.lsh->Add(features, {.segment = i, .ordinal = i}));
  const auto check = [&](uint32_t newest) {
    std::vector<SliceLshCandidate> expected;
    for (unsigned i = 0; i < most; ++i) {
      expected.push_back({.place = {newest - i, newest - i}, .tables = 3});
    }
    auto found = fixture.Find(features)[0];
    REQUIRE(found.size() >= most);
    found.resize(most);
    CHECK(found == expected);
  };
  check(5000);
  REQUIRE_OK(fixture.lsh->Flush());
  check(5000);
  CHECK(fixture.Find(features)[0].size() == most);
  CHECK(fixture.lsh->stats().entries == 3 * (300 + most));
  CHECK(fixture.lsh->stats().repeated_entries == 3 * (5000 - most));
  REQUIRE_OK(fixture.lsh->Add(features, {.segment = 6000, .ordinal = 1}));
  REQUIRE_OK(fixture.lsh->Flush());
  CHECK(fixture.Find(features)[0][0] == SliceLshCandidate{.place = {6000, 1}, .tables = 3});
  CHECK(fixture.lsh->stats().entries == 3 * (300 + most));
  CHECK(fixture.CountFound(100, 400) == 300);
}

TEST_CASE("a chunk that is added again is there once, and is new again") {
  SliceLshFixture fixture({.most_levels = 1});
  for (int round = 0; round < 3; ++round) {
    fixture.AddAll(0, 60);
    fixture.AddAll(0, 60);
    CHECK(fixture.CountFound(0, 60) == 60);
    REQUIRE_OK(fixture.lsh->Flush());
    CHECK(fixture.lsh->stats().entries == 180);
  }
}

TEST_CASE("a table has few slicetables, each larger than all newer ones together") {
  const unsigned growth = GENERATE(2U, 8U);
  const unsigned levels = GENERATE(1U, 2U, 4U);
  SliceLshFixture fixture({.tables = 2, .growth = growth, .most_levels = levels});
  uint64_t most = 0;
  for (uint64_t chunk = 0; chunk < 20'000; ++chunk) {
    fixture.Add(chunk);
    most = std::max(most, fixture.lsh->stats().slicetables);
  }
  REQUIRE_OK(fixture.lsh->Flush());
  CHECK(most <= 2 * levels);
  CHECK(most >= 2 * std::min(levels, growth == 2 ? 4U : 3U));
  CHECK(fixture.CountFound(0, 20'000) >= 19'950);
  const SliceLshStats before = fixture.lsh->stats();
  fixture.CountFound(0, 1000);
  CHECK(fixture.lsh->stats().flash_reads - before.flash_reads == 1000 * before.slicetables);
  CHECK(fixture.lsh->stats().lookups - before.lookups == 1000);
  CHECK(fixture.Faults() == 0);
}

TEST_CASE("few bytes are written for each entry") {
  SliceLshFixture fixture({.tables = 1, .growth = 8}, 1 << 14);
  constexpr uint64_t kChunks = 60'000;
  fixture.AddAll(0, kChunks);
  REQUIRE_OK(fixture.lsh->Flush());
  // A buffer has 682 chunks, so there are log(88) / log(8), about two levels. In each an entry is
  // written some 4.5 times, and once more into the first.
  const double each =
      static_cast<double>(fixture.lsh->stats().flash_bytes_written) / kChunks / 13.8;
  INFO("each entry is written " << each << " times");
  CHECK(each < 12);
}

TEST_CASE("an entry takes less than 16 bytes of flash, in small stores, too") {
  // The buffer has its default size.
  const auto [chunks, most_bytes] =
      GENERATE(std::pair<uint64_t, double>{60'000, 15.0}, std::pair<uint64_t, double>{25'000, 15.0},
               std::pair<uint64_t, double>{5'000, 16.0}, std::pair<uint64_t, double>{1'300, 17.0});
  SliceLshFixture fixture({}, SliceLshOptions().buffer_bytes);
  fixture.AddAll(0, chunks);
  REQUIRE_OK(fixture.lsh->Close());
  const double each = static_cast<double>(fixture.FileBytes()) / static_cast<double>(3 * chunks);
  INFO(chunks << " chunks, " << each << " bytes");
  CHECK(each < most_bytes);
  CHECK(fixture.FileBytes(".pages") == fixture.lsh->stats().flash_bytes);
}

TEST_CASE("a store with few chunks has one page for each table") {
  SliceLshFixture fixture({}, SliceLshOptions().buffer_bytes);
  REQUIRE_OK(fixture.lsh->Close());
  CHECK(fixture.FileBytes(".pages") == 0);
  fixture.Open();
  fixture.AddAll(0, 300);
  REQUIRE_OK(fixture.lsh->Close());
  CHECK(fixture.FileBytes(".pages") == 3 * 4096);
  CHECK(fixture.FileBytes() < 3 * 4096 + 1024);
}

TEST_CASE("memory stays below two MiB, whatever chunks are added") {
  const bool alike = GENERATE(false, true);
  const unsigned tables = GENERATE(1U, 3U, 10U);
  SliceLshFixture fixture({.tables = tables}, SliceLshOptions().buffer_bytes);
  uint64_t most = 0;
  for (uint64_t chunk = 0; chunk < 60'000; ++chunk) {
    REQUIRE_OK(fixture.lsh->Add(FeaturesOf(alike ? chunk % 3 : chunk, tables), PlaceOf(chunk)));
    if (chunk % 1000 == 0) most = std::max(most, fixture.lsh->stats().memory_bytes);
  }
  fixture.CountFound(0, 100);
  most = std::max(most, fixture.lsh->stats().memory_bytes);
  CHECK(most > SliceLshOptions().buffer_bytes / 2);
  CHECK(most < uint64_t{5} << 18);  // 1.25 MiB
}

TEST_CASE("a full table overwrites its oldest entries") {
  SliceLshFixture fixture({.growth = 2, .most_levels = 2, .most_entries = 2000});
  uint64_t most_bytes = 0;
  for (uint64_t chunk = 0; chunk < 12'000; ++chunk) {
    fixture.Add(chunk);
    most_bytes = std::max(most_bytes, fixture.lsh->stats().flash_bytes);
  }
  REQUIRE_OK(fixture.lsh->Flush());
  const SliceLshStats stats = fixture.lsh->stats();
  CHECK(stats.entries < uint64_t{3} * 2000 * 2);
  CHECK(stats.entries > uint64_t{3} * 2000);
  CHECK(stats.overwritten_entries > uint64_t{3} * 7000);
  // The old and the new slicetable, and the newer one.
  CHECK(most_bytes < uint64_t{3} * 4096 * 3 * 8);
  CHECK(fixture.CountFound(0, 4000) < 40);
  CHECK(fixture.CountFound(11'000, 12'000) > 950);
  CHECK(fixture.Faults() == 0);
}

TEST_CASE("entries of segments that are gone are dropped when they are written again") {
  std::set<SegmentId> gone;
  SliceLshFixture fixture({.most_levels = 1});
  fixture.options.is_gone = [&](SegmentId segment) { return gone.contains(segment); };
  fixture.Open();
  fixture.AddAll(0, 300);
  REQUIRE_OK(fixture.lsh->Flush());
  for (SegmentId segment = 1; segment <= 20; ++segment) gone.insert(segment);
  fixture.AddAll(300, 310);
  REQUIRE_OK(fixture.lsh->Flush());
  CHECK(fixture.lsh->stats().gone_entries == 600);
  CHECK(fixture.lsh->stats().entries == 330);
  CHECK(fixture.CountFound(0, 200) == 0);
  CHECK(fixture.CountFound(200, 310) == 110);
  // If all are gone, only the new ones are left.
  for (SegmentId segment = 1; segment <= 40; ++segment) gone.insert(segment);
  fixture.Add(500);
  REQUIRE_OK(fixture.lsh->Close());
  CHECK(fixture.FileBytes(".pages") == 3 * 4096);
  fixture.Open();
  CHECK(fixture.CountFound(500, 501) == 1);
  CHECK(fixture.lsh->stats().entries == 3);
}

TEST_CASE("tables can be in directories of their own") {
  const unsigned directories = GENERATE(2U, 3U, 8U);
  SliceLshFixture fixture({.directories = directories});
  fixture.AddAll(0, 400);
  REQUIRE_OK(fixture.lsh->Close());
  CHECK(fixture.FileBytes(".pages") == 0);
  for (unsigned number = 0; number < std::min(directories, 3U); ++number) {
    const auto there =
        fixture.env.ListDirectory(JoinPath(kLshDirectory, DeviceDirectoryName(number)));
    REQUIRE_OK(there);
    CHECK(!there->empty());
  }
  fixture.Open();
  CHECK(fixture.CountFound(0, 400) == 400);
  fixture.AddAll(400, 900);
  CHECK(fixture.CountFound(0, 900) == 900);
  CHECK(fixture.Faults() == 0);
}

TEST_CASE("an existing SliceLSH keeps its shape and its secret") {
  SliceLshFixture fixture({.tables = 5, .growth = 3});
  fixture.AddAll(0, 100);
  REQUIRE_OK(fixture.lsh->Close());
  fixture.options.shape = {.tables = 2};
  fixture.options.secret = 77;
  fixture.Open();
  CHECK(fixture.lsh->shape() == SliceLshShape{.tables = 5, .growth = 3});
  CHECK(fixture.lsh->stats().shape == fixture.lsh->shape());
  CHECK(fixture.CountFound(0, 100) == 100);
}

TEST_CASE("SliceLSH refuses shapes, options and arguments that make no sense") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kLshDirectory));
  const auto open = [&](const SliceLshShape& shape, uint64_t buffer = 4096, unsigned depth = 8) {
    return SliceLsh::Open(env, {.directory = kLshDirectory,
                                .shape = shape,
                                .secret = 1,
                                .buffer_bytes = buffer,
                                .read_depth = depth})
        .status();
  };
  for (const SliceLshShape& shape :
       {SliceLshShape{.tables = 0}, SliceLshShape{.tables = 11},
        SliceLshShape{.most_per_feature = 0}, SliceLshShape{.most_per_feature = 65},
        SliceLshShape{.growth = 1}, SliceLshShape{.growth = 65}, SliceLshShape{.most_levels = 0},
        SliceLshShape{.most_levels = 9}, SliceLshShape{.most_entries = 0},
        SliceLshShape{.most_entries = (uint64_t{1} << 32) + 1}, SliceLshShape{.directories = 9}}) {
    CHECK(open(shape).Is(StatusCode::kInvalidArgument));
  }
  CHECK(open({}, 1023).Is(StatusCode::kInvalidArgument));
  CHECK(open({}, (uint64_t{1} << 28) + 1).Is(StatusCode::kInvalidArgument));
  CHECK(open({}, 4096, 0).Is(StatusCode::kInvalidArgument));
  SliceLshFixture fixture;
  REQUIRE_CODE(fixture.lsh->Add(FeaturesOf(1, 2), PlaceOf(1)), kInvalidArgument);
  REQUIRE_CODE(fixture.lsh->Add(FeaturesOf(1, 3), {.segment = kNoSegment}), kInvalidArgument);
  REQUIRE_CODE(fixture.lsh->Add(FeaturesOf(1, 3), {.segment = 1, .ordinal = 1U << 20}),
               kInvalidArgument);
  std::vector<std::vector<SliceLshCandidate>> candidates;
  REQUIRE_CODE(fixture.lsh->Find(FeaturesOf(1, 4), candidates), kInvalidArgument);
  REQUIRE_OK(fixture.lsh->Find({}, candidates));
  CHECK(candidates.empty());
  REQUIRE_OK(
      fixture.lsh->Add(FeaturesOf(1, 3), {.segment = UINT32_MAX, .ordinal = (1U << 20) - 1}));
  REQUIRE_OK(fixture.lsh->Close());
  REQUIRE_OK(fixture.lsh->Close());
  REQUIRE_CODE(fixture.lsh->Add(FeaturesOf(1, 3), PlaceOf(1)), kInvalidArgument);
  REQUIRE_CODE(fixture.lsh->Flush(), kInvalidArgument);
  fixture.Open();
  CHECK(PlacesOf(fixture.Find(FeaturesOf(1, 3))[0]) ==
        std::vector<SliceLshPlace>{{UINT32_MAX, (1U << 20) - 1}});
}

TEST_CASE("a SliceLSH that was opened read-only answers and changes nothing") {
  SliceLshFixture fixture;
  fixture.AddAll(0, 200);
  REQUIRE_OK(fixture.lsh->Flush());
  fixture.options.read_only = true;
  const uint64_t calls = fixture.env.Calls(SimCall::kMutating);
  fixture.Open();
  CHECK(fixture.CountFound(0, 200) == 200);
  CHECK(fixture.Faults() == 0);
  REQUIRE_CODE(fixture.lsh->Add(FeaturesOf(1, 3), PlaceOf(1)), kReadOnly);
  REQUIRE_CODE(fixture.lsh->Flush(), kReadOnly);
  REQUIRE_OK(fixture.lsh->Close());
  CHECK(fixture.env.Calls(SimCall::kMutating) == calls);

  // A directory without a SliceLSH is an empty one.
  SimEnv empty;
  REQUIRE_OK(empty.CreateDirectory(kLshDirectory));
  auto opened = SliceLsh::Open(empty, fixture.options);
  REQUIRE_OK(opened);
  std::vector<std::vector<SliceLshCandidate>> candidates;
  REQUIRE_OK((*opened)->Find(FeaturesOf(1, 3), candidates));
  CHECK(candidates == std::vector<std::vector<SliceLshCandidate>>(1));
  CHECK(empty.ListDirectory(kLshDirectory)->empty());
}

TEST_CASE("chunks are found while their slicetables are replaced") {
  SliceLshFixture fixture({.most_levels = 1});
  HookEnv hooks(fixture.env);
  fixture.lsh.reset();
  auto opened = SliceLsh::Open(hooks, fixture.options);
  REQUIRE_OK(opened);
  fixture.lsh = std::move(*opened);
  fixture.AddAll(0, 200);
  REQUIRE_OK(fixture.lsh->Flush());
  fixture.AddAll(200, 250);
  bool replaced = false;
  hooks.on_read = [&](const std::string&) {
    if (std::exchange(replaced, true)) return;
    fixture.AddAll(250, 300);
    REQUIRE_OK(fixture.lsh->Flush());
  };
  CHECK(fixture.CountFound(0, 250) == 250);
  CHECK(replaced);
  CHECK(fixture.CountFound(0, 300) == 300);
  CHECK(fixture.lsh->stats().damaged_pages == 0);
  fixture.lsh.reset();  // before its Env
}

TEST_CASE("the buffer of a SliceLSH gives the newest entries of each key") {
  const uint64_t seed = GENERATE(1, 2, 3);
  Random random(seed);
  const auto tables = static_cast<unsigned>(1 + random.Below(4));
  const auto most = static_cast<unsigned>(1 + random.Below(5));
  LshBuffer buffer(tables, most, 1 << 13);
  using Model = std::map<std::pair<unsigned, uint64_t>, std::deque<SliceLshPlace>>;
  Model model;
  uint64_t replaced = 0;
  for (uint32_t i = 0; !buffer.full(); ++i) {
    std::vector<uint64_t> keys;
    for (unsigned table = 0; table < tables; ++table) {
      keys.push_back(random.Below(40) * 1024);  // they share few chains
    }
    const SliceLshPlace place{.segment = i + 1, .ordinal = i % 3};
    const unsigned count = buffer.Add(keys, place);
    CHECK(buffer.Add(keys, place) == 0);
    unsigned expected = 0;
    for (unsigned table = 0; table < tables; ++table) {
      auto& places = model[{table, keys[table]}];
      places.push_front(place);
      if (places.size() <= most) continue;
      places.pop_back();
      ++expected;
    }
    REQUIRE(count == expected);
    replaced += count;
  }
  CHECK(replaced > 0);
  CHECK(buffer.size() == (1 << 13) / (8 + 16 * tables));
  CHECK(buffer.memory_bytes() <= 1 << 13);
  for (unsigned table = 0; table < tables; ++table) {
    std::vector<LshEntry> sorted;
    for (const auto& [key, places] : model) {
      if (key.first != table) continue;
      std::vector<SliceLshPlace> found;
      buffer.Find(table, key.second, [&](const SliceLshPlace& one) { found.push_back(one); });
      REQUIRE(std::ranges::equal(found, places));
      for (const SliceLshPlace& place : places) sorted.push_back({key.second, place});
    }
    REQUIRE(buffer.Sorted(table) == sorted);
    REQUIRE(buffer.EntriesOf(table) == sorted.size());
  }
  buffer.Clear();
  CHECK(buffer.size() == 0);
  CHECK(buffer.Sorted(0).empty());
  buffer.Find(0, 0, [](const SliceLshPlace&) { FAIL("the buffer is empty"); });
}

TEST_CASE("the pages of a slicetable divide the keys evenly") {
  for (const uint32_t pages : {1U, 2U, 3U, 7U, 64U, 1000U, 99'991U, 14'435'000U}) {
    CHECK(LshFirstKey(0, pages) == 0);
    CHECK(LshFirstKey(pages, pages) == kLshKeys);
    CHECK(LshPageOf(kLshKeys - 1, pages) == pages - 1);
    Random random(pages);
    for (int i = 0; i < 1000; ++i) {
      const auto page = static_cast<uint32_t>(random.Below(pages));
      const uint64_t first = LshFirstKey(page, pages);
      REQUIRE(LshPageOf(first, pages) == page);
      if (page > 0) REQUIRE(LshPageOf(first - 1, pages) == page - 1);
    }
  }
  CHECK(LshPagesFor(0) == 1);
  CHECK(LshPagesFor(340) == 1);
  CHECK(LshPagesFor(341) == 2);
  CHECK(LshPagesFor(595) == 2);
  CHECK(LshPagesFor(596) == 3);
  CHECK(LshPagesFor(uint64_t{1} << 32) < 1U << 24);
}

}  // namespace siltfs::testing
