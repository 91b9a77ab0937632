// The parameters of a store's cut points. mkfs sets them, and they never change.
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
  // The mean chunk length on random data, apart from the small effect of max (see Validate).
  uint32_t avg = 8192;
  uint32_t max = 65536;
  uint32_t window = kWindowSize;
  RabinPolynomial polynomial;

  // Parameters with another mean in the default proportions: min is avg / 4, max is 8 avg.
  static ChunkerParameters Proportional(uint32_t avg, RabinPolynomial polynomial);

  // Returns OK if these conditions hold, otherwise kInvalidArgument with a text that names one
  // violated condition.
  // - window is 64, the only size supported.
  // - min >= window: no fingerprint covers bytes before its chunk, and the first min - window bytes
  //   can be skipped.
  // - avg >= 2 min: cut points soon resynchronize after a change.
  // - max >= 2 avg: few cuts are forced by max. The place of a forced cut depends on the chunk's
  //   start, not on the content.
  // - max <= 1 MiB: a chunk stays small compared to the buffers.
  //
  // If they hold, the mean length on random data is
  // avg - (avg - min) exp(-(max - min) / (avg - min)). That is less than 0.003 % below avg by
  // default, at most 2 % below avg if max is 4 avg, and at most 14 % if max is 2 avg.
  Status Validate() const;

  // A chunk may end at the end of a window with a fingerprint of at least this limit. One in avg -
  // min of all fingerprints reaches the limit. Fingerprint 0 does not, so in a run of zeros only
  // max ends chunks. The computation uses only integers, because all machines must get the same
  // limit. Requires valid parameters.
  uint64_t MatchLimit() const {
    constexpr uint64_t kFingerprints = uint64_t{1} << RabinPolynomial::kDegree;
    return kFingerprints - kFingerprints / (avg - min);
  }
};

}  // namespace siltfs
