// The parameters of a store's cut points; set at mkfs, then fixed.
//
// Thread-safety: a plain value.
#pragma once

#include <cstdint>

#include "chunker/polynomial.h"
#include "chunker/rabin.h"
#include "store/base/status.h"

namespace siltfs {

struct ChunkerParameters {
  static constexpr uint32_t kSmallestMin = kWindowSize;
  static constexpr uint32_t kLargestMax = 1U << 20;

  // Bytes. Only the last chunk of a file may be shorter than min; no chunk is longer than max.
  uint32_t min = 2048;
  // The mean length on random data, except for the small effect of max: see Validate().
  uint32_t avg = 8192;
  uint32_t max = 65536;
  uint32_t window = kWindowSize;
  RabinPolynomial polynomial;

  // The default proportions for another mean: min is avg / 4, max is 8 avg.
  static ChunkerParameters Proportional(uint32_t avg, RabinPolynomial polynomial);

  // kInvalidArgument, naming the first violated condition, unless
  // - window is 64, the only size supported,
  // - min >= window, so that no fingerprint covers bytes before its chunk, and the first min -
  //   window bytes can be skipped,
  // - avg >= 2 min, so that cut points soon resynchronize after a change,
  // - max >= 2 avg, so that few cuts are forced, since these depend on the chunk's start, and
  // - max <= 1 MiB, so that a chunk stays small compared to the buffers. The mean length on random
  //   data is then avg - (avg - min) exp(-(max - min) / (avg - min)): 0.003 % below avg by default,
  //   at most 2 % if max is 4 avg, 14 % if it is 2 avg.
  Status Validate() const;

  // A window is a cut point if its fingerprint is at least this: the largest ones, one in avg - min
  // of all fingerprints. Fingerprint 0 is not among them, so a run of zeros has no cut points.
  // Integers only, since all machines must agree. Requires valid parameters.
  uint64_t MatchLimit() const {
    constexpr uint64_t kFingerprints = uint64_t{1} << RabinPolynomial::kDegree;
    return kFingerprints - kFingerprints / (avg - min);
  }
};

}  // namespace siltfs
