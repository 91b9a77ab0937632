// What the tests of SliceBloom share.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "index/slice_bloom/slice_bloom.h"
#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

inline constexpr const char* kBloomDirectory = "/bloom";

// The names of segment `segment`: `count` of them, different from those of all other segments.
inline std::vector<uint64_t> NamesOf(SegmentId segment, uint64_t count) {
  Random random(segment + 1);
  std::vector<uint64_t> names;
  for (uint64_t i = 0; i < count; ++i) names.push_back(random.Next());
  return names;
}

struct SliceBloomFixture {
  explicit SliceBloomFixture(const SliceBloomShape& shape) {
    options.shape = shape;
    REQUIRE_OK(env.CreateDirectory(kBloomDirectory));
    REQUIRE_OK(env.SyncDirectory("/"));
    Open();
  }
  void Open() {
    bloom.reset();
    auto opened = SliceBloom::Open(env, options);
    REQUIRE_OK(opened);
    bloom = std::move(*opened);
  }
  void Add(SegmentId segment, uint64_t names) {
    REQUIRE_OK(bloom->Add(segment, NamesOf(segment, names)));
    counts[segment] = names;
  }
  std::vector<std::vector<SegmentId>> Find(const std::vector<uint64_t>& names) {
    std::vector<std::vector<SegmentId>> segments;
    REQUIRE_OK(bloom->Find(names, segments));
    REQUIRE(segments.size() == names.size());
    return segments;
  }
  // REQUIREs that each name of each covered segment is found there. Returns how many are covered.
  size_t Check() {
    size_t covered = 0;
    for (const auto& [segment, count] : counts) {
      if (!bloom->Covers(segment)) continue;
      ++covered;
      INFO("segment " << segment);
      for (const auto& found : Find(NamesOf(segment, count))) {
        REQUIRE(std::ranges::find(found, segment) != found.end());
      }
    }
    return covered;
  }
  size_t Damaged() {
    size_t damaged = 0;
    REQUIRE_OK(bloom->Verify([&](const std::string&) { ++damaged; }));
    return damaged;
  }
  uint64_t FileBytes(const std::string& suffix = "") {
    uint64_t bytes = 0;
    auto names = env.ListDirectory(kBloomDirectory);
    REQUIRE_OK(names);
    for (const auto& name : *names) {
      if (!name.name.ends_with(suffix)) continue;
      const auto info = env.GetFileInfo(JoinPath(kBloomDirectory, name.name));
      REQUIRE_OK(info);
      bytes += info->size;
    }
    return bytes;
  }

  SimEnv env;
  SliceBloomOptions options{
      .directory = kBloomDirectory, .shape = {}, .secret = 1, .read_depth = 8};
  std::unique_ptr<SliceBloom> bloom;
  std::map<SegmentId, uint64_t> counts;
};

inline const SliceBloomShape kSmallBloom{.partition_bits = 2,
                                         .names_per_group = 200,
                                         .bits_per_name = 16,
                                         .probes = 3,
                                         .groups_per_filter = 20};

}  // namespace siltfs::testing
