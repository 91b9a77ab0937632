// Sixteen lanes with AVX-512: a register holds one word of every lane. VPROLD rotates, and
// VPTERNLOGD computes each of SHA-1's three functions in one instruction.
#include <immintrin.h>

#include "chunker/sha1/compress.h"

namespace siltfs {

namespace {

// Immediates of VPTERNLOGD: the truth tables of FIPS 180-4, 4.1.1, with x as the highest bit.
constexpr int kCh = 0xca;
constexpr int kParity = 0x96;
constexpr int kMaj = 0xe8;

inline __m512i Constant(uint32_t k) { return _mm512_set1_epi32(static_cast<int>(k)); }

// Before the call w[lane] holds that lane's 16 words; afterwards w[t] holds word t of all lanes.
inline __attribute__((always_inline)) void Transpose(__m512i* w) {
  __m512i v[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    v[i] = _mm512_unpacklo_epi32(w[i], w[i + 1]);
    v[i + 1] = _mm512_unpackhi_epi32(w[i], w[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    w[i] = _mm512_unpacklo_epi64(v[i], v[i + 2]);
    w[i + 1] = _mm512_unpackhi_epi64(v[i], v[i + 2]);
    w[i + 2] = _mm512_unpacklo_epi64(v[i + 1], v[i + 3]);
    w[i + 3] = _mm512_unpackhi_epi64(v[i + 1], v[i + 3]);
  }
  // Quarter q of w[4 g + r] now holds word 4 q + r of lanes 4 g to 4 g + 3.
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const __m512i low_even = _mm512_shuffle_i32x4(w[r], w[4 + r], 0x88);
    const __m512i low_odd = _mm512_shuffle_i32x4(w[r], w[4 + r], 0xdd);
    const __m512i high_even = _mm512_shuffle_i32x4(w[8 + r], w[12 + r], 0x88);
    const __m512i high_odd = _mm512_shuffle_i32x4(w[8 + r], w[12 + r], 0xdd);
    w[r] = _mm512_shuffle_i32x4(low_even, high_even, 0x88);
    w[8 + r] = _mm512_shuffle_i32x4(low_even, high_even, 0xdd);
    w[4 + r] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
    w[12 + r] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
  }
}

inline __attribute__((always_inline)) void LoadWords(const uint8_t* const* data, size_t offset,
                                                     __m512i* w) {
  const __m512i big_endian =
      _mm512_broadcast_i32x4(_mm_set_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203));
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    w[i] = _mm512_shuffle_epi8(_mm512_loadu_si512(data[i] + offset), big_endian);
  Transpose(w);
}

struct Working {
  __m512i a, b, c, d, e;
};

// One round. The values do not move from variable to variable: in each round the caller passes the
// variables in another order. The term with A is added last, because all other terms are known
// earlier: only a rotation and an addition per round stay on the critical path.
template <int kFunction>
inline __attribute__((always_inline)) void Round(__m512i a, __m512i& b, __m512i c, __m512i d,
                                                 __m512i& e, __m512i k, __m512i w) {
  e = _mm512_add_epi32(e, _mm512_add_epi32(w, k));
  e = _mm512_add_epi32(e, _mm512_ternarylogic_epi32(b, c, d, kFunction));
  e = _mm512_add_epi32(e, _mm512_rol_epi32(a, 5));
  b = _mm512_rol_epi32(b, 30);
}

// Returns word kRound of the message schedule, which takes the place of word kRound - 16.
template <int kRound>
inline __attribute__((always_inline)) __m512i Schedule(__m512i* w) {
  if constexpr (kRound >= 16) {
    const __m512i three = _mm512_ternarylogic_epi32(w[(kRound + 13) % 16], w[(kRound + 8) % 16],
                                                    w[(kRound + 2) % 16], kParity);
    w[kRound % 16] = _mm512_rol_epi32(_mm512_xor_si512(three, w[kRound % 16]), 1);
  }
  return w[kRound % 16];
}

template <int kFunction, int kRound>
inline __attribute__((always_inline)) void FiveRounds(Working& v, __m512i k, __m512i* w) {
  Round<kFunction>(v.a, v.b, v.c, v.d, v.e, k, Schedule<kRound>(w));
  Round<kFunction>(v.e, v.a, v.b, v.c, v.d, k, Schedule<kRound + 1>(w));
  Round<kFunction>(v.d, v.e, v.a, v.b, v.c, k, Schedule<kRound + 2>(w));
  Round<kFunction>(v.c, v.d, v.e, v.a, v.b, k, Schedule<kRound + 3>(w));
  Round<kFunction>(v.b, v.c, v.d, v.e, v.a, k, Schedule<kRound + 4>(w));
}

template <int kFunction, int kRound>
inline __attribute__((always_inline)) void TwentyRounds(Working& v, __m512i k, __m512i* w) {
  FiveRounds<kFunction, kRound>(v, k, w);
  FiveRounds<kFunction, kRound + 5>(v, k, w);
  FiveRounds<kFunction, kRound + 10>(v, k, w);
  FiveRounds<kFunction, kRound + 15>(v, k, w);
}

inline __attribute__((always_inline)) void CompressBlock(Working& h, __m512i* w) {
  Working v = h;
  TwentyRounds<kCh, 0>(v, Constant(0x5a827999), w);
  TwentyRounds<kParity, 20>(v, Constant(0x6ed9eba1), w);
  TwentyRounds<kMaj, 40>(v, Constant(0x8f1bbcdc), w);
  TwentyRounds<kParity, 60>(v, Constant(0xca62c1d6), w);
  h.a = _mm512_add_epi32(h.a, v.a);
  h.b = _mm512_add_epi32(h.b, v.b);
  h.c = _mm512_add_epi32(h.c, v.c);
  h.d = _mm512_add_epi32(h.d, v.d);
  h.e = _mm512_add_epi32(h.e, v.e);
}

}  // namespace

void Sha1CompressAvx512x16(uint32_t* state, const uint8_t* const* data, size_t blocks) {
  Working h = {_mm512_loadu_si512(state), _mm512_loadu_si512(state + kSha1MaxLanes),
               _mm512_loadu_si512(state + 2 * kSha1MaxLanes),
               _mm512_loadu_si512(state + 3 * kSha1MaxLanes),
               _mm512_loadu_si512(state + 4 * kSha1MaxLanes)};
  for (size_t n = 0; n < blocks; ++n) {
    __m512i w[16];
    LoadWords(data, 64 * n, w);
    CompressBlock(h, w);
  }
  _mm512_storeu_si512(state, h.a);
  _mm512_storeu_si512(state + kSha1MaxLanes, h.b);
  _mm512_storeu_si512(state + 2 * kSha1MaxLanes, h.c);
  _mm512_storeu_si512(state + 3 * kSha1MaxLanes, h.d);
  _mm512_storeu_si512(state + 4 * kSha1MaxLanes, h.e);
}

}  // namespace siltfs
