// Input data of the chunker's benchmarks.
#pragma once

#include <string>

#include "chunker/parameters.h"
#include "store/base/bytes.h"

namespace siltfs {

// Returns all bytes of a file. Throws BenchFailure if it cannot be read.
Bytes ReadForBench(const std::string& path);

Bytes RandomForBench(uint64_t size, uint64_t seed);

// Returns parameters with the mean `avg`; the smallest and largest sizes are in the default's
// proportion to it. Throws BenchFailure if the polynomial is invalid, or if that mean has no valid
// parameters.
ChunkerParameters ParametersForBench(uint32_t avg, uint64_t polynomial);

// A widely used polynomial.
inline constexpr uint64_t kBenchPolynomial = 0x3DA3358B4DC173;

}  // namespace siltfs
