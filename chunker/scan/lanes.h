// The division of work in kernels that roll many windows in parallel: each lane rolls a window over
// its own range, and all ranges have the same length. Ranges may overlap, so that no windows are
// left over. A window in two ranges is marked twice, which does not change the result.
//
// Each kernel's file defines a class `Lanes` in an unnamed namespace, and all templates here depend
// on this class. So code compiled for one instruction set is never linked into code for another.
// For the same reason nothing here calls inline functions of the library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chunker/scan/scan.h"

namespace siltfs {

// `Lanes` has these members:
//   kLanes, at most 64;
//   Column, one byte of each lane;
//   State, the fingerprint of each lane's window; a default State has empty windows;
//   Lanes(const CutCondition&);
//   State Enter(State, Column in) const: every window grows by a byte;
//   State Roll(State, Column out, Column in) const: every window advances by a byte;
//   uint64_t Matches(State) const: bit i is set if lane i's window matches;
//   static void Transpose(const uint8_t* const (&rows)[kLanes], size_t offset,
//                         Column (&columns)[64]): columns[i] is byte `offset + i` of every row.
// A State is passed by value and has no arrays, so that it stays in registers.
template <typename Lanes>
class LaneScan {
 public:
  // See ScanFunction.
  static void Run(const CutCondition& condition, const uint8_t* data, size_t windows,
                  uint64_t* matches) {
    LaneScan scan(condition, data, windows, matches);
    for (size_t step = 0; step < scan.steps_; ++step) scan.Advance(step);
  }

 private:
  using Column = typename Lanes::Column;
  using State = typename Lanes::State;
  static constexpr size_t kLanes = Lanes::kLanes;

  LaneScan(const CutCondition& condition, const uint8_t* data, size_t windows, uint64_t* matches)
      : steps_(StepsFor(windows)), matches_(matches), lanes_(condition) {
    const size_t last_begin = windows - (steps_ * kWindowSize + 1);
    for (size_t i = 0; i < kLanes; ++i) {
      begins_[i] = last_begin * i / (kLanes - 1);
      rows_[i] = data + begins_[i];
    }
    Lanes::Transpose(rows_, 0, columns_[0]);
    for (const Column& in : columns_[0]) state_ = lanes_.Enter(state_, in);
    Mark(0, lanes_.Matches(state_));
  }

  // The number of steps for these windows. A lane has 64 * StepsFor() + 1 windows.
  static size_t StepsFor(size_t windows) {
    const size_t share = (windows + kLanes - 1) / kLanes;
    const size_t steps = (share + kWindowSize - 2) / kWindowSize;
    return steps == 0 ? 1 : steps;
  }

  // Handles the next 64 windows of each lane. Earlier steps have handled the first 64 * step + 1
  // windows.
  void Advance(size_t step) {
    const Column(&out)[kWindowSize] = columns_[step % 2];
    Column(&in)[kWindowSize] = columns_[(step + 1) % 2];
    const size_t offset = (step + 1) * kWindowSize;
    Lanes::Transpose(rows_, offset, in);
    const Lanes lanes = lanes_;
    State state = state_;
    for (size_t i = 0; i < kWindowSize; ++i) {
      state = lanes.Roll(state, out[i], in[i]);
      const uint64_t found = lanes.Matches(state);
      if (found != 0) [[unlikely]]
        Mark(offset - kWindowSize + i + 1, found);
    }
    state_ = state;
  }

  // For each lane with a bit in `found`, marks the window at `offset` in the lane's range.
  void Mark(size_t offset, uint64_t found) {
    for (; found != 0; found &= found - 1) {
      const auto lane = static_cast<size_t>(__builtin_ctzll(found));
      const size_t window = begins_[lane] + offset;
      matches_[window / 64] |= uint64_t{1} << (window % 64);
    }
  }

  const size_t steps_;
  uint64_t* const matches_;
  const Lanes lanes_;
  State state_ = {};
  size_t begins_[kLanes];
  const uint8_t* rows_[kLanes];
  // In each step, one element has the 64 bytes that leave the windows of each lane, and the other
  // element has the 64 bytes that enter. The bytes that enter in one step leave in the next, so the
  // elements change roles with each step.
  Column columns_[2][kWindowSize];
};

}  // namespace siltfs
