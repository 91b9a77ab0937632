// What the tests of SliceLSH share.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "index/slice_lsh/slice_lsh.h"
#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

inline constexpr const char* kLshDirectory = "/lsh";

// The super-features of chunk `chunk`, different from those of all other chunks.
inline std::vector<uint64_t> FeaturesOf(uint64_t chunk, unsigned tables) {
  Random random(chunk + 1);
  std::vector<uint64_t> features(tables);
  for (uint64_t& feature : features) feature = random.Next();
  return features;
}

// The place of chunk `chunk`: ten chunks in each segment.
inline SliceLshPlace PlaceOf(uint64_t chunk) {
  return {.segment = static_cast<SegmentId>(1 + chunk / 10),
          .ordinal = static_cast<uint32_t>(chunk % 10)};
}

struct SliceLshFixture {
  explicit SliceLshFixture(const SliceLshShape& shape = {}, uint64_t buffer_bytes = 4096) {
    options.shape = shape;
    options.buffer_bytes = buffer_bytes;
    REQUIRE_OK(env.CreateDirectory(kLshDirectory));
    REQUIRE_OK(env.SyncDirectory("/"));
    Open();
  }
  void Open() {
    lsh.reset();
    auto opened = SliceLsh::Open(env, options);
    REQUIRE_OK(opened);
    lsh = std::move(*opened);
  }
  unsigned tables() const { return lsh->shape().tables; }
  void Add(uint64_t chunk) { REQUIRE_OK(lsh->Add(FeaturesOf(chunk, tables()), PlaceOf(chunk))); }
  void AddAll(uint64_t begin, uint64_t end) {
    for (uint64_t chunk = begin; chunk < end; ++chunk) Add(chunk);
  }
  std::vector<std::vector<SliceLshCandidate>> Find(const std::vector<uint64_t>& features) {
    std::vector<std::vector<SliceLshCandidate>> candidates;
    REQUIRE_OK(lsh->Find(features, candidates));
    REQUIRE(candidates.size() == features.size() / tables());
    return candidates;
  }
  // How many of these chunks are found, in all tables.
  uint64_t CountFound(uint64_t begin, uint64_t end) {
    std::vector<uint64_t> features;
    for (uint64_t chunk = begin; chunk < end; ++chunk) {
      const auto one = FeaturesOf(chunk, tables());
      features.insert(features.end(), one.begin(), one.end());
    }
    uint64_t count = 0;
    const auto found = Find(features);
    for (uint64_t chunk = begin; chunk < end; ++chunk) {
      const SliceLshCandidate expected{.place = PlaceOf(chunk), .tables = tables()};
      count += static_cast<uint64_t>(std::ranges::count(found[chunk - begin], expected));
    }
    return count;
  }
  size_t Faults() {
    size_t faults = 0;
    REQUIRE_OK(lsh->Verify([&](const std::string& text) {
      UNSCOPED_INFO(text);
      ++faults;
    }));
    return faults;
  }
  uint64_t FileBytes(const std::string& suffix = "") {
    uint64_t bytes = 0;
    auto names = env.ListDirectory(kLshDirectory);
    REQUIRE_OK(names);
    for (const auto& name : *names) {
      if (!name.name.ends_with(suffix) || name.type != FileType::kRegular) continue;
      const auto info = env.GetFileInfo(JoinPath(kLshDirectory, name.name));
      REQUIRE_OK(info);
      bytes += info->size;
    }
    return bytes;
  }

  SimEnv env;
  // Damage that no test makes must not be hidden.
  SliceLshOptions options{
      .directory = kLshDirectory, .secret = 1, .read_depth = 8, .renew_if_damaged = false};
  std::unique_ptr<SliceLsh> lsh;
};

}  // namespace siltfs::testing
