// Input data of the chunker's benchmarks.
#pragma once

#include <string>

#include "chunker/parameters.h"
#include "store/base/bytes.h"

namespace siltfs {

// Returns all bytes of a file. Throws BenchFailure if it cannot be read.
Bytes ReadForBench(const std::string& path);

Bytes RandomForBench(uint64_t size, uint64_t seed);

// Returns parameters with the mean `avg`. The smallest and the largest size have the same ratios to
// the mean as in the default parameters. Throws BenchFailure if the polynomial is invalid, or if no
// parameters with this mean are valid.
ChunkerParameters ParametersForBench(uint32_t avg, uint64_t polynomial);

// A widely used polynomial.
inline constexpr uint64_t kBenchPolynomial = 0x3DA3358B4DC173;

}  // namespace siltfs
