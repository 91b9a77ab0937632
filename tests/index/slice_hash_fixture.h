// A SliceHash index with small or large tables on a simulated device, and numbered entries.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "history.h"
#include "index/flash/flash_index.h"
#include "index/slice_hash/slice_hash_engine.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

inline IndexEntry SliceEntry(uint64_t number, uint32_t round = 1) {
  return {NameOf(number),
          {.segment = 1 + static_cast<SegmentId>(number / 1000),
           .ordinal = static_cast<uint32_t>(number % 1000),
           .block_offset = round}};
}

class SliceHashFixture {
 public:
  explicit SliceHashFixture(EngineParameters chosen) : parameters(std::move(chosen)) {
    REQUIRE_OK(env.CreateDirectory(options.directory));
    REQUIRE_OK(env.SyncDirectory("/"));
  }

  std::unique_ptr<ChunkIndex> Open() { return OpenIn(env); }
  std::unique_ptr<ChunkIndex> OpenIn(Env& other) {
    auto index = TryOpen(other);
    REQUIRE_OK(index);
    return std::move(*index);
  }
  Result<std::unique_ptr<ChunkIndex>> TryOpen(Env& other) {
    return OpenFlashIndex(other, options, MakeSliceHashEngine(parameters));
  }
  void Put(ChunkIndex& index, uint64_t first, uint64_t count, uint32_t round = 1) {
    std::vector<IndexEntry> entries;
    for (uint64_t i = first; i < first + count; ++i) entries.push_back(SliceEntry(i, round));
    REQUIRE_OK(index.Put(entries, ++sequence));
  }

  SimEnv env;
  FlashIndexOptions options{.directory = "/index", .hash_secret = 1};
  EngineParameters parameters;
  uint64_t sequence = 0;
};

// Looks up the numbers first, first + step, ... below `end` in one call. REQUIREs that all have
// this round's entries, or that all are absent if `round` is 0. Returns the pages read for each.
inline double ReadsPerLookup(ChunkIndex& index, uint64_t first, uint64_t end, uint32_t round = 1,
                             uint64_t step = 1) {
  std::vector<ChunkName> names;
  for (uint64_t i = first; i < end; i += step) names.push_back(NameOf(i));
  std::vector<Answer> answers(names.size());
  const uint64_t before = index.stats().flash_reads;
  REQUIRE_OK(index.Get(names, answers));
  for (size_t i = 0; i < names.size(); ++i) {
    Answer wanted;
    if (round != 0) wanted = SliceEntry(first + i * step, round).location;
    REQUIRE(answers[i] == wanted);
  }
  return static_cast<double>(index.stats().flash_reads - before) /
         static_cast<double>(names.size());
}

// The sum of a field over the component stores of this kind.
template <typename Field>
uint64_t SumOf(const IndexStats& stats, std::string_view kind, Field field) {
  uint64_t sum = 0;
  for (const IndexComponentStats& store : stats.stores) {
    if (store.kind == kind) sum += store.*field;
  }
  return sum;
}

inline size_t CountOf(const IndexStats& stats, std::string_view kind) {
  size_t count = 0;
  for (const IndexComponentStats& store : stats.stores) count += store.kind == kind ? 1 : 0;
  return count;
}

inline uint64_t Findings(ChunkIndex& index) {
  uint64_t findings = 0;
  REQUIRE_OK(index.Verify([&](const IndexFinding& finding) {
    UNSCOPED_INFO(finding.text);
    ++findings;
  }));
  return findings;
}

}  // namespace siltfs::testing
