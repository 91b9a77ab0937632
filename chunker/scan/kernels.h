// The scan kernels, and the choice of the kernel that this process uses.
//
// The process uses the fastest kernel that the processor supports. The environment variable
// SILTFS_CHUNKER_KERNEL can name another kernel. All kernels make the same cuts.
//
// Thread-safety: every call from any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "chunker/scan/scan.h"
#include "store/base/result.h"

namespace siltfs {

struct ChunkerKernel {
  const char* name;
  // Null for the scalar kernel: it checks one window at a time and stops at the first match, so
  // scanning ahead gains nothing.
  ScanFunction scan;
};

// The kernels that run on this processor and agree with the scalar one on a sample. Slowest first:
// "scalar", "portable", then the kernels for the processor's vector instructions.
std::span<const ChunkerKernel> RunnableKernels();

// The kernel of that name. If it does not run here: kInvalidArgument, with a list of the runnable
// kernels.
Result<const ChunkerKernel*> FindKernel(std::string_view name);

// The kernel that chunkers use by default. The first call reads the environment variable; later
// calls return the same kernel. kInvalidArgument as for FindKernel.
Result<const ChunkerKernel*> ChosenKernel();

// The smallest `end` in [first, last] such that the window data[end - 64, end) matches. kNoMatch if
// there is none, or if first > last. Reads no byte outside data[first - 64, last). Requires 64 <=
// first.
size_t FindMatch(const ChunkerKernel& kernel, const CutCondition& condition, const uint8_t* data,
                 size_t first, size_t last);

}  // namespace siltfs
