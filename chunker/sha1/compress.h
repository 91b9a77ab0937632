// SHA-1's compression function (FIPS 180-4, 6.1.2) for several messages at once, one file per
// instruction set.
//
// The files of instruction sets are compiled with flags of their own. They include nothing but this
// header and <immintrin.h>, so that no function shared with other files is compiled with those
// flags; for the same reason this header declares and defines nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace siltfs {

// The most messages that any of the functions takes.
inline constexpr size_t kSha1MaxLanes = 16;

// Compresses `blocks` blocks of 64 bytes, beginning at data[lane], into the state of each of the
// function's lanes. Word j of a lane's state is state[j * kSha1MaxLanes + lane]. Lanes may point to
// the same data. No alignment is asked for; reads nothing but the blocks.
using Sha1CompressFunction = void (*)(uint32_t* state, const uint8_t* const* data, size_t blocks);

void Sha1CompressPortable(uint32_t* state, const uint8_t* const* data, size_t blocks);

#if defined(__x86_64__)
// SHA, SSSE3 and SSE4.1.
void Sha1CompressShaNi1(uint32_t* state, const uint8_t* const* data, size_t blocks);
void Sha1CompressShaNi2(uint32_t* state, const uint8_t* const* data, size_t blocks);
void Sha1CompressShaNi4(uint32_t* state, const uint8_t* const* data, size_t blocks);
// AVX2.
void Sha1CompressAvx2x8(uint32_t* state, const uint8_t* const* data, size_t blocks);
// AVX-512 F and BW.
void Sha1CompressAvx512x16(uint32_t* state, const uint8_t* const* data, size_t blocks);
#endif

}  // namespace siltfs
