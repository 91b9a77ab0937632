// A SliceBloom opens a directory of arbitrary files. It must either refuse the directory, or look
// names up, verify its pages, take new segments and open the files again. Memory must stay bounded.
//
// The input: the files (tests/fuzz/fuzz_files.h).
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "index/slice_bloom/slice_bloom.h"
#include "store/base/random.h"
#include "tests/fuzz/fuzz_files.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

const std::string kDirectory = "/bloom";
constexpr uint64_t kMostBytes = 64U << 20;  // capacity of the device

std::vector<uint64_t> NamesOf(SegmentId segment) {
  Random random(segment);
  std::vector<uint64_t> names(30);
  for (uint64_t& name : names) name = random.Next();
  return names;
}

Result<std::unique_ptr<SliceBloom>> Open(Env& env, bool read_only) {
  return SliceBloom::Open(env, {.directory = kDirectory,
                                .read_only = read_only,
                                .shape = {.partition_bits = 1,
                                          .names_per_group = 50,
                                          .bits_per_name = 16,
                                          .probes = 3,
                                          .groups_per_filter = 10},
                                .secret = 7,
                                .read_depth = 4});
}

// Every lookup ends. It finds at most the segments that are covered.
void Ask(SliceBloom& bloom) {
  const SliceBloomStats stats = bloom.stats();
  for (SegmentId segment = 1; segment < 20; ++segment) {
    std::vector<std::vector<SegmentId>> found;
    bloom.Find(NamesOf(segment), found).IgnoreError("a file may be too short");
    for (const auto& segments : found) {
      MustHold(segments.size() <= stats.segments, "no segment is found twice");
      for (const SegmentId one : segments) MustHold(bloom.Covers(one), "it is covered");
    }
  }
  bloom.Sparse();
  bloom.Verify([](const std::string&) {}).IgnoreError("a file may be too short");
}

void Write(SliceBloom& bloom) {
  for (SegmentId segment = 1000; segment < 1012; ++segment) {
    const Status added = bloom.Add(segment, NamesOf(segment));
    if (!added.ok()) return added.IgnoreError("the device may be full");
    std::vector<std::vector<SegmentId>> found;
    const Status looked_up = bloom.Find(NamesOf(segment), found);
    if (!looked_up.ok()) return looked_up.IgnoreError("a file may be too short");
    for (const auto& segments : found) {
      MustHold(std::ranges::count(segments, segment) == 1, "a name that was added is found");
    }
  }
  for (SegmentId segment = 1; segment < 20; ++segment) {
    bloom.Remove(segment).IgnoreError("the device may be full");
  }
  bloom.EndGroup().IgnoreError("the device may be full");
  bloom.Close().IgnoreError("the device may be full");
}

}  // namespace

void RunSliceBloom(FuzzInput input) {
  SimEnv env;
  env.SetCapacity(kMostBytes);
  PutFiles(env, kDirectory, input);
  for (const bool read_only : {true, false, false}) {
    const auto bloom = Open(env, read_only);
    if (!bloom.ok()) {
      bloom.status().IgnoreError("any files may be refused");
      continue;
    }
    Ask(**bloom);
    if (!read_only) Write(**bloom);
  }
}

std::vector<Bytes> FuzzSeeds() {
  std::vector<Bytes> seeds;
  for (const SegmentId segments : {SegmentId{1}, SegmentId{6}, SegmentId{29}}) {
    SimEnv env;
    MustHold(env.CreateDirectory(kDirectory).ok(), "there is a place for the files");
    const auto bloom = Must(Open(env, false));
    for (SegmentId segment = 1; segment <= segments; ++segment) {
      MustHold(bloom->Add(segment, NamesOf(segment)).ok(), "names are added");
    }
    MustHold(bloom->Close().ok(), "it is closed");
    const std::string files = FilesAsInput(env, kDirectory);
    seeds.emplace_back(files.begin(), files.end());
  }
  return seeds;
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunSliceBloom(siltfs::testing::FuzzInput(data, size));
  return 0;
}
