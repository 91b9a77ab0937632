// What the chunker's benchmarks cut.
#pragma once

#include <string>

#include "chunker/parameters.h"
#include "store/base/bytes.h"

namespace siltfs {

// The bytes of a file, with enough room in memory for all of them. BenchFailure if it cannot be
// read.
Bytes ReadForBench(const std::string& path);

Bytes RandomForBench(uint64_t size, uint64_t seed);

// The default's proportions for that mean. BenchFailure if the polynomial is not one, or there are
// no valid parameters of that mean.
ChunkerParameters ParametersForBench(uint32_t avg, uint64_t polynomial);

// One in wide use.
inline constexpr uint64_t kBenchPolynomial = 0x3DA3358B4DC173;

}  // namespace siltfs
