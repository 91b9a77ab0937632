// Scans 64 windows in parallel: an AVX-512 register holds one byte of each window, and
// GF2P8AFFINEQB applies a linear map (lane_maps.h) to all 64 bytes at once.
#include <immintrin.h>

#include "chunker/scan/lanes.h"

namespace siltfs {
namespace {

class Avx512Lanes {
 public:
  static constexpr size_t kLanes = 64;
  using Column = __m512i;
  static constexpr size_t kReadAhead = 192;

  // The state's bytes, the lowest first.
  struct State {
    __m512i s0, s1, s2, s3, s4, s5, s6;
  };

  explicit Avx512Lanes(const CutCondition& condition) {
    for (size_t i = 0; i < kLaneStateBytes; ++i) {
      overflow_[i] = Matrix(condition.lanes.overflow[i]);
      leave_[i] = Matrix(condition.lanes.leave[i]);
      limit_[i] =
          _mm512_set1_epi8(static_cast<char>(condition.limit << kLaneStateShift >> (8 * i)));
    }
    for (size_t i = 0; i < kLaneEnterMaps; ++i) enter_[i] = Matrix(condition.lanes.enter[i]);
  }

  State Enter(const State& state, __m512i in) const {
    return Roll(state, _mm512_setzero_si512(), in);
  }

  State Roll(const State& state, __m512i out, __m512i in) const {
    const __m512i top = state.s6;
    return {
        .s0 = Xor(Map(in, enter_[0]), Map(top, overflow_[0]), Map(out, leave_[0])),
        .s1 = Xor(_mm512_xor_si512(state.s0, Map(in, enter_[1])), Map(top, overflow_[1]),
                  Map(out, leave_[1])),
        .s2 = Xor(state.s1, Map(top, overflow_[2]), Map(out, leave_[2])),
        .s3 = Xor(state.s2, Map(top, overflow_[3]), Map(out, leave_[3])),
        .s4 = Xor(state.s3, Map(top, overflow_[4]), Map(out, leave_[4])),
        .s5 = Xor(state.s4, Map(top, overflow_[5]), Map(out, leave_[5])),
        .s6 = Xor(state.s5, Map(top, overflow_[6]), Map(out, leave_[6])),
    };
  }

  // Nearly always the two highest bytes of the states show that no window matches.
  uint64_t Matches(const State& state) const {
    const __mmask64 above = _mm512_cmpgt_epu8_mask(state.s6, limit_[6]);
    const __mmask64 equal = _mm512_cmpeq_epu8_mask(state.s6, limit_[6]);
    const __mmask64 candidates = above | _mm512_mask_cmpge_epu8_mask(equal, state.s5, limit_[5]);
    if (candidates == 0) [[likely]]
      return 0;
    return AtLeastLimit(state);
  }

  static void Transpose(const uint8_t* const (&rows)[kLanes], size_t offset,
                        __m512i (&columns)[kWindowSize]) {
    // Transpose 16 rows at a time, so that they stay in registers, to 16 bytes of each column ...
    __m512i parts[4][16];
    for (size_t group = 0; group < 4; ++group) {
      for (size_t i = 0; i < 16; ++i) {
        const uint8_t* const row = rows[16 * group + i] + offset;
        __builtin_prefetch(row + kReadAhead);
        parts[group][i] = _mm512_loadu_si512(row);
      }
      TransposeQuarters(parts[group]);
    }
    // ... and join the four quarters of each column.
    for (size_t i = 0; i < 16; ++i) {
      const __m512i low01 = _mm512_shuffle_i64x2(parts[0][i], parts[1][i], 0x44);
      const __m512i low23 = _mm512_shuffle_i64x2(parts[2][i], parts[3][i], 0x44);
      const __m512i high01 = _mm512_shuffle_i64x2(parts[0][i], parts[1][i], 0xee);
      const __m512i high23 = _mm512_shuffle_i64x2(parts[2][i], parts[3][i], 0xee);
      columns[i] = _mm512_shuffle_i64x2(low01, low23, 0x88);
      columns[16 + i] = _mm512_shuffle_i64x2(low01, low23, 0xdd);
      columns[32 + i] = _mm512_shuffle_i64x2(high01, high23, 0x88);
      columns[48 + i] = _mm512_shuffle_i64x2(high01, high23, 0xdd);
    }
  }

 private:
  static __m512i Matrix(const ByteMap& map) {
    return _mm512_set1_epi64(static_cast<long long>(map.matrix));
  }
  static __m512i Map(__m512i bytes, __m512i matrix) {
    return _mm512_gf2p8affine_epi64_epi8(bytes, matrix, 0);
  }
  static __m512i Xor(__m512i a, __m512i b, __m512i c) {
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
  }

  __mmask64 AtLeastLimit(const State& state) const {
    const __m512i bytes[kLaneStateBytes] = {state.s0, state.s1, state.s2, state.s3,
                                            state.s4, state.s5, state.s6};
    __mmask64 above = 0;
    __mmask64 equal = ~__mmask64{0};
    for (size_t i = kLaneStateBytes; i-- > 0;) {
      above |= _mm512_mask_cmpgt_epu8_mask(equal, bytes[i], limit_[i]);
      equal = _mm512_mask_cmpeq_epu8_mask(equal, bytes[i], limit_[i]);
    }
    return above | equal;
  }

  // Transposes each quarter of the registers: byte j of rows[i] trades places with byte i of
  // rows[j]. The numbers i and j have four bits each. Each TurnRound rotates the eight bits of
  // (i, j) by one, so four of them exchange i and j.
  static void TransposeQuarters(__m512i (&rows)[16]) {
    __m512i turned[16];
    TurnRound(rows, turned);
    TurnRound(turned, rows);
    TurnRound(rows, turned);
    TurnRound(turned, rows);
  }
  static void TurnRound(const __m512i (&from)[16], __m512i (&to)[16]) {
    for (size_t i = 0; i < 8; ++i) {
      to[2 * i] = _mm512_unpacklo_epi8(from[i], from[i + 8]);
      to[2 * i + 1] = _mm512_unpackhi_epi8(from[i], from[i + 8]);
    }
  }

  __m512i overflow_[kLaneStateBytes];
  __m512i leave_[kLaneStateBytes];
  __m512i enter_[kLaneEnterMaps];
  __m512i limit_[kLaneStateBytes];
};

}  // namespace

void ScanAvx512Gfni(const CutCondition& condition, const uint8_t* data, size_t windows,
                    uint64_t* matches) {
  LaneScan<Avx512Lanes>::Run(condition, data, windows, matches);
}

}  // namespace siltfs
