#include "chunker/sha1/kernels.h"

#include <cassert>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace siltfs {

namespace {

bool Always() { return true; }

#if defined(__x86_64__)

struct CpuFeatures {
  bool sha = false;     // with SSSE3 and SSE4.1
  bool avx2 = false;    // avx2 and avx512: the operating system has enabled the registers, too
  bool avx512 = false;  // F and BW
};

uint32_t EnabledRegisters() {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Does not use __builtin_cpu_supports, because some compilers don't know its "sha".
CpuFeatures DetectFeatures() {
  constexpr uint32_t kAvxRegisters = 0x06;     // XMM, YMM
  constexpr uint32_t kAvx512Registers = 0xe6;  // also the masks and ZMM
  constexpr uint32_t kBitSha = 1u << 29;       // compilers name leaf 7's bits differently
  constexpr uint32_t kBitAvx2 = 1u << 5;
  constexpr uint32_t kBitAvx512F = 1u << 16;
  constexpr uint32_t kBitAvx512Bw = 1u << 30;
  CpuFeatures features;
  uint32_t eax, ebx, ecx, edx, ebx7, ecx7;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return features;
  if (!__get_cpuid_count(7, 0, &eax, &ebx7, &ecx7, &edx)) return features;
  features.sha = (ebx7 & kBitSha) && (ecx & bit_SSSE3) && (ecx & bit_SSE4_1);
  if (!(ecx & bit_OSXSAVE) || !(ecx & bit_AVX)) return features;
  const uint32_t enabled = EnabledRegisters();
  features.avx2 = (ebx7 & kBitAvx2) && (enabled & kAvxRegisters) == kAvxRegisters;
  features.avx512 = (ebx7 & kBitAvx512F) && (ebx7 & kBitAvx512Bw) &&
                    (enabled & kAvx512Registers) == kAvx512Registers;
  return features;
}

const CpuFeatures& Features() {
  static const CpuFeatures features = DetectFeatures();
  return features;
}

bool HasSha() { return Features().sha; }
bool HasAvx2() { return Features().avx2; }
bool HasAvx512() { return Features().avx512; }
bool HasShaAndAvx512() { return HasSha() && HasAvx512(); }

constexpr Sha1Step kShaNi4 = {4, 3, Sha1CompressShaNi4};
constexpr Sha1Step kShaNi2 = {2, 2, Sha1CompressShaNi2};
constexpr Sha1Step kShaNi1 = {1, 1, Sha1CompressShaNi1};

#endif

constexpr Sha1Step kPortable = {1, 1, Sha1CompressPortable};

// The bounds are measured (docs/chunker.md).
constexpr Sha1Kernel kKernels[] = {
#if defined(__x86_64__)
    {"avx512-x16+sha-ni-x4",
     HasShaAndAvx512,
     2,
     {{{16, 8, Sha1CompressAvx512x16}, kShaNi4, kShaNi2, kShaNi1}}},
    {"sha-ni-x4", HasSha, 2, {{kShaNi4, kShaNi2, kShaNi1}}},
    {"avx512-x16", HasAvx512, 8, {{{16, 2, Sha1CompressAvx512x16}, kPortable}}, 4},
    {"avx2-x8", HasAvx2, 16, {{{8, 2, Sha1CompressAvx2x8}, kPortable}}, 4},
#endif
    {"evp", Always, 0, {}},
    {"portable", Always, 0, {{kPortable}}},
};

struct KnownAnswer {
  std::string_view message;
  std::array<uint8_t, ChunkName::kSize> name;
};

// Messages that give one padded block, two padded blocks, and a whole block with two padded blocks.
constexpr KnownAnswer kKnownAnswers[] = {
    {"abc", {0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81, 0x6a, 0xba, 0x3e,
             0x25, 0x71, 0x78, 0x50, 0xc2, 0x6c, 0x9c, 0xd0, 0xd8, 0x9d}},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     {0x84, 0x98, 0x3e, 0x44, 0x1c, 0x3b, 0xd2, 0x6e, 0xba, 0xae,
      0x4a, 0xa1, 0xf9, 0x51, 0x29, 0xe5, 0xe5, 0x46, 0x70, 0xf1}},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
     "lmnopqrsmnopqrstnopqrstu",
     {0xa4, 0x9b, 0x24, 0x46, 0xa0, 0x2c, 0x64, 0x5b, 0xf4, 0x19,
      0xf9, 0x95, 0xb6, 0x70, 0x91, 0x25, 0x3a, 0x04, 0xa2, 0x59}},
};

// Whether the kernel hashes a batch of `count` known messages correctly. The batch takes the known
// answers in turn, beginning at index `first`.
bool AnswersBatch(const Sha1Kernel& kernel, size_t count, size_t first) {
  std::vector<ByteView> messages;
  std::vector<ChunkName> names(count);
  for (size_t i = 0; i < count; ++i)
    messages.push_back(AsBytes(kKnownAnswers[(first + i) % std::size(kKnownAnswers)].message));
  Sha1Batch(kernel, messages, names);
  for (size_t i = 0; i < count; ++i) {
    if (names[i].bytes != kKnownAnswers[(first + i) % std::size(kKnownAnswers)].name) return false;
  }
  return true;
}

}  // namespace

std::span<const Sha1Kernel> Sha1Kernels() { return kKernels; }

bool Sha1KernelWorks(const Sha1Kernel& kernel) {
  if (!kernel.has_steps()) return true;
  for (size_t count = 1; count <= 2 * kSha1MaxLanes + 1; ++count) {
    for (size_t first = 0; first < std::size(kKnownAnswers); ++first) {
      if (!AnswersBatch(kernel, count, first)) return false;
    }
  }
  return true;
}

Result<const Sha1Kernel*> ChooseSha1Kernel(std::span<const Sha1Kernel> kernels,
                                           const char* forced) {
  const bool any = forced == nullptr || *forced == '\0';
  std::string names;
  for (const Sha1Kernel& kernel : kernels) {
    if (!any && std::string_view(kernel.name) != forced) {
      if (kernel.runs_here()) names += (names.empty() ? "" : ", ") + std::string(kernel.name);
    } else if (kernel.runs_here() && Sha1KernelWorks(kernel)) {
      return &kernel;
    }
  }
  assert(!any);  // the caller must include a kernel without steps
  return Status(StatusCode::kInvalidArgument, "no SHA-1 kernel '" + std::string(any ? "" : forced) +
                                                  "' runs here; there are " + names);
}

Result<const Sha1Kernel*> Sha1KernelInUse() {
  static constexpr const char* kVariable = "SILTFS_SHA1_KERNEL";
  struct Choice {
    const Sha1Kernel* kernel = nullptr;
    std::string refusal;
  };
  static const Choice choice = [] {
    const auto chosen = ChooseSha1Kernel(kKernels, std::getenv(kVariable));
    return chosen.ok() ? Choice{*chosen, {}}
                       : Choice{nullptr, std::string(chosen.status().cause())};
  }();
  if (choice.kernel != nullptr) return choice.kernel;
  return Status(StatusCode::kInvalidArgument, choice.refusal).At(kVariable);
}

}  // namespace siltfs
