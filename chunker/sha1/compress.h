// SHA-1's compression function (FIPS 180-4, 6.1.2) for several messages at once, one file per
// instruction set.
//
// Each instruction set's file is compiled with its own flags. The file includes only this header
// and <immintrin.h>, so that no function shared with other files is compiled with those flags. For
// the same reason this header contains nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace siltfs {

// The largest number of lanes of any function.
inline constexpr size_t kSha1MaxLanes = 16;

// For each of the function's lanes, compresses `blocks` blocks of 64 bytes at data[lane] into the
// lane's state. Word j of a lane's state is state[j * kSha1MaxLanes + lane]. Lanes may share data.
// No alignment is required; only the blocks are read.
using Sha1CompressFunction = void (*)(uint32_t* state, const uint8_t* const* data, size_t blocks);

void Sha1CompressPortable(uint32_t* state, const uint8_t* const* data, size_t blocks);

#if defined(__x86_64__)
// These three need SHA, SSSE3 and SSE4.1.
void Sha1CompressShaNi1(uint32_t* state, const uint8_t* const* data, size_t blocks);
void Sha1CompressShaNi2(uint32_t* state, const uint8_t* const* data, size_t blocks);
void Sha1CompressShaNi4(uint32_t* state, const uint8_t* const* data, size_t blocks);
// Needs AVX2.
void Sha1CompressAvx2x8(uint32_t* state, const uint8_t* const* data, size_t blocks);
// Needs AVX-512 F and BW.
void Sha1CompressAvx512x16(uint32_t* state, const uint8_t* const* data, size_t blocks);
#endif

}  // namespace siltfs
