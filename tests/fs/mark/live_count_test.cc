// Garbage collection counts the live chunks of each segment, with any amount of memory and disk.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "fs/mark/mark.h"
#include "index/open_index.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/fs/mark/mark_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("live chunks are counted by segment, with any amount of memory") {
  MarkStore store(GENERATE(IndexEngine::kMap, IndexEngine::kSilt));
  const size_t memory = GENERATE(0U, 4096U, 20'000U, 8U << 20);
  const auto counts = store.Count({.spill_directory = kSpill, .memory_bytes = memory, .pace = {}});
  REQUIRE_OK(counts);
  store.RequireCounts(*counts);
  CHECK((counts->spilled_bytes > 0) == (memory < 60'000));
  CHECK(counts->passes == 1);
  CHECK(store.SpillIsGone());
}

TEST_CASE("chunks whose names the index's order does not distinguish are live or dead together") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/index"));
  auto index = OpenIndex(env, {.engine = IndexEngine::kMap, .directory = "/index"});
  REQUIRE_OK(index);
  MarkMetadata metadata;
  metadata.AddFile(NumberedChunks(0, 1));
  std::vector<IndexEntry> entries;
  for (const uint64_t number : {0, 1}) {
    for (uint8_t last = 0; last < 3; ++last) {
      ChunkName name = NumberedName(number);
      name.bytes.back() ^= last;
      entries.push_back({name, {.segment = static_cast<SegmentId>(1 + number), .ordinal = last}});
    }
  }
  REQUIRE_OK((*index)->Put(entries, 1));
  MarkOptions options{.spill_directory = kSpill, .pace = {}};
  if (GENERATE(true, false)) options.minimum_free_bytes = UINT64_MAX;
  const auto counts = CountLive(env, *metadata.Snapshot(), metadata.nodes, **index, options);
  REQUIRE_OK(counts);
  CHECK(counts->live == 3);
  CHECK(counts->dead_entries == 3);
  CHECK(counts->live_chunks.at(1) == 3);
}

TEST_CASE("recipe nodes are counted like chunks") {
  MarkStore store(IndexEngine::kSilt);
  std::vector<IndexEntry> entries;
  for (const auto& [name, bytes] : store.metadata.nodes.nodes) {
    entries.push_back({name, {.segment = 5000, .ordinal = static_cast<uint32_t>(entries.size())}});
  }
  REQUIRE_OK(store.index->Put(entries, 2));
  const auto counts = store.Count({.spill_directory = kSpill, .pace = {}});
  REQUIRE_OK(counts);
  store.expected[5000] = static_cast<uint32_t>(entries.size());
  CHECK(std::map<SegmentId, uint32_t>(counts->live_chunks.begin(), counts->live_chunks.end()) ==
        store.expected);
}

TEST_CASE("on a full disk live chunks are counted in several passes, and nothing is written") {
  MarkStore store(GENERATE(IndexEngine::kMap, IndexEngine::kSilt));
  const size_t memory = GENERATE(0U, 4096U, 20'000U);
  const bool no_minimum = GENERATE(true, false);
  MarkOptions options{.spill_directory = kSpill, .memory_bytes = memory, .pace = {}};
  if (no_minimum) {
    options.minimum_free_bytes = 0;
    auto space = store.env.GetDiskSpace("/");
    REQUIRE_OK(space);
    const uint64_t pages_free = GENERATE(0U, 1U, 10U);
    store.env.SetCapacity(space->total_bytes - space->free_bytes + pages_free * 4096);
  } else {
    options.minimum_free_bytes = UINT64_MAX;
  }
  const auto counts = store.Count(options);
  REQUIRE_OK(counts);
  store.RequireCounts(*counts);
  CHECK(counts->spilled_bytes == 0);
  CHECK(counts->passes > 9000 * sizeof(uint64_t) / std::max<size_t>(memory, 4096));
  CHECK(counts->passes < 600);
  CHECK(store.SpillIsGone());
}

TEST_CASE("a disk that fills with the last run, or while runs are merged, counts as full") {
  const size_t memory = GENERATE(4096U, 20'000U);
  MarkStore store(IndexEngine::kMap);
  const MarkOptions options{
      .spill_directory = kSpill, .memory_bytes = memory, .pace = {}, .minimum_free_bytes = 0};
  const auto space = store.env.GetDiskSpace("/");
  REQUIRE_OK(space);
  const uint64_t used = space->total_bytes - space->free_bytes;
  bool spilled = false;
  uint64_t last_passes = 0;
  for (uint64_t pages_free = 10; !spilled; ++pages_free) {
    REQUIRE(pages_free < 100);
    store.env.SetCapacity(used + pages_free * 4096);
    const auto counts = store.Count(options);
    REQUIRE_OK(counts);
    store.RequireCounts(*counts);
    spilled = counts->spilled_bytes > 0;
    if (!spilled) last_passes = counts->passes;
  }
  CHECK(last_passes > 1);  // with the largest disk on which the sorter could not spill
}

TEST_CASE("kNoSpace from the pace ends the count, unlike kNoSpace from the sorter") {
  MarkStore store(IndexEngine::kMap);
  bool met = false;
  const MarkPace pace = [&] {
    if (std::exchange(met, true)) return Status::Ok();
    return Status(StatusCode::kNoSpace, "from the pace");
  };
  REQUIRE_CODE(store.Count({.spill_directory = kSpill, .memory_bytes = 4096, .pace = pace}),
               kNoSpace);
}

TEST_CASE("a spilled run with damage ends the count") {
  MarkStore store(IndexEngine::kMap);
  bool flipped = false;
  const MarkPace pace = [&] {
    const auto listed = store.env.ListDirectory(kSpill);
    if (!listed.ok() || flipped) return Status::Ok();
    auto file =
        store.env.OpenFile(JoinPath(kSpill, listed->front().name), {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    const uint8_t byte = 0;
    REQUIRE_OK((*file)->Write(20, {&byte, 1}));
    REQUIRE_OK((*file)->Write(21, {&byte, 1}));
    flipped = true;
    return Status::Ok();
  };
  REQUIRE_CODE(store.Count({.spill_directory = kSpill, .memory_bytes = 20'000, .pace = pace}),
               kCorruption);
  CHECK(flipped);
  CHECK(store.SpillIsGone());
}

TEST_CASE("a store with nothing in it has nothing live") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/index"));
  auto index = OpenIndex(env, {.engine = IndexEngine::kMap, .directory = "/index"});
  REQUIRE_OK(index);
  MarkMetadata metadata;
  const auto counts = CountLive(env, *metadata.Snapshot(), metadata.nodes, **index,
                                {.spill_directory = kSpill, .pace = {}});
  REQUIRE_OK(counts);
  CHECK(counts->live == 0);
  CHECK(counts->dead_entries == 0);
  CHECK(counts->live_chunks.empty());
}

}  // namespace siltfs::testing
