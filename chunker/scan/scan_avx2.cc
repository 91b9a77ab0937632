// Scans 32 windows in parallel: an AVX2 register holds one byte of each window. Two shuffles of
// 16-byte tables apply a linear map (lane_maps.h) to all 32 bytes; each shuffle maps one half of
// every byte.
#include <immintrin.h>

#include "chunker/scan/lanes.h"

namespace siltfs {
namespace {

class Avx2Lanes {
 public:
  static constexpr size_t kLanes = 32;
  using Column = __m256i;

  // The state's bytes, the lowest first.
  struct State {
    __m256i s0, s1, s2, s3, s4, s5, s6;
  };

  explicit Avx2Lanes(const CutCondition& condition) : maps_(&condition.lanes) {
    for (size_t i = 0; i < kLaneStateBytes; ++i) {
      limit_[i] =
          _mm256_set1_epi8(static_cast<char>(condition.limit << kLaneStateShift >> (8 * i)));
    }
  }

  State Enter(const State& state, __m256i in) const {
    return Roll(state, _mm256_setzero_si256(), in);
  }

  State Roll(const State& state, __m256i out, __m256i in) const {
    const Change change(*maps_, state.s6, out);
    // The images of `in` under enter[0] and enter[1] of lane_maps.h.
    constexpr int kShift = kLaneStateShift;
    const __m256i low = _mm256_and_si256(_mm256_slli_epi16(in, kShift),
                                         _mm256_set1_epi8(static_cast<char>(0xff << kShift)));
    const __m256i high =
        _mm256_and_si256(_mm256_srli_epi16(in, 8 - kShift), _mm256_set1_epi8((1 << kShift) - 1));
    State next;
    next.s6 = Xor(state.s5, change.Of(6));
    next.s5 = Xor(state.s4, change.Of(5));
    next.s4 = Xor(state.s3, change.Of(4));
    next.s3 = Xor(state.s2, change.Of(3));
    next.s2 = Xor(state.s1, change.Of(2));
    next.s1 = Xor(Xor(state.s0, high), change.Of(1));
    next.s0 = Xor(low, change.Of(0));
    return next;
  }

  // Nearly always the two highest bytes of the states show that no window matches.
  uint64_t Matches(const State& state) const {
    const __m256i below =
        _mm256_andnot_si256(AtLeast(state.s5, limit_[5]), Equal(state.s6, limit_[6]));
    const __m256i candidates = _mm256_andnot_si256(below, AtLeast(state.s6, limit_[6]));
    if (_mm256_testz_si256(candidates, candidates)) [[likely]]
      return 0;
    return AtLeastLimit(state);
  }

  static void Transpose(const uint8_t* const (&rows)[kLanes], size_t offset,
                        __m256i (&columns)[kWindowSize]) {
    for (size_t half = 0; half < 2; ++half) {
      // Transpose 16 rows at a time to 16 bytes of each of 32 columns ...
      __m256i parts[2][16];
      for (size_t group = 0; group < 2; ++group) {
        for (size_t i = 0; i < 16; ++i) {
          const uint8_t* const row = rows[16 * group + i] + offset + 32 * half;
          __builtin_prefetch(row + kReadAhead);
          parts[group][i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
        }
        TransposeHalves(parts[group]);
      }
      // ... and join the two halves of each column.
      for (size_t i = 0; i < 16; ++i) {
        columns[32 * half + i] = _mm256_permute2x128_si256(parts[0][i], parts[1][i], 0x20);
        columns[32 * half + 16 + i] = _mm256_permute2x128_si256(parts[0][i], parts[1][i], 0x31);
      }
    }
  }

 private:
  static __m256i Xor(__m256i a, __m256i b) { return _mm256_xor_si256(a, b); }
  static __m256i Equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi8(a, b); }
  static __m256i AtLeast(__m256i a, __m256i b) { return Equal(_mm256_max_epu8(a, b), a); }

  // The change of the state by the overflowing byte and by the byte that leaves the window.
  class Change {
   public:
    Change(const LaneMaps& maps, __m256i top, __m256i out)
        : maps_(maps),
          top_low_(LowNibbles(top)),
          top_high_(HighNibbles(top)),
          out_low_(LowNibbles(out)),
          out_high_(HighNibbles(out)) {}

    __m256i Of(size_t i) const {
      return Xor(Xor(Map(maps_.overflow[i].low, top_low_), Map(maps_.overflow[i].high, top_high_)),
                 Xor(Map(maps_.leave[i].low, out_low_), Map(maps_.leave[i].high, out_high_)));
    }

   private:
    static __m256i LowNibbles(__m256i bytes) {
      return _mm256_and_si256(bytes, _mm256_set1_epi8(15));
    }
    static __m256i HighNibbles(__m256i bytes) { return LowNibbles(_mm256_srli_epi16(bytes, 4)); }
    static __m256i Map(const uint8_t (&table)[16], __m256i nibbles) {
      const auto* const bytes = reinterpret_cast<const __m128i*>(table);
      return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_load_si128(bytes)), nibbles);
    }

    const LaneMaps& maps_;
    const __m256i top_low_, top_high_, out_low_, out_high_;
  };

  uint64_t AtLeastLimit(const State& state) const {
    const __m256i bytes[kLaneStateBytes] = {state.s0, state.s1, state.s2, state.s3,
                                            state.s4, state.s5, state.s6};
    __m256i at_least = _mm256_set1_epi8(-1);  // result for the bytes compared so far
    for (size_t i = 0; i < kLaneStateBytes; ++i) {
      const __m256i below = _mm256_andnot_si256(at_least, Equal(bytes[i], limit_[i]));
      at_least = _mm256_andnot_si256(below, AtLeast(bytes[i], limit_[i]));
    }
    return static_cast<uint32_t>(_mm256_movemask_epi8(at_least));
  }

  // Transposes each half of the registers: byte j of rows[i] trades places with byte i of rows[j].
  // The numbers i and j have four bits each. Each TurnRound rotates the eight bits of (i, j) by
  // one, so four of them exchange i and j.
  static void TransposeHalves(__m256i (&rows)[16]) {
    __m256i turned[16];
    TurnRound(rows, turned);
    TurnRound(turned, rows);
    TurnRound(rows, turned);
    TurnRound(turned, rows);
  }
  static void TurnRound(const __m256i (&from)[16], __m256i (&to)[16]) {
    for (size_t i = 0; i < 8; ++i) {
      to[2 * i] = _mm256_unpacklo_epi8(from[i], from[i + 8]);
      to[2 * i + 1] = _mm256_unpackhi_epi8(from[i], from[i + 8]);
    }
  }

  static constexpr size_t kReadAhead = 192;

  const LaneMaps* maps_;
  __m256i limit_[kLaneStateBytes];
};

}  // namespace

void ScanAvx2(const CutCondition& condition, const uint8_t* data, size_t windows,
              uint64_t* matches) {
  LaneScan<Avx2Lanes>::Run(condition, data, windows, matches);
}

}  // namespace siltfs
