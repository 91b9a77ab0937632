#include "chunker/scan/kernels.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "chunker/scan/match_map.h"
#include "store/base/random.h"

namespace siltfs {
namespace {

constexpr const char* kVariable = "SILTFS_CHUNKER_KERNEL";

// Whether the kernel finds the same matches as the scalar kernel. A miscompiled kernel would cut
// differently, and no duplicates would be found.
bool Works(const ChunkerKernel& kernel) {
  constexpr size_t kWindows = 9000;
  constexpr uint64_t kPolynomial = 0x3DA3358B4DC173;
  const Result<RabinPolynomial> polynomial = RabinPolynomial::Parse(kPolynomial);
  if (!polynomial.ok()) return false;
  const CutCondition condition(RabinTables(*polynomial), (uint64_t{1} << 53) - (uint64_t{1} << 46));
  Bytes data(kWindows + kWindowSize - 1);
  Random(1).Fill(data);
  MatchMap matches;
  matches.Scan(kernel.scan, condition, data.data(), kWindows);
  for (size_t next = 0; next < kWindows;) {
    const size_t end = FindMatchScalar(condition, data.data(), next + kWindowSize, data.size());
    const size_t expected = end == kNoMatch ? kNoMatch : end - kWindowSize;
    if (matches.FirstFrom(next) != expected) return false;
    if (expected == kNoMatch) return true;
    next = expected + 1;
  }
  return true;
}

std::vector<ChunkerKernel> FindRunnableKernels() {
  std::vector<ChunkerKernel> kernels = {{"scalar", nullptr}, {"portable", ScanPortable}};
#if defined(__x86_64__)
  // These checks include support by the operating system.
  if (__builtin_cpu_supports("avx2")) kernels.push_back({"avx2", ScanAvx2});
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("gfni")) {
    kernels.push_back({"avx512-gfni", ScanAvx512Gfni});
  }
#endif
#if defined(__AARCH64EL__)
  kernels.push_back({"neon", ScanNeon});  // part of the base architecture
#endif
  std::erase_if(kernels, [](const ChunkerKernel& kernel) {
    return kernel.scan != nullptr && !Works(kernel);
  });
  return kernels;
}

}  // namespace

std::span<const ChunkerKernel> RunnableKernels() {
  static const std::vector<ChunkerKernel> kernels = FindRunnableKernels();
  return kernels;
}

Result<const ChunkerKernel*> FindKernel(std::string_view name) {
  std::string names;
  for (const ChunkerKernel& kernel : RunnableKernels()) {
    if (kernel.name == name) return &kernel;
    names += (names.empty() ? "" : ", ") + std::string(kernel.name);
  }
  return Status(StatusCode::kInvalidArgument,
                "no chunker kernel '" + std::string(name) + "' runs here; there are " + names);
}

Result<const ChunkerKernel*> ChosenKernel() {
  static const std::string wanted = [] {
    const char* const value = std::getenv(kVariable);
    return std::string(value == nullptr ? "" : value);
  }();
  if (wanted.empty()) return &RunnableKernels().back();
  Result<const ChunkerKernel*> found = FindKernel(wanted);
  if (!found.ok()) return Status(found.status()).At(kVariable);
  return found;
}

size_t FindMatch(const ChunkerKernel& kernel, const CutCondition& condition, const uint8_t* data,
                 size_t first, size_t last) {
  // One of `distance` windows matches on average, so scanning much further ahead wastes time. If
  // `distance` is below kNear, setting up the lanes takes longer than a sequential search.
  constexpr uint64_t kFingerprints = uint64_t{1} << RabinPolynomial::kDegree;
  constexpr uint64_t kNear = 1024;
  const uint64_t distance = kFingerprints / (kFingerprints - condition.limit);
  if (kernel.scan == nullptr || distance < kNear)
    return FindMatchScalar(condition, data, first, last);
  const size_t at_a_time = std::min<size_t>(distance + distance / 4, MatchMap::kMaxWindows);
  MatchMap matches;
  for (size_t begin = first; begin <= last; begin += at_a_time) {
    const size_t windows = std::min(last - begin + 1, at_a_time);
    matches.Scan(kernel.scan, condition, data + (begin - kWindowSize), windows);
    const size_t match = matches.FirstFrom(0);
    if (match != kNoMatch) return begin + match;
  }
  return kNoMatch;
}

}  // namespace siltfs
