// What decides where a store's files are cut; drawn and chosen at mkfs, fixed for the life of the
// store.
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

  // Bytes. No chunk but the last of a file is shorter than min, none is longer than max.
  uint32_t min = 2048;
  // The mean length on random data, less the little that max takes away: see Validate().
  uint32_t avg = 8192;
  uint32_t max = 65536;
  uint32_t window = kWindowSize;
  RabinPolynomial polynomial;

  // The default's proportions for another mean: min is a quarter of it, max eight times as much.
  static ChunkerParameters Proportional(uint32_t avg, RabinPolynomial polynomial);

  // kInvalidArgument, naming the first thing that is wrong, unless
  // - window is 64: there is no other,
  // - min >= window, so that no fingerprint reaches before its chunk, and the bytes up to
  //   min - window can be skipped,
  // - avg >= 2 min, so that cut points soon fall in step again after a change,
  // - max >= 2 avg, so that few cuts are forced, as these depend on where the chunk began, and
  // - max <= 1 MiB, so that a chunk stays small beside the buffers it passes through.
  // The mean length on random data is then avg - (avg - min) exp(-(max - min) / (avg - min)):
  // 0.003 % below avg by default, at most 2 % if max is 4 avg, 14 % if it is 2 avg.
  Status Validate() const;

  // A window is a cut point if its fingerprint is at least this: one in avg - min of all
  // fingerprints, the largest ones. Fingerprint 0 is not, hence a run of zeros holds no cut points.
  // Integers only, as every machine must agree. Valid parameters only.
  uint64_t MatchLimit() const {
    constexpr uint64_t kFingerprints = uint64_t{1} << RabinPolynomial::kDegree;
    return kFingerprints - kFingerprints / (avg - min);
  }
};

}  // namespace siltfs
