// A SliceLSH opens a directory of arbitrary files. It must either refuse the directory, or look
// chunks up, verify its pages, take new chunks and open the files again. Memory must stay bounded.
//
// The input: the files (tests/fuzz/fuzz_files.h).
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "index/slice_lsh/slice_lsh.h"
#include "store/base/random.h"
#include "tests/fuzz/fuzz_files.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

const std::string kDirectory = "/lsh";
constexpr uint64_t kMostBytes = 64U << 20;  // capacity of the device

std::vector<uint64_t> FeaturesOf(uint64_t chunk, unsigned tables) {
  Random random(chunk);
  std::vector<uint64_t> features(tables);
  for (uint64_t& feature : features) feature = random.Next();
  return features;
}

Result<std::unique_ptr<SliceLsh>> Open(Env& env, bool read_only, bool renew) {
  return SliceLsh::Open(env, {.directory = kDirectory,
                              .read_only = read_only,
                              .shape = {.tables = 2, .growth = 2, .most_levels = 3},
                              .secret = 7,
                              .buffer_bytes = 1024,
                              .read_depth = 4,
                              .renew_if_damaged = renew,
                              .is_gone = [](SegmentId segment) { return segment % 7 == 0; }});
}

// Every lookup ends, with a limited number of candidates.
void Ask(SliceLsh& lsh) {
  const SliceLshShape& shape = lsh.shape();
  const size_t most = size_t{shape.tables} * (shape.most_levels + 1) * shape.most_per_feature;
  for (uint64_t chunk = 1; chunk < 40; ++chunk) {
    std::vector<std::vector<SliceLshCandidate>> found;
    lsh.Find(FeaturesOf(chunk, shape.tables), found).IgnoreError("a file may be too short");
    MustHold(found.size() == 1, "a chunk has one list of candidates");
    MustHold(found[0].size() <= most, "the candidates are few");
    for (size_t i = 0; i < found[0].size(); ++i) {
      MustHold(found[0][i].tables >= 1 && found[0][i].tables <= shape.tables, "tables agree");
      MustHold(i == 0 || found[0][i].tables <= found[0][i - 1].tables, "the best come first");
    }
  }
  lsh.Verify([](const std::string&) {}).IgnoreError("a file may be too short");
}

void Write(SliceLsh& lsh) {
  const unsigned tables = lsh.shape().tables;
  for (uint32_t chunk = 1000; chunk < 1200; ++chunk) {
    const SliceLshPlace place{.segment = chunk * 7 + 1, .ordinal = chunk};
    const Status added = lsh.Add(FeaturesOf(chunk, tables), place);
    if (!added.ok()) return added.IgnoreError("the device may be full");
    if (chunk % 50 != 0) continue;
    std::vector<std::vector<SliceLshCandidate>> found;
    const Status looked_up = lsh.Find(FeaturesOf(chunk, tables), found);
    if (!looked_up.ok()) return looked_up.IgnoreError("a file may be too short");
    MustHold(!found[0].empty() && found[0][0] == SliceLshCandidate{place, tables},
             "a chunk that was added is the first candidate");
  }
  lsh.Close().IgnoreError("the device may be full");
}

}  // namespace

void RunSliceLsh(FuzzInput input) {
  SimEnv env;
  env.SetCapacity(kMostBytes);
  PutFiles(env, kDirectory, input);
  for (const bool read_only : {true, false, false}) {
    const auto lsh = Open(env, read_only, /*renew=*/false);
    if (!lsh.ok()) {
      lsh.status().IgnoreError("any files may be refused");
      continue;
    }
    Ask(**lsh);
    if (!read_only) Write(**lsh);
  }
  const auto renewed = Open(env, false, /*renew=*/true);
  if (!renewed.ok()) return renewed.status().IgnoreError("the device may be full");
  Ask(**renewed);
}

std::vector<Bytes> FuzzSeeds() {
  std::vector<Bytes> seeds;
  for (const uint32_t chunks : {1U, 30U, 900U}) {
    SimEnv env;
    MustHold(env.CreateDirectory(kDirectory).ok(), "there is a place for the files");
    const auto lsh = Must(Open(env, false, false));
    for (uint32_t chunk = 1; chunk <= chunks; ++chunk) {
      const SliceLshPlace place{.segment = chunk, .ordinal = chunk};
      MustHold(lsh->Add(FeaturesOf(chunk, 2), place).ok(), "chunks are added");
    }
    MustHold(lsh->Close().ok(), "it is closed");
    const std::string files = FilesAsInput(env, kDirectory);
    seeds.emplace_back(files.begin(), files.end());
  }
  return seeds;
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunSliceLsh(siltfs::testing::FuzzInput(data, size));
  return 0;
}
