// The kernels that there are, and which of them this process uses.
//
// That is the fastest one that the processor has the instructions for, or the one that the
// environment variable SILTFS_CHUNKER_KERNEL names. All of them cut alike.
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
  // Not for the scalar kernel, which goes one window at a time and gains nothing from looking
  // ahead: it stops at the first match.
  ScanFunction scan;
};

// Those that run on this processor, and find in a sample what the scalar one finds, the slowest
// first: "scalar", "portable", then what else it has.
std::span<const ChunkerKernel> RunnableKernels();

// The kernel of that name. kInvalidArgument, naming those that there are, if it does not run here.
Result<const ChunkerKernel*> FindKernel(std::string_view name);

// The kernel that chunkers use unless told otherwise; settled by the first call.
// kInvalidArgument as for FindKernel.
Result<const ChunkerKernel*> ChosenKernel();

// The smallest `end` in [first, last] such that the window data[end - 64, end) matches, or
// kNoMatch. Reads no byte outside data[first - 64, last). Requires 64 <= first; if first > last
// there is none.
size_t FindMatch(const ChunkerKernel& kernel, const CutCondition& condition, const uint8_t* data,
                 size_t first, size_t last);

}  // namespace siltfs
