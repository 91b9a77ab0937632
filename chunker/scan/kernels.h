// The scan kernels, and the choice of the one that this process uses.
//
// It is the fastest one that the processor supports, or the one named by the environment variable
// SILTFS_CHUNKER_KERNEL. All kernels make the same cuts.
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

// The kernels that run on this processor and agree with the scalar one on a sample, slowest first:
// "scalar", "portable", then those for its vector instructions.
std::span<const ChunkerKernel> RunnableKernels();

// The kernel of that name. kInvalidArgument, with a list of the runnable ones, if it does not run
// here.
Result<const ChunkerKernel*> FindKernel(std::string_view name);

// The default kernel of chunkers; fixed by the first call. kInvalidArgument as for FindKernel.
Result<const ChunkerKernel*> ChosenKernel();

// The smallest `end` in [first, last] such that the window data[end - 64, end) matches, or
// kNoMatch. Reads no byte outside data[first - 64, last). Requires 64 <= first; no match if first >
// last.
size_t FindMatch(const ChunkerKernel& kernel, const CutCondition& condition, const uint8_t* data,
                 size_t first, size_t last);

}  // namespace siltfs
