#include "chunker/scan/kernels.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "chunker/scan/match_map.h"

namespace siltfs {
namespace {

constexpr const char* kVariable = "SILTFS_CHUNKER_KERNEL";

std::vector<ChunkerKernel> FindRunnableKernels() {
  std::vector<ChunkerKernel> kernels = {{"scalar", nullptr}, {"portable", ScanPortable}};
#if defined(__x86_64__)
  // These ask for the operating system's leave, too.
  if (__builtin_cpu_supports("avx2")) kernels.push_back({"avx2", ScanAvx2});
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("gfni")) {
    kernels.push_back({"avx512-gfni", ScanAvx512Gfni});
  }
#endif
#if defined(__AARCH64EL__)
  kernels.push_back({"neon", ScanNeon});  // part of the base architecture
#endif
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
  if (kernel.scan == nullptr) return FindMatchScalar(condition, data, first, last);
  // Not much further than the match is likely to be.
  constexpr size_t kWindowsAtATime = 8192;
  MatchMap matches;
  for (size_t begin = first; begin <= last; begin += kWindowsAtATime) {
    const size_t windows = std::min(last - begin + 1, kWindowsAtATime);
    matches.Scan(kernel.scan, condition, data + (begin - kWindowSize), windows);
    const size_t match = matches.FirstFrom(0);
    if (match != kNoMatch) return begin + match;
  }
  return kNoMatch;
}

}  // namespace siltfs
