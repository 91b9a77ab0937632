// One, two and four lanes with the SHA instructions. Within one message each SHA1RNDS4 waits for
// the previous one, and its latency is several times its throughput interval. So independent
// messages are interleaved instruction by instruction. Four lanes need more than the 16 registers
// available to these instructions, but the spilled values are not on the critical path.
#include <immintrin.h>

#include "chunker/sha1/compress.h"

namespace siltfs {

namespace {

// The instructions expect the first word of each four as the most significant one.
inline __m128i LoadWords(const uint8_t* data) {
  const __m128i reverse = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
  return _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data)), reverse);
}

template <int kLanes>
struct Lanes {
  __m128i abcd[kLanes];
  // E is in the highest word of e. Before a group of four rounds, this word still holds the A of
  // four rounds before; the instructions derive E from it.
  __m128i e[kLanes];
  __m128i w[4][kLanes];  // the last 16 words of the message schedule
};

// Rounds 4 * kGroup to 4 * kGroup + 3 of all lanes.
template <int kGroup, int kLanes>
inline __attribute__((always_inline)) void FourRounds(Lanes<kLanes>& v, const uint8_t* const* data,
                                                      size_t offset) {
#pragma GCC unroll 4
  for (int i = 0; i < kLanes; ++i) {
    __m128i& w = v.w[kGroup % 4][i];
    if constexpr (kGroup < 4) {
      w = LoadWords(data[i] + offset + 16 * kGroup);
    } else {
      w = _mm_sha1msg1_epu32(w, v.w[(kGroup + 1) % 4][i]);
      w = _mm_xor_si128(w, v.w[(kGroup + 2) % 4][i]);
      w = _mm_sha1msg2_epu32(w, v.w[(kGroup + 3) % 4][i]);
    }
    const __m128i e_and_w = kGroup == 0 ? _mm_add_epi32(v.e[i], w) : _mm_sha1nexte_epu32(v.e[i], w);
    v.e[i] = v.abcd[i];
    v.abcd[i] = _mm_sha1rnds4_epu32(v.abcd[i], e_and_w, kGroup / 5);
  }
}

template <int kLanes>
inline __attribute__((always_inline)) void CompressBlock(Lanes<kLanes>& v,
                                                         const uint8_t* const* data,
                                                         size_t offset) {
  __m128i abcd[kLanes], e[kLanes];
#pragma GCC unroll 4
  for (int i = 0; i < kLanes; ++i) {
    abcd[i] = v.abcd[i];
    e[i] = v.e[i];
  }
  FourRounds<0>(v, data, offset);
  FourRounds<1>(v, data, offset);
  FourRounds<2>(v, data, offset);
  FourRounds<3>(v, data, offset);
  FourRounds<4>(v, data, offset);
  FourRounds<5>(v, data, offset);
  FourRounds<6>(v, data, offset);
  FourRounds<7>(v, data, offset);
  FourRounds<8>(v, data, offset);
  FourRounds<9>(v, data, offset);
  FourRounds<10>(v, data, offset);
  FourRounds<11>(v, data, offset);
  FourRounds<12>(v, data, offset);
  FourRounds<13>(v, data, offset);
  FourRounds<14>(v, data, offset);
  FourRounds<15>(v, data, offset);
  FourRounds<16>(v, data, offset);
  FourRounds<17>(v, data, offset);
  FourRounds<18>(v, data, offset);
  FourRounds<19>(v, data, offset);
#pragma GCC unroll 4
  for (int i = 0; i < kLanes; ++i) {
    v.e[i] = _mm_sha1nexte_epu32(v.e[i], e[i]);
    v.abcd[i] = _mm_add_epi32(v.abcd[i], abcd[i]);
  }
}

inline int Word(const uint32_t* state, int j, int lane) {
  return static_cast<int>(state[j * static_cast<int>(kSha1MaxLanes) + lane]);
}

inline void SetWord(uint32_t* state, int j, int lane, int word) {
  state[j * static_cast<int>(kSha1MaxLanes) + lane] = static_cast<uint32_t>(word);
}

template <int kLanes>
inline __attribute__((always_inline)) void Compress(uint32_t* state, const uint8_t* const* data,
                                                    size_t blocks) {
  Lanes<kLanes> v;
#pragma GCC unroll 4
  for (int i = 0; i < kLanes; ++i) {
    v.abcd[i] =
        _mm_set_epi32(Word(state, 0, i), Word(state, 1, i), Word(state, 2, i), Word(state, 3, i));
    v.e[i] = _mm_set_epi32(Word(state, 4, i), 0, 0, 0);
  }
  for (size_t n = 0; n < blocks; ++n) CompressBlock(v, data, 64 * n);
#pragma GCC unroll 4
  for (int i = 0; i < kLanes; ++i) {
    SetWord(state, 0, i, _mm_extract_epi32(v.abcd[i], 3));
    SetWord(state, 1, i, _mm_extract_epi32(v.abcd[i], 2));
    SetWord(state, 2, i, _mm_extract_epi32(v.abcd[i], 1));
    SetWord(state, 3, i, _mm_extract_epi32(v.abcd[i], 0));
    SetWord(state, 4, i, _mm_extract_epi32(v.e[i], 3));
  }
}

}  // namespace

void Sha1CompressShaNi1(uint32_t* state, const uint8_t* const* data, size_t blocks) {
  Compress<1>(state, data, blocks);
}

void Sha1CompressShaNi2(uint32_t* state, const uint8_t* const* data, size_t blocks) {
  Compress<2>(state, data, blocks);
}

void Sha1CompressShaNi4(uint32_t* state, const uint8_t* const* data, size_t blocks) {
  Compress<4>(state, data, blocks);
}

}  // namespace siltfs
