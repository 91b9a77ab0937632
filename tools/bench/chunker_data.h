// Input data of the chunker's benchmarks.
#pragma once

#include <string>

#include "chunker/parameters.h"
#include "store/base/bytes.h"

namespace siltfs {

// All bytes of a file, in memory. BenchFailure if it cannot be read.
Bytes ReadForBench(const std::string& path);

Bytes RandomForBench(uint64_t size, uint64_t seed);

// Parameters of mean `avg`, in the default's proportions. BenchFailure if the polynomial is
// invalid, or if that mean has no valid parameters.
ChunkerParameters ParametersForBench(uint32_t avg, uint64_t polynomial);

// A polynomial in wide use.
inline constexpr uint64_t kBenchPolynomial = 0x3DA3358B4DC173;

}  // namespace siltfs
