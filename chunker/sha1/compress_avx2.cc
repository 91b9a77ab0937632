// Eight lanes with AVX2, for processors without SHA instructions: a register holds one word of
// every lane.
#include <immintrin.h>

#include "chunker/sha1/compress.h"

namespace siltfs {

namespace {

inline __m256i Add(__m256i x, __m256i y) { return _mm256_add_epi32(x, y); }
inline __m256i Xor(__m256i x, __m256i y) { return _mm256_xor_si256(x, y); }
inline __m256i Constant(uint32_t k) { return _mm256_set1_epi32(static_cast<int>(k)); }

template <int kBits>
inline __attribute__((always_inline)) __m256i Rotate(__m256i x) {
  const __m256i left = kBits == 1 ? Add(x, x) : _mm256_slli_epi32(x, kBits);
  return _mm256_or_si256(left, _mm256_srli_epi32(x, 32 - kBits));
}

// The functions of FIPS 180-4, 4.1.1. Mix computes Ch and Maj in forms with fewer instructions.
enum Function { kCh, kParity, kMaj };

template <Function kFunction>
inline __attribute__((always_inline)) __m256i Mix(__m256i b, __m256i c, __m256i d) {
  if constexpr (kFunction == kCh) return Xor(d, _mm256_and_si256(b, Xor(c, d)));
  if constexpr (kFunction == kMaj) {
    return _mm256_or_si256(_mm256_and_si256(b, c), _mm256_and_si256(d, _mm256_or_si256(b, c)));
  }
  return Xor(Xor(b, c), d);
}

// Loads eight words of every lane from the 32 bytes at data[lane] + offset: w[i] gets word i of all
// lanes.
inline __attribute__((always_inline)) void LoadHalf(const uint8_t* const* data, size_t offset,
                                                    __m256i* w) {
  const __m256i big_endian =
      _mm256_broadcastsi128_si256(_mm_set_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203));
  __m256i u[8], v[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const auto* from = reinterpret_cast<const __m256i*>(data[i] + offset);
    u[i] = _mm256_shuffle_epi8(_mm256_loadu_si256(from), big_endian);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    v[i] = _mm256_unpacklo_epi32(u[i], u[i + 1]);
    v[i + 1] = _mm256_unpackhi_epi32(u[i], u[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_unpacklo_epi64(v[i], v[i + 2]);
    u[i + 1] = _mm256_unpackhi_epi64(v[i], v[i + 2]);
    u[i + 2] = _mm256_unpacklo_epi64(v[i + 1], v[i + 3]);
    u[i + 3] = _mm256_unpackhi_epi64(v[i + 1], v[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    w[i] = _mm256_permute2x128_si256(u[i], u[4 + i], 0x20);
    w[4 + i] = _mm256_permute2x128_si256(u[i], u[4 + i], 0x31);
  }
}

struct Working {
  __m256i a, b, c, d, e;
};

// One round. The values do not move from variable to variable: in each round the caller passes the
// variables in another order. The term with A is added last, because all other terms are known
// earlier.
template <Function kFunction>
inline __attribute__((always_inline)) void Round(__m256i a, __m256i& b, __m256i c, __m256i d,
                                                 __m256i& e, __m256i k, __m256i w) {
  e = Add(Add(Add(e, Add(w, k)), Mix<kFunction>(b, c, d)), Rotate<5>(a));
  b = Rotate<30>(b);
}

// Returns word kRound of the message schedule, which takes the place of word kRound - 16.
template <int kRound>
inline __attribute__((always_inline)) __m256i Schedule(__m256i* w) {
  if constexpr (kRound >= 16) {
    w[kRound % 16] = Rotate<1>(Xor(Xor(w[(kRound + 13) % 16], w[(kRound + 8) % 16]),
                                   Xor(w[(kRound + 2) % 16], w[kRound % 16])));
  }
  return w[kRound % 16];
}

template <Function kFunction, int kRound>
inline __attribute__((always_inline)) void FiveRounds(Working& v, __m256i k, __m256i* w) {
  Round<kFunction>(v.a, v.b, v.c, v.d, v.e, k, Schedule<kRound>(w));
  Round<kFunction>(v.e, v.a, v.b, v.c, v.d, k, Schedule<kRound + 1>(w));
  Round<kFunction>(v.d, v.e, v.a, v.b, v.c, k, Schedule<kRound + 2>(w));
  Round<kFunction>(v.c, v.d, v.e, v.a, v.b, k, Schedule<kRound + 3>(w));
  Round<kFunction>(v.b, v.c, v.d, v.e, v.a, k, Schedule<kRound + 4>(w));
}

template <Function kFunction, int kRound>
inline __attribute__((always_inline)) void TwentyRounds(Working& v, __m256i k, __m256i* w) {
  FiveRounds<kFunction, kRound>(v, k, w);
  FiveRounds<kFunction, kRound + 5>(v, k, w);
  FiveRounds<kFunction, kRound + 10>(v, k, w);
  FiveRounds<kFunction, kRound + 15>(v, k, w);
}

inline __attribute__((always_inline)) void CompressBlock(Working& h, __m256i* w) {
  Working v = h;
  TwentyRounds<kCh, 0>(v, Constant(0x5a827999), w);
  TwentyRounds<kParity, 20>(v, Constant(0x6ed9eba1), w);
  TwentyRounds<kMaj, 40>(v, Constant(0x8f1bbcdc), w);
  TwentyRounds<kParity, 60>(v, Constant(0xca62c1d6), w);
  h.a = Add(h.a, v.a);
  h.b = Add(h.b, v.b);
  h.c = Add(h.c, v.c);
  h.d = Add(h.d, v.d);
  h.e = Add(h.e, v.e);
}

inline __m256i Load(const uint32_t* words) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
}

inline void Store(uint32_t* words, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), value);
}

}  // namespace

void Sha1CompressAvx2x8(uint32_t* state, const uint8_t* const* data, size_t blocks) {
  Working h = {Load(state), Load(state + kSha1MaxLanes), Load(state + 2 * kSha1MaxLanes),
               Load(state + 3 * kSha1MaxLanes), Load(state + 4 * kSha1MaxLanes)};
  for (size_t n = 0; n < blocks; ++n) {
    __m256i w[16];
    LoadHalf(data, 64 * n, w);
    LoadHalf(data, 64 * n + 32, w + 8);
    CompressBlock(h, w);
  }
  Store(state, h.a);
  Store(state + kSha1MaxLanes, h.b);
  Store(state + 2 * kSha1MaxLanes, h.c);
  Store(state + 3 * kSha1MaxLanes, h.d);
  Store(state + 4 * kSha1MaxLanes, h.e);
}

}  // namespace siltfs
