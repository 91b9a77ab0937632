// Scans 16 windows in parallel: a NEON register holds one byte of each window. Two lookups in
// 16-byte tables apply a linear map (lane_maps.h) to all 16 bytes; each lookup maps one half of
// every byte.
//
// The tables do not fit in registers, so each step loads them again. With two registers for each
// byte of the state, these loads would serve 32 windows instead of 16. But this would save no time:
// the loads overlap with the lookups and exclusive ors, which already keep the vector units busy.
#include <arm_neon.h>

#include "chunker/scan/lanes.h"

namespace siltfs {
namespace {

class NeonLanes {
 public:
  static constexpr size_t kLanes = 16;
  using Column = uint8x16_t;

  // The state's bytes, the lowest first.
  struct State {
    uint8x16_t s0, s1, s2, s3, s4, s5, s6;
  };

  explicit NeonLanes(const CutCondition& condition) : maps_(&condition.lanes) {
    for (size_t i = 0; i < kLaneStateBytes; ++i) {
      limit_[i] = vdupq_n_u8(static_cast<uint8_t>(condition.limit << kLaneStateShift >> (8 * i)));
    }
  }

  State Enter(const State& state, uint8x16_t in) const { return Roll(state, vdupq_n_u8(0), in); }

  State Roll(const State& state, uint8x16_t out, uint8x16_t in) const {
    const Change change(*maps_, state.s6, out);
    // The images of `in` under enter[0] and enter[1] of lane_maps.h.
    const uint8x16_t low = vshlq_n_u8(in, kLaneStateShift);
    const uint8x16_t high = vshrq_n_u8(in, 8 - kLaneStateShift);
    State next;
    next.s6 = veorq_u8(state.s5, change.Of(6));
    next.s5 = veorq_u8(state.s4, change.Of(5));
    next.s4 = veorq_u8(state.s3, change.Of(4));
    next.s3 = veorq_u8(state.s2, change.Of(3));
    next.s2 = veorq_u8(state.s1, change.Of(2));
    next.s1 = veorq_u8(veorq_u8(state.s0, high), change.Of(1));
    next.s0 = veorq_u8(low, change.Of(0));
    return next;
  }

  // Nearly always the two highest bytes of the states show that no window matches.
  uint64_t Matches(const State& state) const {
    const uint8x16_t below = vandq_u8(vcltq_u8(state.s5, limit_[5]), vceqq_u8(state.s6, limit_[6]));
    const uint8x16_t candidates = vbicq_u8(vcgeq_u8(state.s6, limit_[6]), below);
    // Keeps four bits of each lane. Comparing these 64 bits with 0 is the shortest test whether any
    // lane is set.
    const uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(candidates), 4);
    if (vget_lane_u64(vreinterpret_u64_u8(narrow), 0) == 0) [[likely]]
      return 0;
    return AtLeastLimit(state);
  }

  static void Transpose(const uint8_t* const (&rows)[kLanes], size_t offset,
                        uint8x16_t (&columns)[kWindowSize]) {
    for (const uint8_t* const row : rows) __builtin_prefetch(row + offset + kReadAhead);
    for (size_t first = 0; first < kWindowSize; first += 16) {
      uint8x16_t part[16];
      for (size_t i = 0; i < 16; ++i) part[i] = vld1q_u8(rows[i] + offset + first);
      TransposeSquare(part);
      for (size_t i = 0; i < 16; ++i) columns[first + i] = part[i];
    }
  }

 private:
  // The change of the state by the overflowing byte and by the byte that leaves the window.
  class Change {
   public:
    Change(const LaneMaps& maps, uint8x16_t top, uint8x16_t out)
        : maps_(maps),
          top_low_(LowNibbles(top)),
          top_high_(HighNibbles(top)),
          out_low_(LowNibbles(out)),
          out_high_(HighNibbles(out)) {}

    uint8x16_t Of(size_t i) const {
      return veorq_u8(
          veorq_u8(Map(maps_.overflow[i].low, top_low_), Map(maps_.overflow[i].high, top_high_)),
          veorq_u8(Map(maps_.leave[i].low, out_low_), Map(maps_.leave[i].high, out_high_)));
    }

   private:
    static uint8x16_t LowNibbles(uint8x16_t bytes) { return vandq_u8(bytes, vdupq_n_u8(15)); }
    static uint8x16_t HighNibbles(uint8x16_t bytes) { return vshrq_n_u8(bytes, 4); }
    static uint8x16_t Map(const uint8_t (&table)[16], uint8x16_t nibbles) {
      return vqtbl1q_u8(vld1q_u8(table), nibbles);
    }

    const LaneMaps& maps_;
    const uint8x16_t top_low_, top_high_, out_low_, out_high_;
  };

  uint64_t AtLeastLimit(const State& state) const {
    const uint8x16_t bytes[kLaneStateBytes] = {state.s0, state.s1, state.s2, state.s3,
                                               state.s4, state.s5, state.s6};
    uint8x16_t at_least = vdupq_n_u8(0xff);  // result for the bytes compared so far
    for (size_t i = 0; i < kLaneStateBytes; ++i) {
      const uint8x16_t below = vbicq_u8(vceqq_u8(bytes[i], limit_[i]), at_least);
      at_least = vbicq_u8(vcgeq_u8(bytes[i], limit_[i]), below);
    }
    return LaneMask(at_least);
  }

  // Each byte of `lanes` is all ones or all zeros. Sets bit i of the result if byte i is all ones.
  static uint64_t LaneMask(uint8x16_t lanes) {
    alignas(16) static constexpr uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                      1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bits = vandq_u8(lanes, vld1q_u8(kBits));
    return vaddv_u8(vget_low_u8(bits)) | uint64_t{vaddv_u8(vget_high_u8(bits))} << 8;
  }

  // Transposes the square: byte j of rows[i] trades places with byte i of rows[j]. The numbers i
  // and j have four bits each. Each TurnRound rotates the eight bits of (i, j) by one, so four of
  // them exchange i and j.
  static void TransposeSquare(uint8x16_t (&rows)[16]) {
    uint8x16_t turned[16];
    TurnRound(rows, turned);
    TurnRound(turned, rows);
    TurnRound(rows, turned);
    TurnRound(turned, rows);
  }
  static void TurnRound(const uint8x16_t (&from)[16], uint8x16_t (&to)[16]) {
    for (size_t i = 0; i < 8; ++i) {
      to[2 * i] = vzip1q_u8(from[i], from[i + 8]);
      to[2 * i + 1] = vzip2q_u8(from[i], from[i + 8]);
    }
  }

  static constexpr size_t kReadAhead = 192;

  const LaneMaps* maps_;
  uint8x16_t limit_[kLaneStateBytes];
};

}  // namespace

void ScanNeon(const CutCondition& condition, const uint8_t* data, size_t windows,
              uint64_t* matches) {
  LaneScan<NeonLanes>::Run(condition, data, windows, matches);
}

}  // namespace siltfs
